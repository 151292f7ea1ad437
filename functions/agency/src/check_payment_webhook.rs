//! `GET /api/v1/agency/billing/{agency_id}/check_payment_webhook`: asks the payment provider for the state of an agency's webhook. Use it to see whether payments are set up, and which checkouts were refused.

use shared::payments::provider::PaymentProvider;
use shared::prelude::*;

pub struct CheckPaymentWebhook;

impl Operation for CheckPaymentWebhook {
    type Path = AgencyId;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<PaymentWebhookState>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let mut agency = cx.table.get::<Agency>(request.path).await.on_missing("agency_id")?;
        cx.table.open(&mut agency).await?;
        let refused_checkouts = agency.refused(cx.now());
        let state = match (agency.payment_api_key(), agency.payment_webhook) {
            (Some(key), Some(webhook)) => {
                let provider = PaymentProvider::new(&cx.service.config.payment_api_base, &key);
                provider.read_webhook(&webhook.payment_webhook_id).await?
            }
            _ => PaymentWebhookState::default(),
        };
        Ok(Retrieved(PaymentWebhookState { refused_checkouts, ..state }))
    }
}
