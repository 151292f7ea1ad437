//! `POST /api/v1/agency/billing/{agency_id}/billing_plan`: creates a billing plan that an agency offers, with its
//! limits. At most one plan of an agency is the default: a new default takes the mark from the former one.

use shared::prelude::*;

pub struct CreateAgencyBillingPlan;

impl Operation for CreateAgencyBillingPlan {
    type Path = AgencyId;
    type Query = ();
    type Body = New<BillingPlan>;
    type Reply = Created<BillingPlan>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let new = request.body.checked(cx.tenant.org(), request.path.into())?;
        create_plan(cx, request.path, new).await.map(Created)
    }
}
