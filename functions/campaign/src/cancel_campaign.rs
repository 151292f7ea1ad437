//! `POST /api/v1/campaign/{campaign_id}/cancel`: cancels a campaign; contacts that are still queued are never sent.

use shared::prelude::*;

pub struct CancelCampaign;

impl Operation for CancelCampaign {
    type Path = CampaignId;
    type Query = ();
    type Body = ();
    type Reply = Updated<Campaign>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let id = request.path;
        match cx.table.cancel_campaign(id, cx.new_id(), cx.now()).await.on_missing("campaign_id")? {
            Ok(cancelled) => Ok(Updated(cancelled.seen())),
            Err(over) => Err(over.cannot_be_cancelled()),
        }
    }
}
