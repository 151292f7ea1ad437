//! `GET /api/v1/outbound_webhook/{webhook_id}/logs`: a page of the deliveries to a webhook, with their attempts. Use it to see why an event did not arrive. With `state`, `event`, `date_from`, `date_to` or `after`, a request looks at 1,000 deliveries at most: `next` is the value of `after` for the deliveries after the page, until it is null.

use shared::prelude::*;

pub struct ListDeliveries;

impl Operation for ListDeliveries {
    type Path = WebhookId;
    type Query = DeliveryQuery;
    type Body = ();
    type Reply = DeliveryPage;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        delivery::of_webhook(&cx.table, request.path, &request.query).await.on_missing("webhook_id")
    }
}
