//! `POST /api/v1/campaign/create`: a campaign that is sent at a time, once or again and again.

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
