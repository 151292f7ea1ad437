//! `POST /api/v1/conversation/{conversation_id}/outcome`: stores how a single call or message ended, as `result` of its conversation. The connector calls it. Reports may come twice and in any order: the latest time counts.

use shared::prelude::*;

pub struct ReportConversationOutcome;

impl Operation for ReportConversationOutcome {
    type Path = ConversationId;
    type Query = ();
    type Body = NewOutcome;
    type Reply = Updated<Conversation>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        conversation::report(cx, request.path, request.body).await.map(Updated)
    }
}
