//! `PUT /api/v1/outbound_webhook/{webhook_id}`: changes a webhook; what the body leaves out stays as it is.

use shared::prelude::*;

pub struct UpdateWebhook;

impl Operation for UpdateWebhook {
    type Path = WebhookId;
    type Query = ();
    type Body = WebhookChanges;
    type Reply = Updated<Webhook>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, changes, now) = (request.path, request.body, cx.now());
        if let Some(endpoint) = &changes.endpoint {
            cx.table.get::<StoredWebhook>(id).await.on_missing("webhook_id")?;
            cx.require_public("endpoint", endpoint).await?;
        }
        let change = |webhook: StoredWebhook| webhook.changed(changes.clone(), now);
        let webhook = cx.table.change_webhook(id, cx.new_id(), change).await.on_missing("webhook_id")?;
        if changes.enabled == Some(true) {
            // Whoever enables it has mended it: its deliveries are tried with everybody else's again.
            cx.table.keep_endpoint_health(id.into(), &Observed::mended(), now).await?;
        }
        Ok(Updated(webhook.webhook))
    }
}
