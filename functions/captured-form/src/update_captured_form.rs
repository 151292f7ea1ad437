//! `PUT /api/v1/captured_form/{captured_form_id}`: changes a captured form. Use it to correct what was entered. New
//! values replace all of the old ones, and are checked as those of a new one are.

use shared::prelude::*;

pub struct UpdateCapturedForm;

impl Operation for UpdateCapturedForm {
    type Path = CapturedFormId;
    type Query = ();
    type Body = Changes<CapturedForm>;
    type Reply = Updated<CapturedForm>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        change_form(cx, request.path, &request.body.0).await.map(Updated)
    }
}
