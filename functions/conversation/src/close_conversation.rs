//! `POST /api/v1/conversation/{conversation_id}/close`: ends a conversation, once; its webhook is told.

use shared::prelude::*;

pub struct CloseConversation;

impl Operation for CloseConversation {
    type Path = ConversationId;
    type Query = ();
    type Body = ();
    type Reply = Updated<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let id = request.path;
        match cx.table.close_conversation(id, cx.new_id(), cx.now()).await.on_missing("conversation_id")? {
            Changed::Done(closed) => Ok(Updated(closed)),
            Changed::Closed => Err(Conversation::is_closed_already()),
        }
    }
}
