//! `DELETE /api/v1/outbound_webhook/{webhook_id}`: removes a webhook; what is still on its way there is given up.

use shared::prelude::*;

pub struct DeleteWebhook;

impl Operation for DeleteWebhook {
    type Path = WebhookId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Webhook>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let id = request.path;
        let found = cx.table.get::<StoredWebhook>(id).await.on_missing("webhook_id")?;
        cx.table.remove_rows::<StoredWebhook>((), &[id], &[]).await.on_missing("webhook_id")?;
        Ok(Deleted(found.webhook))
    }
}
