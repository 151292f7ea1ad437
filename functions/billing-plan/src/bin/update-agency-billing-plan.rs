//! Runs `update-agency-billing-plan` under Lambda. Written by `cargo generate`.

use shared::prelude::{BillingPlan, Update};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Update<BillingPlan>>(&routes::UPDATE_AGENCY_BILLING_PLAN))
}
