//! `POST /api/v1/usage`: counts what a runtime has used for a user, once for each `external_id`. Use it for what the
//! service cannot count itself. It is never refused because of a limit.

use shared::prelude::*;

pub struct ReportUsage;

impl Operation for ReportUsage {
    type Path = ();
    type Query = ();
    type Body = NewUsageReport;
    type Reply = Created<UsageReport>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(Created(usage::report(cx, &request.body).await?))
    }
}
