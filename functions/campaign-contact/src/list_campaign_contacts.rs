//! `GET /api/v1/campaign/contact/list/{campaign_id}`: a page of a campaign's contacts, each with its status. Use it to
//! see whom a campaign has reached, and why the others have failed.

use shared::prelude::*;

pub struct ListCampaignContacts;

impl Operation for ListCampaignContacts {
    type Path = CampaignId;
    type Query = PageQuery;
    type Body = ();
    type Reply = Page<CampaignContact>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::list_contacts(&cx.table, request.path, &request.query).await.on_missing("campaign_id")
    }
}
