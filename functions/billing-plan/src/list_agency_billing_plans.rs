//! `GET /api/v1/agency/billing/{agency_id}/billing_plan/list`: a page of the billing plans of an agency.

use shared::prelude::*;

pub type ListAgencyBillingPlans = List<BillingPlan>;
