//! Every minute: campaigns go on where they stand, at the rate that their widgets are allowed.

use shared::prelude::events::*;

pub struct SendCampaigns;

impl ScheduledTask for SendCampaigns {
    const NAME: &'static str = "send-campaigns";

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        shared::records::campaign::dispatch::send_campaigns(cx).await
    }
}
