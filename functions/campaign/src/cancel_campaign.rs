//! `POST /api/v1/campaign/{campaign_id}/cancel`: cancels a campaign; contacts that are still queued are never sent.

use shared::prelude::*;

pub struct CancelCampaign;

impl Operation for CancelCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Updated<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let changed = cx.table.control_campaign(request.path, Campaign::cancel, cx.new_id(), cx.now()).await;
        changed.on_missing("campaign_id")?.map(Updated)
    }
}
