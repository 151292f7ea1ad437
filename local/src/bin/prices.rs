//! `cargo run --package local --bin prices`: the cost of a million calls of each operation, and with all reactions, for
//! `docs/OPERATIONS.md`.

use std::process::ExitCode;

use local::{Trouble, prices};

fn main() -> ExitCode {
    let costs = std::fs::read_to_string("docs/COST.md").map_err(|error| Trouble(format!("docs/COST.md: {error}")));
    match costs.and_then(|costs| Ok((prices::table(&costs)?, prices::whole(&costs)?))) {
        Ok((table, whole)) => {
            print!("{table}\n{whole}");
            ExitCode::SUCCESS
        }
        Err(trouble) => {
            eprintln!("prices: {trouble}");
            ExitCode::from(2)
        }
    }
}
