//! `PUT /api/v1/agency/billing/{agency_id}/billing_plan/{billing_plan_id}`: changes a billing plan of an agency. Absent fields keep their values. `default_plan` takes the mark from the plan that was the default until now.

use shared::prelude::*;

pub struct UpdateAgencyBillingPlan;

impl Operation for UpdateAgencyBillingPlan {
    type Path = (AgencyId, BillingPlanId);
    type Query = ();
    type Body = Changes<BillingPlan>;
    type Reply = Updated<BillingPlan>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let Changes(changes) = request.body;
        update_plan(cx, request.path, &changes).await.map(Updated)
    }
}
