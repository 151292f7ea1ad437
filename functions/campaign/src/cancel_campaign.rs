//! `POST /api/v1/campaign/{campaign_id}/cancel`: cancels a campaign; contacts that are still queued are never sent.

use shared::prelude::*;

pub struct CancelCampaign;

impl Operation for CancelCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Updated<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::control(cx, request.path, CampaignCommand::Cancel).await.map(Updated)
    }
}
