//! `GET /api/v1/agency/billing/{agency_id}/setup_payment_webhook`: registers an agency's webhook at the payment provider, or brings it up to date. Use it once the agency has a `payment_api_key`.

use shared::payments::provider::{EVENTS, PaymentProvider, SetupFailure, idempotency_key};
use shared::payments::retired_webhook::{keep_webhook, point_to_webhook};
use shared::prelude::*;

pub struct SetupPaymentWebhook;

impl Operation for SetupPaymentWebhook {
    type Path = AgencyId;
    type Query = ();
    type Body = ();
    type Reply = Either<Created<PaymentWebhook>, Updated<PaymentWebhook>>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let id = request.path;
        let mut agency = cx.table.get::<Agency>(id).await.on_missing("agency_id")?;
        cx.table.open(&mut agency).await?;
        let key = agency.payment_api_key().ok_or_else(|| not_configured("agency_id"))?;
        let provider = PaymentProvider::new(&cx.service.config.payment_api_base, &key);
        let url = format!("{}/api/v1/agency/webhook/payment/{id}", cx.base_url);
        let failed = agency.failed_setups.unwrap_or_default();
        let known = agency.payment_webhook.as_ref().map(|webhook| webhook.payment_webhook_id.as_str());
        if let Some(webhook) = known
            && provider.update_webhook(webhook, &url).await?
        {
            point_to_webhook(&cx.table, &agency, cx.new_id()).await.on_missing("agency_id")?;
            return Ok(Either::Second(Updated(PaymentWebhook::new(id, webhook, url, &EVENTS, SetupStatus::Updated))));
        }
        let made = provider.create_webhook(&url, &idempotency_key(id, known, failed, &url)).await;
        if let Err(SetupFailure::Definitely(_)) = &made {
            // Several concurrent requests may fail with the same idempotency key; together they count once.
            let count = |agency: &mut Agency| agency.failed_setups = agency.failed_setups.max(Some(failed + 1));
            cx.table.change(id, cx.new_id(), count).await.on_missing("agency_id")?;
        }
        let webhook = made?;
        keep_webhook(&cx.table, (&agency, cx.new_id()), &webhook, cx.now()).await.on_missing("agency_id")?;
        Ok(Either::First(Created(PaymentWebhook::new(
            id,
            &webhook.payment_webhook_id,
            url,
            &EVENTS,
            SetupStatus::Created,
        ))))
    }
}

fn not_configured(parameter: &'static str) -> Error {
    Error::Conflict {
        at: Location::path().name(parameter),
        kind: "payment_not_configured",
        message: "The agency's billing_plan has no payment_api_key",
    }
}
