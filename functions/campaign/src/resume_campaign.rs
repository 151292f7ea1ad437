//! `POST /api/v1/campaign/{campaign_id}/resume`: resumes a paused campaign where it stopped. Use it after
//! `pause-campaign`.

use shared::prelude::*;

pub struct ResumeCampaign;

impl Operation for ResumeCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Updated<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::control(cx, request.path, CampaignCommand::Resume).await.map(Updated)
    }
}
