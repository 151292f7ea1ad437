//! `GET /api/v1/export`: a page of the exports of the last week, oldest first, each with how far it is. Use it to find
//! a file that was made before.

use shared::prelude::*;

pub struct ListExports;

impl Operation for ListExports {
    type Path = ();
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<Export>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(cx.table.page::<Export>((), &request.query).await?.map(Export::with_progress))
    }
}
