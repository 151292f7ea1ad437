//! Every minute: makes the deliveries ready that are due for a retry, and those that were ready but not sent.

use shared::prelude::events::*;

pub struct ReleaseDeliveries;

impl ScheduledTask for ReleaseDeliveries {
    const NAME: &'static str = "release-deliveries";

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        shared::delivery::outbox::release(cx).await
    }
}
