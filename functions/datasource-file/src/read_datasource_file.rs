//! `GET /api/v1/datasource/datasourcefile/{datasourcefile_id}`: one file: whether its bytes are uploaded, and an address to download them.

use shared::prelude::*;

pub struct ReadDatasourceFile;

impl Operation for ReadDatasourceFile {
    type Path = DatasourceFileId;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<FileToDownload>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let file = cx.table.get::<DatasourceFile>(request.path).await.on_missing("datasourcefile_id")?;
        let (bucket, key) = (&cx.service.bucket, file.object(&cx.tenant));
        let uploaded = bucket.has(&key).await?;
        let download_url = if uploaded { Some(bucket.download(&key, cx.now()).await?) } else { None };
        Ok(Retrieved(FileToDownload { file, uploaded, download_url }))
    }
}
