//! Every minute: goes on with the exports, and removes those that have expired.

use shared::prelude::events::*;

pub struct RunExports;

impl ScheduledTask for RunExports {
    const NAME: &'static str = "run-exports";

    async fn tick(cx: &EventContext<'_>) -> Result<()> {
        shared::records::export::run_exports(cx).await
    }
}
