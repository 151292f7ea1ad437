//! `POST /api/v1/conversation/{conversation_id}/close`: ends a conversation, once; its webhook is told.

use shared::prelude::*;

pub struct CloseConversation;

input! {
    pub struct CloseConversationPath {
        pub conversation_id: ConversationId,
    }
}

impl Operation for CloseConversation {
    const ROUTE: &'static Route = &routes::CLOSE_CONVERSATION;
    type Path = CloseConversationPath;
    type Query = ();
    type Body = ();
    type Reply = Updated<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let id = request.path.conversation_id;
        match cx.table.close_conversation(id, cx.new_id(), cx.now()).await.on_missing("conversation_id")? {
            Changed::Done(closed) => Ok(Updated(closed)),
            Changed::Closed => Err(Conversation::is_closed_already()),
        }
    }
}
