//! `POST /api/v1/agency/billing/{agency_id}/billing_plan`: makes a billing plan of an agency.

use shared::prelude::*;

pub type CreateAgencyBillingPlan = Create<BillingPlan>;
