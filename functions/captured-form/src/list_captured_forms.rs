//! `GET /api/v1/capturedform/{form_id}`: a page of what was filled into a form, oldest first. Use it to read what all
//! people have entered. `conversation_id` selects what one conversation has.

use shared::prelude::*;

pub struct ListCapturedForms;

impl Operation for ListCapturedForms {
    type Path = FormId;
    type Query = CapturedFormQuery;
    type Body = ();
    type Reply = Page<CapturedForm>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        forms_of_form(&cx.table, request.path, request.query).await.on_missing("form_id")
    }
}
