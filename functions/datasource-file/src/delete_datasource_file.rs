//! `DELETE /api/v1/datasource/datasourcefile/{datasourcefile_id}`: removes a file of a data source.

use shared::prelude::*;

pub struct DeleteDatasourceFile;

impl Operation for DeleteDatasourceFile {
    type Path = DatasourceFileId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<DatasourceFile>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let removed = cx.table.remove::<DatasourceFile>(request.path).await.on_missing("datasourcefile_id")?;
        Ok(Deleted(removed))
    }
}
