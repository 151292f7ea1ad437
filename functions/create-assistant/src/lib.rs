//! `POST /api/v1/assistant`: makes an assistant.

use shared::prelude::*;

pub struct CreateAssistant;

impl Operation for CreateAssistant {
    const ROUTE: &'static Route = &routes::CREATE_ASSISTANT;
    type Path = ();
    type Query = ();
    type Body = NewAssistant;
    type Reply = Created<Assistant>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let org = cx.own_org(request.body.org_id)?;
        let assistant = Assistant::new(cx.new_id(), org, request.body);
        match assistant.webhook_id {
            None => cx.table.put(assistant.id, &assistant).await?,
            Some(webhook) => cx
                .table
                .put_under::<Webhook, _>(webhook, assistant.id, &assistant)
                .await
                .on_missing_in_body("webhook_id")?,
        }
        Ok(Created(assistant))
    }
}
