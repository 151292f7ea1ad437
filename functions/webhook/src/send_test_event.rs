//! `POST /api/v1/outbound_webhook/{webhook_id}/test`: sends a test event to a webhook. Use it to try out the receiving server.

use shared::prelude::*;

pub struct SendTestEvent;

impl Operation for SendTestEvent {
    type Path = WebhookId;
    type Query = ();
    type Body = ();
    type Reply = Created<Delivery>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, now) = (request.path, cx.now());
        cx.table.get::<Webhook>(id).await.on_missing("webhook_id")?.require_deliveries()?;
        let test = NewDelivery::test(EventId(cx.new_id()), now);
        let made = delivery::enqueue(&cx.table, id.into(), std::slice::from_ref(&test), now).await?;
        let delivery = made.first().map(|id| Delivery::new(*id, test, now));
        Ok(Created(delivery.ok_or_else(|| Error::Internal("a test event without a delivery".into()))?))
    }
}
