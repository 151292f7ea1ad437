//! `POST /api/v1/campaign/{campaign_id}/pause`: pauses a campaign: nothing more is sent until `resume-campaign`. To
//! stop for good, use `cancel-campaign`.

use shared::prelude::*;

pub struct PauseCampaign;

impl Operation for PauseCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Updated<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::control(cx, request.path, CampaignCommand::Pause).await.map(Updated)
    }
}
