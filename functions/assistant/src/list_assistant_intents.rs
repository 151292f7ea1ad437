//! `GET /api/v1/assistant/{assistant_id}/intent`: a page of the intents that are linked to an assistant. Use it to see
//! what the assistant looks for.

use shared::prelude::*;

pub struct ListAssistantIntents;

impl Operation for ListAssistantIntents {
    type Path = AssistantId;
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<Intent>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let intent = |link: &IntentLink| link.intent_id;
        cx.table.list_named(request.path, &request.query, intent).await.on_missing("assistant_id")
    }
}
