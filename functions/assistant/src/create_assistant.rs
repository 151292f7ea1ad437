//! `POST /api/v1/assistant`: makes an assistant.

use shared::prelude::*;

pub struct CreateAssistant;

impl Operation for CreateAssistant {
    type Path = ();
    type Query = ();
    type Body = AssistantFields;
    type Reply = Created<Assistant>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let org_id = Some(cx.own_org(request.body.org_id)?);
        let assistant = Assistant { id: cx.new_id(), fields: AssistantFields { org_id, ..request.body } };
        match assistant.fields.webhook_id {
            None => cx.table.put(assistant.id, &assistant).await?,
            Some(webhook) => cx
                .table
                .put_under::<StoredWebhook, _>(webhook, assistant.id, &assistant)
                .await
                .on_missing_in_body("webhook_id")?,
        }
        Ok(Created(assistant))
    }
}
