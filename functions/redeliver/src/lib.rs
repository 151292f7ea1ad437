//! `POST /api/v1/outbound_webhook/{webhook_id}/logs/{delivery_id}/redeliver`: sends a delivery once more, from the beginning of the schedule.

use shared::prelude::*;

pub struct Redeliver;

input! {
    pub struct RedeliverPath {
        pub webhook_id: WebhookId,
        pub delivery_id: DeliveryId,
    }
}

impl Operation for Redeliver {
    const ROUTE: &'static Route = &routes::REDELIVER;
    type Path = RedeliverPath;
    type Query = ();
    type Body = ();
    type Reply = Updated<Delivery>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, now) = (request.path.webhook_id, cx.now());
        cx.table.get::<StoredWebhook>(id).await.on_missing("webhook_id")?.require_enabled()?;
        let asked = cx.table.redeliver(id.into(), request.path.delivery_id, cx.new_id(), now).await;
        Ok(Updated(asked.on_missing("delivery_id")?.delivery))
    }
}
