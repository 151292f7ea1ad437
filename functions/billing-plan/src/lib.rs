//! The operations of the record `billing-plan`. Written by `cargo generate`.

mod create_agency_billing_plan;
mod delete_agency_billing_plan;
mod list_agency_billing_plans;
mod read_agency_billing_plan;
mod update_agency_billing_plan;

pub use create_agency_billing_plan::CreateAgencyBillingPlan;
pub use delete_agency_billing_plan::DeleteAgencyBillingPlan;
pub use list_agency_billing_plans::ListAgencyBillingPlans;
pub use read_agency_billing_plan::ReadAgencyBillingPlan;
pub use update_agency_billing_plan::UpdateAgencyBillingPlan;
