//! `POST /api/v1/conversation/{conversation_id}/captured_form`: stores what was filled into a form in a conversation. A
//! runtime calls it as soon as it knows the values. They are checked against the fields of the form. The form's
//! `contact_mapping` writes them to the contact too.

use shared::prelude::*;

pub struct CreateCapturedForm;

impl Operation for CreateCapturedForm {
    type Path = ConversationId;
    type Query = ();
    type Body = NewCapturedForm;
    type Reply = Created<CapturedForm>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        capture_form(cx, request.path, &request.body).await.map(Created)
    }
}
