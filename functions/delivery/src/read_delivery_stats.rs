//! `GET /api/v1/outbound_webhook/{webhook_id}/stats`: reads how a webhook does: how many events of each hour arrived,
//! failed or wait, and how long the attempts took. Use it to see whether your server keeps up. Without dates it is
//! about the last 24 hours.

use shared::prelude::*;

pub struct ReadDeliveryStats;

impl Operation for ReadDeliveryStats {
    type Path = WebhookId;
    type Query = StatsQuery;
    type Body = ();
    type Reply = Retrieved<DeliveryStats>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(Retrieved(delivery::stats_of_webhook(&cx.table, request.path, &request.query, cx.now()).await?))
    }
}
