//! `POST /api/v1/agency/billing/{agency_id}/billing_plan`: creates a billing plan that an agency offers.

use shared::prelude::*;

pub type CreateAgencyBillingPlan = Create<BillingPlan>;
