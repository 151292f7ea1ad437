//! Runs `record-changed` under Lambda. Written by `UPDATE=1 cargo test`.

use shared::runtime::lambda;
use shared::runtime::stream::Consumer;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run_consumer(Consumer::of::<background::RecordChanged>())
}
