//! `GET /api/v1/conversation`: a page of the conversations, of one status or one assistant where the query says so.

use shared::prelude::*;

pub struct ListConversations;

impl Operation for ListConversations {
    type Path = ();
    type Query = ConversationQuery;
    type Body = ();
    type Reply = Page<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(cx.table.conversations(&request.query).await?)
    }
}
