//! `POST /api/v1/conversation/{conversation_id}/close`: closes a conversation, which then takes no messages. Use it
//! when nothing more is to be said. The webhook of its assistant gets the event `conversation.closed`.

use shared::prelude::*;

pub struct CloseConversation;

impl Operation for CloseConversation {
    type Path = ConversationId;
    type Query = ();
    type Body = OptionalBody<Closing>;
    type Reply = Updated<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (now, reason) = (cx.now(), Closing::reason(request.body));
        let close = |conversation: &mut Conversation| conversation.close(reason.clone(), now);
        let closed = cx.table.try_change(request.path, cx.new_id(), close).await.on_missing("conversation_id")?;
        Ok(Updated(closed))
    }
}
