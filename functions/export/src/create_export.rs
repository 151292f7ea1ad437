//! `POST /api/v1/export`: begins to make a file of records. Use it to take all of them to another system. The key needs
//! the scope to read each of them.

use shared::prelude::*;

pub struct CreateExport;

impl Operation for CreateExport {
    type Path = ();
    type Query = ();
    type Body = New<Export>;
    type Reply = Created<Export>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let new = request.body.checked(cx.tenant.org(), Uuid::nil())?.checked(cx.caller()?, cx.now())?;
        Ok(Created(cx.table.insert(cx.new_row(()), |id: ExportId| cx.begun(new.clone(), id)).await?))
    }
}
