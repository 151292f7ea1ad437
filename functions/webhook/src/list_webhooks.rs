//! `GET /api/v1/outbound_webhook/list`: a page of the webhooks, without their secrets.

use shared::prelude::*;

pub struct ListWebhooks;

impl Operation for ListWebhooks {
    type Path = ();
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<Webhook>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(cx.table.page::<StoredWebhook>((), &request.query).await?.map(|stored| stored.webhook))
    }
}
