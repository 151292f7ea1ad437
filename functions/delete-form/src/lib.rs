//! `DELETE /api/v1/form/{form_id}`: removes a form.

use shared::prelude::*;

pub struct DeleteForm;

input! {
    pub struct DeleteFormPath {
        pub form_id: FormId,
    }
}

impl Operation for DeleteForm {
    const ROUTE: &'static Route = &routes::DELETE_FORM;
    type Path = DeleteFormPath;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Form>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let removed = cx.table.remove::<Form>(request.path.form_id).await.on_missing("form_id")?;
        Ok(Deleted(removed))
    }
}
