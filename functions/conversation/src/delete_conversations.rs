//! `DELETE /api/v1/conversation/multiple`: deletes up to 500 conversations, each as `delete-conversation` does. The answer has a result for each; an open one fails.

use shared::prelude::*;

pub struct DeleteConversations;

impl Operation for DeleteConversations {
    type Path = ();
    type Query = ();
    type Body = ManyIds<Conversation>;
    type Reply = Deleted<DeletedRecords>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        delete_many(cx, &request.body, Conversation::require_closed).await
    }
}
