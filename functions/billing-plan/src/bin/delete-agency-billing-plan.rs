//! Runs `delete-agency-billing-plan` under Lambda. Written by `cargo generate`.

use shared::prelude::{BillingPlan, Delete};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<BillingPlan>>(&routes::DELETE_AGENCY_BILLING_PLAN))
}
