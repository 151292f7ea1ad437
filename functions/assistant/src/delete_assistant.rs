//! `DELETE /api/v1/assistant/{assistant_id}`: deletes an assistant. It no longer counts for the user for whom it was made.

use std::convert::Infallible;

use shared::prelude::*;

pub struct DeleteAssistant;

impl Operation for DeleteAssistant {
    type Path = AssistantId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Assistant>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let uncounted = |assistant: &Assistant| assistant.metered_user_id.map(|user| cx.table.without_bot(user));
        let removed = cx.table.remove_with(request.path, |_| Ok::<_, Infallible>(()), uncounted).await;
        Ok(Deleted(removed.map_err(shared::table::TableError::from).on_missing("assistant_id")?))
    }
}
