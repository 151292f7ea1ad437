//! Every minute: makes the deliveries ready that are due for a retry, and those that were ready but not sent. It also tells
//! of the conversations that have changed in the minute before.

use shared::prelude::events::*;

pub struct ReleaseDeliveries;

impl ScheduledTask for ReleaseDeliveries {
    const NAME: &'static str = "release-deliveries";

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        let (released, told) =
            (shared::delivery::outbox::release(cx).await, shared::reactions::tell::tell_pending(cx).await);
        released.and(told)
    }
}
