//! `POST /api/v1/outbound_webhook/{webhook_id}/rotate_secret`: a new secret; the old one goes on signing beside it for a day.

use shared::prelude::*;

pub struct RotateWebhookSecret;

impl Operation for RotateWebhookSecret {
    type Path = WebhookId;
    type Query = ();
    type Body = ();
    type Reply = Updated<WebhookWithSecret>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (secret, now) = (new_secret(cx.secret()?), cx.now());
        let rotate = |webhook: StoredWebhook| webhook.rotated(secret.clone(), now);
        let rotated = cx.table.change_webhook(request.path, cx.new_id(), rotate).await;
        Ok(Updated(WebhookWithSecret { webhook: rotated.on_missing("webhook_id")?.webhook, secret }))
    }
}
