//! `DELETE /api/v1/datasource/{datasource_id}/assistant/{assistant_id}`: takes a data source away from an assistant.

use shared::prelude::*;

pub struct DeleteLinkedAssistantDatasource;

impl Operation for DeleteLinkedAssistantDatasource {
    type Path = (DatasourceId, AssistantId);
    type Query = ();
    type Body = ();
    type Reply = Deleted<DatasourceLink>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let link = (request.path.0, request.path.1);
        // What is missing is the link, which the whole path names; its last parameter stands for it.
        let removed = cx.table.remove_single::<DatasourceLink>(link).await.on_missing("assistant_id")?;
        Ok(Deleted(removed))
    }
}
