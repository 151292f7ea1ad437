//! `DELETE /api/v1/form/{form_id}`: removes a form.

use shared::prelude::*;

pub struct DeleteForm;

impl Operation for DeleteForm {
    type Path = FormId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Form>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let removed = cx.table.remove::<Form>(request.path).await.on_missing("form_id")?;
        Ok(Deleted(removed))
    }
}
