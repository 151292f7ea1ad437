//! `GET /api/v1/link_tag_entity/list`: a page of the links between tags and entities.

use shared::prelude::*;

pub struct ReadLinkTagEntityList;

impl Operation for ReadLinkTagEntityList {
    type Path = ();
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<Link>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(cx.table.page::<Link>((), &request.query).await?)
    }
}
