//! `POST /api/v1/outbound_webhook`: registers the address of a server that gets events. Use it to hear of changes as
//! they happen. The answer has the secret that signs them, this once.

use shared::prelude::*;

pub struct CreateWebhook;

impl Operation for CreateWebhook {
    type Path = ();
    type Query = ();
    type Body = New<Webhook>;
    type Reply = Created<WebhookWithSecret>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let new = request.body.record;
        cx.require_public(&new.addresses()).await?;
        let secret = new_secret(cx.secret()?);
        let make = |id: WebhookId| cx.begun(new.clone(), id).with_secret(secret.clone());
        let webhook = cx.table.insert(cx.new_row(()), make).await?;
        Ok(Created(WebhookWithSecret { webhook, secret }))
    }
}
