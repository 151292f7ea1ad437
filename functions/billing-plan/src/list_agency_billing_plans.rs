//! `GET /api/v1/agency/billing/{agency_id}/billing_plan/list`: a page of an agency's billing plans, oldest first.

use shared::prelude::*;

pub type ListAgencyBillingPlans = List<BillingPlan>;
