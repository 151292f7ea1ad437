//! Every minute: dispatches the next contacts of each campaign, within the rate limits of their widgets.

use shared::prelude::events::*;

pub struct SendCampaigns;

impl ScheduledTask for SendCampaigns {
    const NAME: &'static str = "send-campaigns";

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        shared::records::campaign::dispatch::send_campaigns(cx).await
    }
}
