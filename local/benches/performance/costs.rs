//! The database cost of a warm call of every operation, compared with `docs/COST.md`.

use shared::routes;
use shared::table::meter::Cost;

use crate::Result;
use crate::bench::Bench;
use crate::figures::{Figures, Must, Row, Unit};
use crate::table::Snapshot;

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let documented = std::fs::read_to_string(bench.root.join("docs/COST.md"))?;
    let mut rows = [Vec::new(), Vec::new(), Vec::new()];
    for route in routes::ALL {
        let (is, said) = (warm(bench, route.name).await?, line(&documented, route.name)?);
        let kinds = [
            ("Sequential calls, as docs/COST.md says", Unit::Calls, f64::from(is.depth), f64::from(said.depth)),
            ("Read units, as docs/COST.md says", Unit::CapacityUnits, is.read_units, said.read_units),
            ("Write units, as docs/COST.md says", Unit::CapacityUnits, is.write_units, said.write_units),
        ];
        for (rows, (section, unit, is, said)) in rows.iter_mut().zip(kinds) {
            let row = Row::new(section, route.name, is, unit);
            rows.push(row.compared_with("docs/COST.md", said).must(Must::Exactly(said)));
        }
    }
    figures.rows.extend(rows.into_iter().flatten());
    Ok(())
}

/// The cost of the second call. It finds the table as the first one found it, except the heads of lists: the process
/// knows their position by then.
async fn warm(bench: &Bench, name: &str) -> Result<Cost> {
    let stack = bench.stack().await?;
    let event = bench.event(name)?;
    let snapshot = Snapshot::take(&stack.database)?;
    let mut process = bench.program(name, &stack).start().await?;
    process.invoke(&event).await?;
    snapshot.restore(&stack.database, true)?;
    let answer = process.invoke(&event).await?;
    stack.stop().await;
    answer.cost.ok_or_else(|| format!("{name} logged no cost").into())
}

/// The first line about `name`: if the table has several, it is the one of the call recorded in `events/`.
fn line(table: &str, name: &str) -> Result<Cost> {
    let missing = || format!("docs/COST.md has no line about {name}");
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(&format!("| `{name}`")));
    let line = lines.next().ok_or_else(missing)?.trim_end_matches(" |");
    let [_, calls, depth, read, write] = line.split(" | ").collect::<Vec<_>>()[..] else {
        return Err(missing().into());
    };
    Ok(Cost { calls: calls.parse()?, depth: depth.parse()?, read_units: read.parse()?, write_units: write.parse()? })
}
