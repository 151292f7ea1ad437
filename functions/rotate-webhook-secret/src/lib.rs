//! `POST /api/v1/outbound_webhook/{webhook_id}/rotate_secret`: a new secret; the old one goes on signing beside it for a day.

use shared::prelude::*;

pub struct RotateWebhookSecret;

input! {
    pub struct RotateWebhookSecretPath {
        pub webhook_id: WebhookId,
    }
}

impl Operation for RotateWebhookSecret {
    const ROUTE: &'static Route = &routes::ROTATE_WEBHOOK_SECRET;
    type Path = RotateWebhookSecretPath;
    type Query = ();
    type Body = ();
    type Reply = Updated<WebhookWithSecret>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (secret, now) = (new_secret(cx.secret()?), cx.now());
        let rotate = |webhook: StoredWebhook| webhook.rotated(secret.clone(), now);
        let rotated = cx.table.change_webhook(request.path.webhook_id, cx.new_id(), rotate).await;
        Ok(Updated(WebhookWithSecret { webhook: rotated.on_missing("webhook_id")?.webhook, secret }))
    }
}
