//! `POST /api/v1/conversation/{conversation_id}/message`: says something in an open conversation.

use shared::prelude::*;

pub struct AddMessage;

input! {
    pub struct AddMessagePath {
        pub conversation_id: ConversationId,
    }
}

impl Operation for AddMessage {
    const ROUTE: &'static Route = &routes::ADD_MESSAGE;
    type Path = AddMessagePath;
    type Query = ();
    type Body = NewMessage;
    type Reply = Created<Message>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (conversation, id, now): (_, Uuid, _) = (request.path.conversation_id, cx.new_id(), cx.now());
        let said = cx.table.add_message(conversation, id.into(), &request.body, cx.origin(id), now).await;
        match said.on_missing("conversation_id")? {
            Changed::Done(message) => Ok(Created(message)),
            Changed::Closed => Err(Conversation::is_closed_already()),
        }
    }
}
