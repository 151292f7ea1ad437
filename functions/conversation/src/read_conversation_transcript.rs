//! `GET /api/v1/conversation/{conversation_id}/transcript`: a page of the messages of a conversation, oldest first,
//! with the length of each. Use it for the messages alone.

use shared::prelude::*;

pub struct ReadConversationTranscript;

impl Operation for ReadConversationTranscript {
    type Path = ConversationId;
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<Message>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let found = conversation::transcribed(&cx.table, request.path, &request.query).await;
        Ok(found.on_missing("conversation_id")?.transcript)
    }
}
