//! `GET /api/v1/outbound_webhook/{webhook_id}/logs`: a page of the deliveries to a webhook, with their attempts. Use it to see why an event did not arrive.

use shared::prelude::*;

pub struct ListDeliveries;

impl Operation for ListDeliveries {
    type Path = WebhookId;
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<Delivery>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        delivery::of_webhook(&cx.table, request.path, &request.query).await.on_missing("webhook_id")
    }
}
