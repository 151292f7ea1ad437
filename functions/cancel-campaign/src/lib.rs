//! `POST /api/v1/campaign/{campaign_id}/cancel`: stops what has not been sent of a campaign.

use shared::prelude::*;

pub struct CancelCampaign;

input! {
    pub struct CancelCampaignPath {
        pub campaign_id: CampaignId,
    }
}

impl Operation for CancelCampaign {
    const ROUTE: &'static Route = &routes::CANCEL_CAMPAIGN;
    type Path = CancelCampaignPath;
    type Query = ();
    type Body = ();
    type Reply = Updated<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let id = request.path.campaign_id;
        match cx.table.cancel_campaign(id, cx.new_id(), cx.now()).await.on_missing("campaign_id")? {
            Ok(cancelled) => Ok(Updated(cancelled.seen())),
            Err(over) => Err(over.cannot_be_cancelled()),
        }
    }
}
