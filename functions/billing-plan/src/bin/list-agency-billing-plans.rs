//! Runs `list-agency-billing-plans` under Lambda. Written by `cargo generate`.

use shared::prelude::{BillingPlan, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<BillingPlan>>(&routes::LIST_AGENCY_BILLING_PLANS))
}
