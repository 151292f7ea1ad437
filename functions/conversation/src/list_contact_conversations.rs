//! `GET /api/v1/conversation/by-contact/{contact_id}`: a page of the conversations with one contact, oldest first. Use
//! it to see what was said before.

use shared::prelude::*;

pub struct ListContactConversations;

impl Operation for ListContactConversations {
    type Path = ContactId;
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        conversation::with_contact(&cx.table, request.path, request.query).await.on_missing("contact_id")
    }
}
