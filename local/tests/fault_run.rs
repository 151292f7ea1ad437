//! The fault run in short: the same acts and the same checks as `cargo faults`, of which nothing is timed.
//!
//! It is a program of its own, so that it does not share the machine with all the other tests.

use std::path::Path;

use futures_util::future::join_all;
use local::fault_run::{FaultRunOptions, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_goes_wrong_all_that_happened_arrives_and_nothing_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // Most of the time one waits for endpoints that never answer and calls that are lost: that one does together.
    let runs =
        (1..=3).map(|seed| tokio::spawn(async move { run(&FaultRunOptions::short(root, seed), |_, _| {}).await }));
    for report in join_all(runs).await {
        let report = report.unwrap().unwrap();
        // With it, how long healthy endpoints waited, beside a world without faults.
        println!("{report}");
        assert!(report.holds(), "{report}");
    }
}
