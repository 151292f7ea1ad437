//! `GET /api/v1/campaign/get/{campaign_id}`: one campaign, with the number of its contacts in each status. Use it to follow a campaign that is being sent.

use shared::prelude::*;

pub struct ReadCampaign;

impl Operation for ReadCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(Retrieved(campaign::read(&cx.table, request.path).await.on_missing("campaign_id")?))
    }
}
