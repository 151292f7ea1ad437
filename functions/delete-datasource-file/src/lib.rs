//! `DELETE /api/v1/datasource/datasourcefile/{datasourcefile_id}`: removes a file of a data source.

use shared::prelude::*;

pub struct DeleteDatasourceFile;

input! {
    pub struct DeleteDatasourceFilePath {
        pub datasourcefile_id: DatasourceFileId,
    }
}

impl Operation for DeleteDatasourceFile {
    const ROUTE: &'static Route = &routes::DELETE_DATASOURCE_FILE;
    type Path = DeleteDatasourceFilePath;
    type Query = ();
    type Body = ();
    type Reply = Deleted<DatasourceFile>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let removed =
            cx.table.remove::<DatasourceFile>(request.path.datasourcefile_id).await.on_missing("datasourcefile_id")?;
        Ok(Deleted(removed))
    }
}
