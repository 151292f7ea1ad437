//! `POST /api/v1/outbound_webhook`: registers an address that events are sent to.

use shared::prelude::*;

pub struct CreateWebhook;

impl Operation for CreateWebhook {
    type Path = ();
    type Query = ();
    type Body = New<Webhook>;
    type Reply = Created<WebhookWithSecret>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (new, now) = (request.body.record, cx.now());
        cx.require_public("endpoint", &new.endpoint).await?;
        let (secret, id): (_, Uuid) = (new_secret(cx.secret()?), cx.new_id());
        let make = |id: WebhookId| cx.begun(new.clone(), id).with_secret(secret.clone());
        let webhook = cx.table.insert(NewRow { of: (), id, origin: cx.origin(id), now }, make).await?;
        Ok(Created(WebhookWithSecret { webhook, secret }))
    }
}
