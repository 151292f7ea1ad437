//! `DELETE /api/v1/campaign/{campaign_id}`: removes a campaign that is not being sent; its contacts follow by the table's stream.

use shared::prelude::*;

pub struct DeleteCampaign;

impl Operation for DeleteCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        cx.table.remove_campaign(request.path).await.on_missing("campaign_id")?.map(Deleted)
    }
}
