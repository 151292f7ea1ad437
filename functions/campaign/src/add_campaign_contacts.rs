//! `POST /api/v1/campaign/{campaign_id}/contact`: adds contacts to a campaign with a schedule. The next execution sends to them. A contact that is in the campaign stays as it is.

use shared::prelude::*;

pub struct AddCampaignContacts;

impl Operation for AddCampaignContacts {
    type Path = CampaignId;
    type Query = ();
    type Body = MoreContacts;
    type Reply = Created<AddedContacts>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::add_contacts(cx, request.path, request.body).await.map(Created)
    }
}
