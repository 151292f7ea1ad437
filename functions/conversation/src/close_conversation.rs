//! `POST /api/v1/conversation/{conversation_id}/close`: closes a conversation; its webhook gets an event.

use shared::prelude::*;

pub struct CloseConversation;

impl Operation for CloseConversation {
    type Path = ConversationId;
    type Query = ();
    type Body = ();
    type Reply = Updated<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let now = cx.now();
        let close = |conversation: &mut Conversation| conversation.close(now);
        let closed = cx.table.try_change(request.path, cx.new_id(), close).await.on_missing("conversation_id")?;
        Ok(Updated(closed))
    }
}
