//! `POST /api/v1/campaign/run/{widget_id}`: runs a campaign at once: sends a message to each contact, or calls it, by
//! the type of the widget. To send later, use `create-campaign`.

use shared::prelude::*;

pub struct RunCampaign;

impl Operation for RunCampaign {
    type Path = WidgetId;
    type Query = ();
    type Body = NewCampaign;
    type Reply = Created<CampaignRun>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::run(cx, request.path, request.body, |_| Ok(())).await.map(Created)
    }
}
