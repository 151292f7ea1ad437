//! `GET /api/v1/campaign/list`: a page of the campaigns; the query can filter them by widget and status.

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
