//! Runs a short `cargo faults`: the same acts and checks, without time limits.
//!
//! It is a separate program, so that the other tests do not slow it.

use futures_util::future::join_all;
use local::fault_run::{FaultRunOptions, run};

#[expect(dead_code, reason = "the tests of the stack call its other functions")]
#[path = "support/sweep.rs"]
mod sweep;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_short_fault_run_holds() {
    // A run mostly waits for silent endpoints and lost calls, so several run together.
    let runs = sweep::cases(1..=3).into_iter().map(|seed| {
        tokio::spawn(async move { run(&FaultRunOptions::short(&repository::root(), seed), |_, _| {}).await })
    });
    for report in join_all(runs).await {
        let report = report.unwrap().unwrap();
        // The report also compares the waiting times of healthy endpoints with a run without faults.
        println!("{report}");
        assert!(report.holds(), "{report}");
    }
}
