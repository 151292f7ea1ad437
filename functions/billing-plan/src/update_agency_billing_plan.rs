//! `PUT /api/v1/agency/billing/{agency_id}/billing_plan/{billing_plan_id}`: changes a billing plan; absent fields keep their values.

use shared::prelude::*;

pub type UpdateAgencyBillingPlan = Update<BillingPlan>;
