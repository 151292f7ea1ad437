//! `DELETE /api/v1/conversation/{conversation_id}`: deletes a closed conversation with its messages, and with what was
//! captured in it. If it is open, use `close-conversation` first.

use shared::prelude::*;

pub struct DeleteConversation;

impl Operation for DeleteConversation {
    type Path = ConversationId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let removed = cx.table.remove_if(request.path, Conversation::require_closed).await;
        removed.on_missing("conversation_id").map(Deleted)
    }
}
