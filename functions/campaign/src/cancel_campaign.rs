//! `POST /api/v1/campaign/{campaign_id}/cancel`: cancels a campaign for good: contacts that are not sent yet are never sent. To stop for a while, use `pause-campaign`.

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
