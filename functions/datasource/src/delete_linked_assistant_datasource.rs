//! `DELETE /api/v1/datasource/{datasource_id}/assistant/{assistant_id}`: deletes the link between a data source and an
//! assistant, which can use it no longer. Both stay.

use shared::prelude::*;

pub struct DeleteLinkedAssistantDatasource;

impl Operation for DeleteLinkedAssistantDatasource {
    type Path = (DatasourceId, AssistantId);
    type Query = ();
    type Body = ();
    type Reply = Deleted<LinkedDatasource>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (datasource, assistant) = request.path;
        // The whole path names the link, so the failure is reported at its last parameter.
        let link: DatasourceLink = cx.table.unlink(datasource, assistant).await.on_missing("assistant_id")?;
        Ok(Deleted(link.into()))
    }
}
