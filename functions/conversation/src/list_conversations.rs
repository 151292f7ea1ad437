//! `GET /api/v1/conversation`: a page of the organisation's conversations, oldest first. Use it to find conversations,
//! such as the open ones. `status`, `assistant_id`, `widget_id`, `contact_id`, `includes_voice`, `intent_id` and dates
//! select some of them.

use shared::prelude::*;

pub struct ListConversations;

impl Operation for ListConversations {
    type Path = ();
    type Query = ConversationQuery;
    type Body = ();
    type Reply = Page<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(cx.table.list((), &request.query.0).await?)
    }
}
