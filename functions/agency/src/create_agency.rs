//! `POST /api/v1/agency`: makes an agency.

use shared::prelude::*;

pub struct CreateAgency;

impl Operation for CreateAgency {
    type Path = ();
    type Query = ();
    type Body = AgencyFields;
    type Reply = Created<Agency>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let org_id = Some(cx.own_org(request.body.org_id)?);
        let agency = Agency { id: cx.new_id(), fields: AgencyFields { org_id, ..request.body } };
        cx.table.put(agency.id, &agency).await?;
        Ok(Created(agency))
    }
}
