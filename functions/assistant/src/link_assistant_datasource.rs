//! `POST /api/v1/assistant/{assistant_id}/data_source/{datasource_id}`: links a data source to an assistant, so that the assistant can use it. To link it again changes nothing.

use shared::prelude::*;

pub struct LinkAssistantDatasource;

impl Operation for LinkAssistantDatasource {
    type Path = (AssistantId, DatasourceId);
    type Query = ();
    type Body = ();
    type Reply = Created<LinkedDatasource>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let ((assistant_id, datasource_id), created_at) = (request.path, cx.now());
        let link = |(_, id)| DatasourceLink::new(id, datasource_id, assistant_id, created_at);
        let link = cx.table.insert_once(cx.new_row(assistant_id), Vec::new(), link).await;
        Ok(Created(link.on_missing_in_path("assistant_id")?.into()))
    }
}
