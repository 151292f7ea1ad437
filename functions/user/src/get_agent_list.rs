//! `GET /api/v1/user/get_agent_list/`: a page of the organisation's users.

use shared::prelude::*;

pub struct GetAgentList;

impl Operation for GetAgentList {
    type Path = ();
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<User>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(cx.table.page::<User>((), &request.query).await?)
    }
}
