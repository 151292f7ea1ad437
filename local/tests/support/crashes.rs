//! Crashes the process at every write of some work, and makes the stream unreliable.

use std::time::Duration;

use fastrand::Rng;
use local::event_source::StreamFaults;

use crate::support::sending::Setup;
use crate::support::sweep::cases;

/// Faults of the stream: batches are repeated, split and delayed, each with this probability, and functions are killed.
pub fn unreliable_stream(seed: u64, probability: f64, killed: f64) -> StreamFaults {
    let (redelivered, split, delayed) = (probability, probability, probability);
    let (random, delay) = (Rng::with_seed(seed), Duration::from_millis(5));
    StreamFaults { redelivered, split, delayed, delay, killed, random, ..StreamFaults::default() }
}

/// Crashes the process at every write of `work`, before the write takes effect and after it, each time in its own
/// setup. Then `look` checks the setup. A first run without a crash counts the writes.
pub async fn crashes_everywhere<W>(
    prepare: impl AsyncFn() -> W,
    of: impl Fn(&W) -> &Setup,
    work: impl AsyncFn(&W),
    look: impl AsyncFn(&W, String),
) {
    // Boxed, as are the futures below, so that the future of the caller stays small.
    let undisturbed = Box::pin(prepare()).await;
    let faults = &of(&undisturbed).faults;
    faults.watch();
    Box::pin(work(&undisturbed)).await;
    let writes = faults.writes();
    faults.end();
    Box::pin(look(&undisturbed, "undisturbed".to_owned())).await;
    assert!(writes > 0, "`work` made no write");
    // In the last case every write takes effect, and the answer is lost.
    for after in cases(0..=writes) {
        let prepared = Box::pin(prepare()).await;
        let faults = &of(&prepared).faults;
        faults.die_after_writes(after);
        let died = faults.kill(Box::pin(work(&prepared))).await;
        let made = faults.writes();
        faults.end();
        // A run with fewer retries than the first one may not come so far.
        assert!(died || made < after, "nothing crashed after {after} of {writes} writes, but {made} were made");
        Box::pin(look(&prepared, format!("after {after} of {writes} writes"))).await;
    }
}
