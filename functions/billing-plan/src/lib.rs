//! The operations of the record `billing-plan`. Written by `cargo generate`.

mod create_agency_billing_plan;
mod update_agency_billing_plan;

pub use create_agency_billing_plan::CreateAgencyBillingPlan;
pub use update_agency_billing_plan::UpdateAgencyBillingPlan;
