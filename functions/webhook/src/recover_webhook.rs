//! `POST /api/v1/outbound_webhook/{webhook_id}/recover`: sends again what did not arrive, also what happened while the webhook was disabled. It is sent with the tick of each minute, so it delays no event that happens now. If the answer has `next`, ask again with it as `after`.

use shared::prelude::*;

pub struct RecoverWebhook;

impl Operation for RecoverWebhook {
    type Path = WebhookId;
    type Query = ();
    type Body = Recovery;
    type Reply = Updated<RecoveredEvents>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let Request { path: id, body: recovery, .. } = request;
        recovery::recover(&cx.table, id, &recovery, (cx.new_id(), cx.now())).await.map(Updated)
    }
}
