//! The operations of the record `billing-plan`. Written by `UPDATE=1 cargo test`.

mod create_agency_billing_plan;

pub use create_agency_billing_plan::CreateAgencyBillingPlan;
