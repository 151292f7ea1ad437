//! Runs `run-exports` under Lambda. Written by `cargo generate`.

use shared::runtime::lambda;
use shared::runtime::schedule::Scheduled;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run_scheduled(Scheduled::of::<background::RunExports>())
}
