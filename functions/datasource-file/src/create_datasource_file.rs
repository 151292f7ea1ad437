//! `POST /api/v1/datasource/{datasource_id}/file`: creates a file, and answers the request that uploads its bytes; a form has them with it. For a short text, use `add-datasource-text-blob`.

use shared::prelude::*;

pub struct CreateDatasourceFile;

impl Operation for CreateDatasourceFile {
    type Path = DatasourceId;
    type Query = FileQuery;
    type Body = FileBody;
    type Reply = Created<FileToUpload>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (bucket, tenant) = (&cx.service.bucket, &cx.tenant);
        let (new, content_type, bytes) = request.body.record(request.query, tenant.org())?;
        // The file is created first: bytes without a file would never be removed.
        let file: DatasourceFile = Create::insert(cx, request.path, new).await?;
        let (key, uploaded) = (file.object(tenant), bytes.is_some());
        if let Some(bytes) = bytes {
            bucket.put(&key, content_type.as_str(), bytes).await?;
        }
        let upload = bucket.upload(&key, file.size_bytes, content_type.as_str(), cx.now()).await?;
        Ok(Created(FileToUpload { file, uploaded, upload }))
    }
}
