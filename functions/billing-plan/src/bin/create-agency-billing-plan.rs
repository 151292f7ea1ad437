//! Runs `create-agency-billing-plan` under Lambda. Written by `cargo generate`.

use shared::prelude::{BillingPlan, Create};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Create<BillingPlan>>(&routes::CREATE_AGENCY_BILLING_PLAN))
}
