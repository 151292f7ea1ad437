//! `GET /api/v1/agency/billing/{agency_id}/check_payment_webhook`: asks the payment provider for the state of an agency's webhook. Use it to see whether payments are set up.

use shared::payments::provider::PaymentProvider;
use shared::prelude::*;

pub struct CheckPaymentWebhook;

impl Operation for CheckPaymentWebhook {
    type Path = AgencyId;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<PaymentWebhookState>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let agency = cx.table.get::<Agency>(request.path).await.on_missing("agency_id")?;
        let (Some(key), Some(webhook)) = (agency.payment_api_key(), agency.payment_webhook) else {
            return Ok(Retrieved(PaymentWebhookState::default()));
        };
        let provider = PaymentProvider::new(&cx.service.config.payment_api_base, &key);
        Ok(Retrieved(provider.read_webhook(&webhook.payment_webhook_id).await?))
    }
}
