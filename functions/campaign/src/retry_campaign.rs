//! `POST /api/v1/campaign/{campaign_id}/retry`: sends a campaign once more to its failed contacts, as new events. Use it once the cause is mended.

use shared::prelude::*;

pub struct RetryCampaign;

impl Operation for RetryCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Updated<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::control(cx, request.path, CampaignCommand::Retry).await.map(Updated)
    }
}
