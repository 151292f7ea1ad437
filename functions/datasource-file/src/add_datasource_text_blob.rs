//! `POST /api/v1/datasource/{datasource_id}/text_blob`: creates a file with the text of the body, in one request. Use
//! it for a text; for any other file use `create-datasource-file`. If the user of the API key has a billing plan, the
//! words of the text count for this user.

use shared::prelude::*;

pub struct AddDatasourceTextBlob;

impl Operation for AddDatasourceTextBlob {
    type Path = DatasourceId;
    type Query = TextBlobQuery;
    type Body = TextBlob;
    type Reply = Created<UploadedFile>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (text, tenant) = (request.body.content, &cx.tenant);
        let new = request.query.record(&text, tenant.org())?;
        let row = cx.new_row(request.path);
        let metering = usage::of_words(cx, text.words(), row.id).await?;
        // The file is created first: bytes without a file would never be removed.
        let file: DatasourceFile = Create::insert_metered(cx, row, new, metering).await?;
        cx.service.bucket.put(&file.object(tenant), TEXT_TYPE, text.into_bytes()).await?;
        Ok(Created(UploadedFile { file, uploaded: true }))
    }
}
