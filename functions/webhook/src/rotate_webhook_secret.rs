//! `POST /api/v1/outbound_webhook/{webhook_id}/rotate_secret`: makes a new secret for a webhook. Use it if others may
//! know the old one. Events have a signature of each of them for one more day.

use shared::prelude::*;

pub struct RotateWebhookSecret;

impl Operation for RotateWebhookSecret {
    type Path = WebhookId;
    type Query = ();
    type Body = ();
    type Reply = Updated<WebhookWithSecret>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (secret, now) = (new_secret(cx.secret()?), cx.now());
        let rotate = |webhook: &mut Webhook| webhook.rotate(&secret, now);
        let webhook = cx.table.change(request.path, cx.new_id(), rotate).await.on_missing("webhook_id")?;
        Ok(Updated(WebhookWithSecret { webhook, secret }))
    }
}
