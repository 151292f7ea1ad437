//! `DELETE /api/v1/agency/billing/{agency_id}/billing_plan/{billing_plan_id}`: deletes a billing plan.

use shared::prelude::*;

pub type DeleteAgencyBillingPlan = Delete<BillingPlan>;
