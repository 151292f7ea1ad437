//! Runs a short `cargo faults`: the same acts and checks, without time limits.
//!
//! It is a separate program, so that the other tests do not slow it.

use futures_util::future::join_all;
use local::fault_run::{FaultRunOptions, run};

/// The seeds of the runs: one, which is printed, or all three with `SWEEP=all`, as in CI.
#[expect(clippy::disallowed_methods, reason = "this variable is for tests, not for the service")]
fn seeds() -> Vec<u64> {
    match std::env::var("SWEEP") {
        Ok(all) if all == "all" => vec![1, 2, 3],
        Ok(seed) => vec![seed.parse().unwrap_or_else(|_| panic!("SWEEP is `all` or a seed, not `{seed}`"))],
        Err(_) => vec![fastrand::u64(1..=3)],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_short_fault_run_holds() {
    // A run mostly waits for silent endpoints and lost calls, so several run together.
    let runs = seeds().into_iter().map(|seed| {
        tokio::spawn(async move { run(&FaultRunOptions::short(&repository::root(), seed), |_, _| {}).await })
    });
    for report in join_all(runs).await {
        let report = report.unwrap().unwrap();
        // The report also compares the waiting times of healthy endpoints with a run without faults.
        println!("{report}");
        assert!(report.holds(), "{report}");
    }
}
