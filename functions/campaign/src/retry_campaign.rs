//! `POST /api/v1/campaign/{campaign_id}/retry`: queues the failed contacts of a campaign again, each once.

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
