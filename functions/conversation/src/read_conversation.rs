//! `GET /api/v1/conversation/{conversation_id}`: one conversation, with a page of its messages. Use it to show a chat
//! with its state.

use shared::prelude::*;

pub struct ReadConversation;

impl Operation for ReadConversation {
    type Path = ConversationId;
    type Query = PageQuery;
    type Body = ();
    type Reply = Retrieved<Transcribed>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let found = conversation::transcribed(&cx.table, request.path, &request.query).await;
        Ok(Retrieved(found.on_missing("conversation_id")?))
    }
}
