//! `GET /api/v1/outbound_webhook/{webhook_id}`: one webhook, without its secret.

use shared::prelude::*;

pub struct ReadWebhook;

impl Operation for ReadWebhook {
    type Path = WebhookId;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<Webhook>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let found = cx.table.get::<StoredWebhook>(request.path).await.on_missing("webhook_id")?;
        Ok(Retrieved(found.webhook))
    }
}
