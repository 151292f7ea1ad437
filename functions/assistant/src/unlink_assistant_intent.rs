//! `DELETE /api/v1/assistant/{assistant_id}/intent/{intent_id}`: deletes the link between an intent and an assistant,
//! which looks for it no longer. Both stay.

use shared::prelude::*;

pub struct UnlinkAssistantIntent;

impl Operation for UnlinkAssistantIntent {
    type Path = (AssistantId, IntentId);
    type Query = ();
    type Body = ();
    type Reply = Deleted<LinkedIntent>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (assistant, intent) = request.path;
        // The whole path names the link, so the failure is reported at its last parameter.
        let link: IntentLink = cx.table.unlink(intent, assistant).await.on_missing("intent_id")?;
        Ok(Deleted(link.into()))
    }
}
