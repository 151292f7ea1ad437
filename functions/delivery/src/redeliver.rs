//! `POST /api/v1/outbound_webhook/{webhook_id}/logs/{delivery_id}/redeliver`: sends a delivery once more, under the same event id. Use it once the receiving server works again.

use shared::prelude::*;

pub struct Redeliver;

impl Operation for Redeliver {
    type Path = (WebhookId, DeliveryId);
    type Query = ();
    type Body = ();
    type Reply = Updated<Delivery>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, now) = (request.path.0, cx.now());
        cx.table.get::<Webhook>(id).await.on_missing("webhook_id")?.require_deliveries()?;
        let asked = delivery::redeliver(&cx.table, id.into(), request.path.1, cx.new_id(), now).await;
        Ok(Updated(asked.on_missing("delivery_id")?))
    }
}
