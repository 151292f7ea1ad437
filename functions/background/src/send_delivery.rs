//! On the table's stream: sends the deliveries that are ready. Every minute: sends those that were deferred.

use shared::delivery::outbox::Outbox;
use shared::prelude::events::*;

pub struct SendDelivery;

impl StreamConsumer for SendDelivery {
    const NAME: &'static str = "send-delivery";

    async fn handle(cx: &EventContext<'_>, batch: &[Change]) -> Handled {
        Outbox::new(cx).map_err(|error| Unhandled::at(0, error))?.send(cx, batch).await
    }

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        Outbox::new(cx)?.send_deferred(cx).await
    }
}
