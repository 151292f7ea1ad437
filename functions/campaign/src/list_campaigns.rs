//! `GET /api/v1/campaign/list`: a page of the organisation's campaigns, oldest first. Use it to see which ones are
//! being sent. `widget_id` and `status` select some of them.

use shared::prelude::*;

pub struct ListCampaigns;

impl Operation for ListCampaigns {
    type Path = ();
    type Query = ListQuery<Campaign>;
    type Body = ();
    type Reply = Page<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(campaign::list(&cx.table, &request.query).await?)
    }
}
