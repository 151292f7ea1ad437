//! `GET /api/v1/audit`: lists which key has done what to which record, newest first. Use it to find out who changed a
//! record. A page names the cursor of the next one in `next`. An entry appears some seconds after its change.

use shared::prelude::*;

pub struct ListAudit;

impl Operation for ListAudit {
    type Path = ();
    type Query = AuditQuery;
    type Body = ();
    type Reply = Retrieved<AuditPage>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let days = cx.service.config.audit_days;
        Ok(Retrieved(audit::list(&cx.table, &request.query, days, cx.now()).await?))
    }
}
