//! `DELETE /api/v1/outbound_webhook/{webhook_id}`: removes a webhook; what is still on its way there is given up.

use shared::prelude::*;

pub struct DeleteWebhook;

input! {
    pub struct DeleteWebhookPath {
        pub webhook_id: WebhookId,
    }
}

impl Operation for DeleteWebhook {
    const ROUTE: &'static Route = &routes::DELETE_WEBHOOK;
    type Path = DeleteWebhookPath;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Webhook>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let id = request.path.webhook_id;
        let found = cx.table.get::<StoredWebhook>(id).await.on_missing("webhook_id")?;
        cx.table.remove_rows::<StoredWebhook>((), &[id], &[]).await.on_missing("webhook_id")?;
        Ok(Deleted(found.webhook))
    }
}
