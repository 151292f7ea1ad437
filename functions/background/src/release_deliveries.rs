//! Every minute: makes the deliveries ready that are due for a retry, and those that were ready but not sent; then closes idle conversations.

use shared::prelude::events::*;
use shared::records::conversation::idle::close_idle;

pub struct ReleaseDeliveries;

impl ScheduledTask for ReleaseDeliveries {
    const NAME: &'static str = "release-deliveries";

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        let released = shared::delivery::outbox::release(cx).await;
        // A delivery that fails does not keep conversations open.
        released.and(close_idle(cx).await)
    }
}
