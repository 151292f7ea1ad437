//! `DELETE /api/v1/intent/{intent_id}`: removes an intent.

use shared::prelude::*;

pub struct DeleteIntent;

impl Operation for DeleteIntent {
    type Path = IntentId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Intent>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let removed = cx.table.remove::<Intent>(request.path).await.on_missing("intent_id")?;
        Ok(Deleted(removed))
    }
}
