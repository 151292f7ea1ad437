//! `DELETE /api/v1/datasource/{datasource_id}/assistant/{assistant_id}`: takes a data source away from an assistant.

use shared::prelude::*;

pub struct DeleteLinkedAssistantDatasource;

input! {
    pub struct LinkPath {
        pub datasource_id: DatasourceId,
        pub assistant_id: AssistantId,
    }
}

impl Operation for DeleteLinkedAssistantDatasource {
    const ROUTE: &'static Route = &routes::DELETE_LINKED_ASSISTANT_DATASOURCE;
    type Path = LinkPath;
    type Query = ();
    type Body = ();
    type Reply = Deleted<DatasourceLink>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let link = (request.path.datasource_id, request.path.assistant_id);
        // What is missing is the link, which the whole path names; its last parameter stands for it.
        let removed = cx.table.remove::<DatasourceLink>(link).await.on_missing("assistant_id")?;
        Ok(Deleted(removed))
    }
}
