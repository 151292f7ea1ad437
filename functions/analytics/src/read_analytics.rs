//! `GET /api/v1/analytics`: counts over time: conversations, messages, captured data, sends, outcomes and deliveries,
//! by day, hour, or what they belong to. Use it for charts and reports. Each change counts once, some seconds after it.
//! Counts stay when their records are deleted.

use shared::prelude::*;

pub struct ReadAnalytics;

impl Operation for ReadAnalytics {
    type Path = ();
    type Query = AnalyticsQuery;
    type Body = ();
    type Reply = Retrieved<Analytics>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(Retrieved(analytics::read(&cx.table, &request.query, cx.now()).await?))
    }
}
