//! `PUT /api/v1/outbound_webhook/{webhook_id}`: changes a webhook; absent fields keep their values.

use shared::prelude::*;

pub struct UpdateWebhook;

impl Operation for UpdateWebhook {
    type Path = WebhookId;
    type Query = ();
    type Body = Changes<Webhook>;
    type Reply = Updated<Webhook>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, Changes(changes), now) = (request.path, request.body, cx.now());
        let mut moves = false;
        if let Patch::Set(endpoint) = &changes.endpoint {
            let webhook = cx.table.get::<Webhook>(id).await.on_missing("webhook_id")?;
            moves = webhook.endpoint != *endpoint;
            cx.require_public(&Webhook::changed_addresses(&changes)).await?;
        }
        let change = |webhook: &mut Webhook| webhook.update(&changes, now);
        let webhook = cx.table.change(id, cx.new_id(), change).await.on_missing("webhook_id")?;
        if webhook.enabled && (moves || changes.enabled != Patch::Absent) {
            // Its owner enables it because it works again, or gives it another address: its circuit closes, and it has not failed yet.
            cx.table.reset_endpoint_health((id.into(), false), now).await?;
        }
        Ok(Updated(webhook))
    }
}
