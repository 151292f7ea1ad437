//! `DELETE /api/v1/campaign/{campaign_id}`: deletes a campaign that is not being sent, with its contacts. Conversations
//! stay. If it is being sent, use `cancel-campaign` first.

use shared::prelude::*;

pub struct DeleteCampaign;

impl Operation for DeleteCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::remove(cx, request.path).await.map(Deleted)
    }
}
