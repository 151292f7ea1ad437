//! `DELETE /api/v1/agency/billing/{agency_id}/billing_plan/{billing_plan_id}`: removes a billing plan.

use shared::prelude::*;

pub type DeleteAgencyBillingPlan = Delete<BillingPlan>;
