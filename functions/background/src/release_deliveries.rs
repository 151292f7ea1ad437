//! Every minute: makes the deliveries ready that are due for a retry, and those that were ready but not sent. Then it closes
//! idle conversations, and emits events of the conversations that have changed.

use shared::prelude::events::*;
use shared::reactions::emit::emit_pending;
use shared::records::conversation::idle::close_idle;

pub struct ReleaseDeliveries;

impl ScheduledTask for ReleaseDeliveries {
    const NAME: &'static str = "release-deliveries";

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        let released = shared::delivery::outbox::release(cx).await;
        // A delivery that fails does not keep conversations open, and neither keeps events back.
        let closed = close_idle(cx).await;
        released.and(closed).and(emit_pending(cx).await)
    }
}
