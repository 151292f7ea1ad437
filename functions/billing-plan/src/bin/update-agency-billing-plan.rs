//! Runs `update-agency-billing-plan` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<billing_plan::UpdateAgencyBillingPlan>(&routes::UPDATE_AGENCY_BILLING_PLAN))
}
