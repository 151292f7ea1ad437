//! `POST /api/v1/conversation/{conversation_id}/captured_intent`: notes that an intent was recognised in a
//! conversation. A runtime calls it. `list-conversations` finds the conversation by the intent.

use shared::prelude::*;

pub struct CreateCapturedIntent;

impl Operation for CreateCapturedIntent {
    type Path = ConversationId;
    type Query = ();
    type Body = NewCapturedIntent;
    type Reply = Created<CapturedIntent>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        capture_intent(cx, request.path, &request.body).await.map(Created)
    }
}
