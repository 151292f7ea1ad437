//! Every minute: deliveries whose time has come are made ready, and so are those that nobody has sent.

use shared::prelude::events::*;

pub struct ReleaseDeliveries;

impl ScheduledTask for ReleaseDeliveries {
    const NAME: &'static str = "release-deliveries";

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        shared::delivery::outbox::release(cx).await
    }
}
