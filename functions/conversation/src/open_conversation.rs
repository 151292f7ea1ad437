//! `POST /api/v1/conversation`: begins a conversation of an assistant.

use shared::prelude::*;

pub struct OpenConversation;

impl Operation for OpenConversation {
    type Path = ();
    type Query = ();
    type Body = ConversationFields;
    type Reply = Created<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, now): (Uuid, _) = (cx.new_id(), cx.now());
        let opening = Conversation::open(ConversationId(id), request.body, now);
        match cx.table.open_conversation(cx.origin(id), |place| opening.at(place)).await? {
            Ok(opened) => Ok(Created(opened)),
            Err(needs) => Err(Error::unknown_in_body(needs.field())),
        }
    }
}
