//! `cargo run --package local --bin prices`: what a million calls of each operation cost, as the table in `docs/OPERATIONS.md`.

use local::{Trouble, prices};

fn main() -> Result<(), Trouble> {
    let costs = std::fs::read_to_string("docs/COST.md").map_err(|error| Trouble(format!("docs/COST.md: {error}")))?;
    print!("{}", prices::table(&costs)?);
    Ok(())
}
