//! Runs `release-deliveries` under Lambda.

use shared::schedule::Scheduled;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run_scheduled(Scheduled::of::<release_deliveries::ReleaseDeliveries>())
}
