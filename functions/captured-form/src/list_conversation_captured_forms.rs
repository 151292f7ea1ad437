//! `GET /api/v1/conversation/{conversation_id}/captured_form`: a page of the forms that were filled in in a
//! conversation, oldest first. Use it to read what one person has entered.

use shared::prelude::*;

pub struct ListConversationCapturedForms;

impl Operation for ListConversationCapturedForms {
    type Path = ConversationId;
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<CapturedForm>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        forms_of_conversation(&cx.table, request.path, request.query).await.on_missing("conversation_id")
    }
}
