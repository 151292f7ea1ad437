//! Runs a short `cargo faults`: the same acts and checks, without time limits.

use futures_util::future::join_all;
use local::fault_run::{FaultRunOptions, run};

use crate::support::sweep::cases;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_short_fault_run_holds() {
    // For most of its time a run waits until an attempt to send, or a call of the database, reaches its time limit. So the
    // runs are concurrent.
    let runs = cases(1..=3).into_iter().map(|seed| {
        tokio::spawn(async move { run(&FaultRunOptions::short(&repository::root(), seed), |_, _| {}).await })
    });
    for report in join_all(runs).await {
        let report = report.unwrap().unwrap();
        // The report also compares the waiting times of healthy endpoints with a run without faults.
        println!("{report}");
        assert!(report.holds(), "{report}");
    }
}
