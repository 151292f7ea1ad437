//! `POST /api/v1/outbound_webhook`: registers an address that events are sent to.

use shared::prelude::*;

pub struct CreateWebhook;

impl Operation for CreateWebhook {
    type Path = ();
    type Query = ();
    type Body = NewWebhook;
    type Reply = Created<WebhookWithSecret>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        cx.require_public("endpoint", &request.body.endpoint).await?;
        let (secret, id): (_, Uuid) = (new_secret(cx.secret()?), cx.new_id());
        let make =
            |place| StoredWebhook::new(WebhookId(with_ordinal(id, place)), &request.body, secret.clone(), cx.now());
        let webhook = cx.table.append_once(cx.origin(id), cx.now(), make).await?;
        Ok(Created(WebhookWithSecret { webhook: webhook.webhook, secret }))
    }
}
