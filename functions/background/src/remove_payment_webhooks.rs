//! Every minute: removes the webhooks at the payment provider whose agencies are deleted.

use shared::prelude::events::*;

pub struct RemovePaymentWebhooks;

impl ScheduledTask for RemovePaymentWebhooks {
    const NAME: &'static str = "remove-payment-webhooks";

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        shared::payments::retired_webhook::remove_retired_webhooks(cx).await
    }
}
