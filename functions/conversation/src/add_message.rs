//! `POST /api/v1/conversation/{conversation_id}/message`: adds a message to an open conversation. Use it for what a
//! person writes in your own chat, and for the answer of your runtime.

use shared::prelude::*;

pub struct AddMessage;

impl Operation for AddMessage {
    type Path = ConversationId;
    type Query = ();
    type Body = NewMessage;
    type Reply = Created<Message>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (conversation, id, now): (_, Uuid, _) = (request.path, cx.new_id(), cx.now());
        request.body.require_bot()?;
        let metering = usage::of_message(cx, &request.body, id).await?;
        let once = (cx.origin(id), metering);
        let said = conversation::add_message(&cx.table, conversation, id.into(), &request.body, once, now).await;
        match said.on_missing("conversation_id")? {
            Changed::Done(message) => Ok(Created(message)),
            Changed::Closed => Err(Conversation::is_closed_already()),
            Changed::Full => Err(Conversation::is_full()),
            Changed::Answered => Err(conversation::is_answered_already()),
            Changed::Unknown(issues) => Err(Error::Invalid(issues)),
        }
    }
}
