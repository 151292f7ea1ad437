//! `POST /api/v1/campaign/create`: creates a campaign that is sent later: once at a time, or again and again. To send at once, use `run-campaign`.

use shared::prelude::*;

pub struct CreateCampaign;

impl Operation for CreateCampaign {
    type Path = ();
    type Query = ();
    type Body = NewScheduledCampaign;
    type Reply = Created<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::create(cx, request.body).await.map(Created)
    }
}
