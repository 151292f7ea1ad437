//! `GET /api/v1/export/{export_id}`: how far an export is, and once it is completed, an address to download its file. The key needs the scope to read each of its records.

use shared::prelude::*;

pub struct ReadExport;

impl Operation for ReadExport {
    type Path = ExportId;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<ExportToDownload>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let export = cx.table.get::<Export>(request.path).await.on_missing("export_id")?;
        export.require_scopes(cx.caller()?)?;
        Ok(Retrieved(ExportToDownload::of(export, &cx.service.bucket, &cx.tenant, cx.now()).await?))
    }
}
