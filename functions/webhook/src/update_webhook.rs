//! `PUT /api/v1/outbound_webhook/{webhook_id}`: changes a webhook. Absent fields keep their values. To enable a disabled webhook, set `enabled`.

use shared::prelude::*;

pub struct UpdateWebhook;

impl Operation for UpdateWebhook {
    type Path = WebhookId;
    type Query = ();
    type Body = Changes<Webhook>;
    type Reply = Updated<Webhook>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, Changes(changes), now) = (request.path, request.body, cx.now());
        if let Patch::Set(_) = &changes.endpoint {
            cx.table.get::<Webhook>(id).await.on_missing("webhook_id")?;
            cx.require_public(&Webhook::changed_addresses(&changes)).await?;
        }
        let change = |webhook: &mut Webhook| {
            webhook.update(&changes, now);
            Ok::<_, Error>(())
        };
        // Its owner enables it because it works again, or changes its address: so its circuit closes, unless it was slow
        // within the hour, and its failure count starts at zero.
        let reset = |was: &Webhook, is: &Webhook| {
            let works = is.enabled && (is.endpoint != was.endpoint || changes.enabled != Patch::Absent);
            works.then(|| delivery::health::resetting(&cx.table, (id.into(), false), now))
        };
        cx.table.try_change_with(id, cx.new_id(), change, reset).await.on_missing("webhook_id").map(Updated)
    }
}
