//! Runs `record-changed` under Lambda. Written by `cargo generate`.

use shared::runtime::lambda;
use shared::runtime::stream::Consumer;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run_consumer(Consumer::of::<background::RecordChanged>())
}
