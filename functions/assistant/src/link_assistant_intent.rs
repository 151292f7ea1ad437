//! `POST /api/v1/assistant/{assistant_id}/intent/{intent_id}`: links an intent to an assistant, so that the assistant looks for it. To link it again changes nothing.

use shared::prelude::*;

pub struct LinkAssistantIntent;

impl Operation for LinkAssistantIntent {
    type Path = (AssistantId, IntentId);
    type Query = ();
    type Body = ();
    type Reply = Created<LinkedIntent>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let ((assistant_id, intent_id), created_at) = (request.path, cx.now());
        let link = |(_, id)| IntentLink::new(id, intent_id, assistant_id, created_at);
        let link = cx.table.insert_once(cx.new_row(assistant_id), Vec::new(), link).await;
        Ok(Created(link.on_missing_in_path("assistant_id")?.into()))
    }
}
