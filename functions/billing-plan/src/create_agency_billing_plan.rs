//! `POST /api/v1/agency/billing/{agency_id}/billing_plan`: makes a billing plan of an agency.

use shared::prelude::*;

pub struct CreateAgencyBillingPlan;

impl Operation for CreateAgencyBillingPlan {
    type Path = AgencyId;
    type Query = ();
    type Body = BillingPlanFields;
    type Reply = Created<BillingPlan>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let agency = request.path;
        if request.body.agency_id.is_some_and(|named| named != agency) {
            let at = Location::body().name("agency_id");
            return Err(Error::invalid(
                at.issue("value_error", "Value error, agency_id should equal that of the path"),
            ));
        }
        let fields = BillingPlanFields { agency_id: Some(agency), ..request.body };
        let plan = BillingPlan { id: cx.new_id(), fields };
        cx.table.put_under::<Agency, _>(agency, (agency, plan.id), &plan).await.on_missing("agency_id")?;
        Ok(Created(plan))
    }
}
