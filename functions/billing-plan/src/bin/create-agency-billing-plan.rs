//! Runs `create-agency-billing-plan` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<billing_plan::CreateAgencyBillingPlan>(&routes::CREATE_AGENCY_BILLING_PLAN))
}
