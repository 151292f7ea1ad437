//! `GET /api/v1/datasource/datasourcefile/{datasourcefile_id}`: one file: whether its bytes are uploaded, and an
//! address to download them. Use it to wait for an upload, and to download a file.

use shared::prelude::*;

pub struct ReadDatasourceFile;

impl Operation for ReadDatasourceFile {
    type Path = DatasourceFileId;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<FileToDownload>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let file = cx.table.get::<DatasourceFile>(request.path).await.on_missing("datasourcefile_id")?;
        Ok(Retrieved(FileToDownload::find(file, &cx.service.bucket, &cx.tenant, cx.now()).await?))
    }
}
