//! `PUT /api/v1/campaign/update/{campaign_id}`: changes a campaign that is not being sent, and adds contacts. With `status` it pauses, resumes or cancels any campaign.

use shared::prelude::*;

pub struct UpdateCampaign;

impl Operation for UpdateCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = CampaignChanges;
    type Reply = Updated<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::update(cx, request.path, request.body).await.map(Updated)
    }
}
