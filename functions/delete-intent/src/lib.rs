//! `DELETE /api/v1/intent/{intent_id}`: removes an intent.

use shared::prelude::*;

pub struct DeleteIntent;

input! {
    pub struct DeleteIntentPath {
        pub intent_id: IntentId,
    }
}

impl Operation for DeleteIntent {
    const ROUTE: &'static Route = &routes::DELETE_INTENT;
    type Path = DeleteIntentPath;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Intent>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let removed = cx.table.remove::<Intent>(request.path.intent_id).await.on_missing("intent_id")?;
        Ok(Deleted(removed))
    }
}
