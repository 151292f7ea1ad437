//! `POST /api/v1/campaign_contact/{campaign_contact_id}/outcome`: stores how the call or the message to a contact of a campaign ended. The connector calls it. Reports may come twice and in any order: the latest time counts.

use shared::prelude::*;

pub struct ReportCampaignContactOutcome;

impl Operation for ReportCampaignContactOutcome {
    type Path = CampaignContactId;
    type Query = ();
    type Body = NewOutcome;
    type Reply = Updated<CampaignContact>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::report(cx, request.path, request.body).await.map(Updated)
    }
}
