//! On the table's stream: runs the reactions to each change of a record.

use shared::prelude::events::*;
use shared::reactions;

pub struct RecordChanged;

impl StreamConsumer for RecordChanged {
    const NAME: &'static str = "record-changed";
    const PATIENCE: i64 = 120;

    async fn handle(cx: &EventContext<'_>, batch: &[Change]) -> Handled {
        reactions::react(cx, batch).await
    }
}
