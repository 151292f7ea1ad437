//! `POST /api/v1/campaign/{campaign_id}/pause`: pauses a campaign; nothing more of it is sent until it is resumed.

use shared::prelude::*;

pub struct PauseCampaign;

impl Operation for PauseCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Updated<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let changed = cx.table.control_campaign(request.path, Campaign::pause, cx.new_id(), cx.now()).await;
        changed.on_missing("campaign_id")?.map(Updated)
    }
}
