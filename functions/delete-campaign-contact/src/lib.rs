//! `DELETE /api/v1/campaign_contact/{campaign_contact_id}`: removes a contact from a campaign.

use shared::prelude::*;

pub struct DeleteCampaignContact;

input! {
    pub struct DeleteCampaignContactPath {
        pub campaign_contact_id: CampaignContactId,
    }
}

impl Operation for DeleteCampaignContact {
    const ROUTE: &'static Route = &routes::DELETE_CAMPAIGN_CONTACT;
    type Path = DeleteCampaignContactPath;
    type Query = ();
    type Body = ();
    type Reply = Deleted<CampaignContact>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let id = request.path.campaign_contact_id;
        let removed = cx.table.remove_campaign_contact(id).await.on_missing("campaign_contact_id")?;
        Ok(Deleted(removed))
    }
}
