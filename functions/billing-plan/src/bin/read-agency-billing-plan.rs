//! Runs `read-agency-billing-plan` under Lambda. Written by `cargo generate`.

use shared::prelude::{BillingPlan, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<BillingPlan>>(&routes::READ_AGENCY_BILLING_PLAN))
}
