//! `GET /api/v1/campaign/get/{campaign_id}`: a campaign, with how many of its contacts are in each state.

use shared::prelude::*;

pub struct ReadCampaign;

input! {
    pub struct ReadCampaignPath {
        pub campaign_id: CampaignId,
    }
}

impl Operation for ReadCampaign {
    const ROUTE: &'static Route = &routes::READ_CAMPAIGN;
    type Path = ReadCampaignPath;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let found = cx.table.get::<Campaign>(request.path.campaign_id).await.on_missing("campaign_id")?;
        Ok(Retrieved(found.seen()))
    }
}
