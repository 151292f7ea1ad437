//! `DELETE /api/v1/campaign_contact/{campaign_contact_id}`: deletes a contact from a campaign. If nothing was sent to it yet, nothing will be. The contact itself stays.

use shared::prelude::*;

pub struct DeleteCampaignContact;

impl Operation for DeleteCampaignContact {
    type Path = CampaignContactId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<CampaignContact>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let id = request.path;
        let removed = campaign::remove_contact(&cx.table, id).await.on_missing("campaign_contact_id")?;
        Ok(Deleted(removed))
    }
}
