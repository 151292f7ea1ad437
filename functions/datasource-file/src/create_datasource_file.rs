//! `POST /api/v1/datasource/{datasource_id}/file`: creates a file, and answers the request that uploads its bytes. For a short text, use `add-datasource-text-blob`.

use shared::prelude::*;

pub struct CreateDatasourceFile;

impl Operation for CreateDatasourceFile {
    type Path = DatasourceId;
    type Query = ();
    type Body = NewFile;
    type Reply = Created<FileToUpload>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (body, tenant) = (request.body, &cx.tenant);
        let content_type = body.content_type.clone();
        let file: DatasourceFile = Create::insert(cx, request.path, body.record(tenant.org())?).await?;
        let (key, size) = (file.object(tenant), file.size_bytes);
        let upload = cx.service.bucket.upload(&key, size, content_type.as_str(), cx.now()).await?;
        Ok(Created(FileToUpload { file, upload }))
    }
}
