//! `POST /api/v1/conversation`: opens a conversation with an assistant. Use it when a person begins to write in your
//! own chat. Add messages with `add-message`, and close it with `close-conversation`.

use shared::prelude::*;

pub struct OpenConversation;

impl Operation for OpenConversation {
    type Path = ();
    type Query = ();
    type Body = New<Conversation>;
    type Reply = Created<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let new = request.body.checked(cx.tenant.org(), Uuid::nil())?;
        conversation::idle::open(cx, new).await.map(Created)
    }
}
