//! `GET /api/v1/api_key`: a page of the organisation's API keys, oldest first, each with the day on which it was last
//! used. Use it to find keys that nobody uses. A key that has expired is listed for a week.

use shared::prelude::api_keys::*;

pub struct ListKeys;

impl Operation for ListKeys {
    type Path = ();
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<ListedKey>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        listed_keys(cx, &request.query).await
    }
}
