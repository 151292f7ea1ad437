//! `GET /api/v1/agency/billing/{agency_id}/billing_plan/{billing_plan_id}`: a billing plan of an agency.

use shared::prelude::*;

pub type ReadAgencyBillingPlan = Read<BillingPlan>;
