//! `GET /api/v1/outbound_webhook/{webhook_id}`: one webhook, without its secret.

use shared::prelude::*;

pub struct ReadWebhook;

input! {
    pub struct ReadWebhookPath {
        pub webhook_id: WebhookId,
    }
}

impl Operation for ReadWebhook {
    const ROUTE: &'static Route = &routes::READ_WEBHOOK;
    type Path = ReadWebhookPath;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<Webhook>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let found = cx.table.get::<StoredWebhook>(request.path.webhook_id).await.on_missing("webhook_id")?;
        Ok(Retrieved(found.webhook))
    }
}
