//! `GET /api/v1/usage`: reads what a user has used up of its billing plan, and when the counts reset. Use it to show
//! what is left.

use shared::prelude::*;

pub struct ReadUsage;

impl Operation for ReadUsage {
    type Path = ();
    type Query = UsageQuery;
    type Body = ();
    type Reply = Retrieved<Usage>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(Retrieved(usage::read(cx, request.query.user_id).await?))
    }
}
