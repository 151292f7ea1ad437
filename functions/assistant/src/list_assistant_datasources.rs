//! `GET /api/v1/assistant/{assistant_id}/data_source`: a page of the data sources that are linked to an assistant. Use
//! it to see what the assistant can look up.

use shared::prelude::*;

pub struct ListAssistantDatasources;

impl Operation for ListAssistantDatasources {
    type Path = AssistantId;
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<Datasource>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let datasource = |link: &DatasourceLink| link.datasource_id;
        cx.table.list_named(request.path, &request.query, datasource).await.on_missing("assistant_id")
    }
}
