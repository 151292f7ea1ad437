//! `DELETE /api/v1/datasource/{datasource_id}/assistant/{assistant_id}`: removes the link between a data source and an assistant.

use shared::prelude::*;

pub struct DeleteLinkedAssistantDatasource;

impl Operation for DeleteLinkedAssistantDatasource {
    type Path = (DatasourceId, AssistantId);
    type Query = ();
    type Body = ();
    type Reply = Deleted<DatasourceLink>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let link = (request.path.0, request.path.1);
        // The whole path names the link, so the failure is reported at its last parameter.
        let removed = cx.table.remove_single::<DatasourceLink>(link).await.on_missing("assistant_id")?;
        Ok(Deleted(removed))
    }
}
