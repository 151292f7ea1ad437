//! Memory at the first poll, and after ten thousand calls.

use crate::Result;
use crate::bench::{Bench, Function};
use crate::calls;
use crate::figures::{Figures, Must, Row, Unit, figure};
use crate::table::Again;

const SECTION: &str = "Memory";
/// Bytes that may be resident at the first poll.
const MOST: f64 = 9_000_000.0;
/// Calls after which everything exists that is made only once.
const SETTLED: u32 = 1_000;
/// Calls in all.
const CALLS: u32 = 10_000;
/// The growth that is allowed after that: it must not happen with each call.
const GROWTH: f64 = 0.01;

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    let naive = figure(bench.naive(&stack).start().await?.resident()?);
    for Function { name, .. } in bench.functions()? {
        let resident = figure(bench.program(&name, &stack).start().await?.resident()?);
        let row = Row::new(SECTION, format!("{name} at its first poll"), resident, Unit::Bytes);
        figures.push(row.compared_with("naive", naive).must(Must::AtMost(MOST)));
    }
    stack.stop().await;
    for name in ["delete-tag", "get-agent-list", "create-assistant"] {
        let (before, after) = growth(bench, name).await?;
        let subject = format!("{name}: growth from call {SETTLED} to call {CALLS}");
        let row = Row::new(SECTION, subject, after - before, Unit::Bytes);
        figures.push(row.compared_with("what it had before", before).must(Must::AtMost(before * GROWTH)));
        let each = (after - before) / f64::from(CALLS - SETTLED);
        figures.push(Row::new(SECTION, format!("{name}: growth of each of these calls"), each, Unit::Bytes));
    }
    Ok(())
}

async fn growth(bench: &Bench, name: &str) -> Result<(f64, f64)> {
    let stack = bench.stack().await?;
    let event = bench.event(name)?;
    let mut process = bench.program(name, &stack).start().await?;
    let mut before = 0.0;
    let mut again = Again::of(&stack, name)?;
    for call in 0..CALLS {
        if call == SETTLED {
            before = figure(process.resident()?);
        }
        calls::invoke(&mut process, &event).await?;
        again.prepare(&stack)?;
    }
    let after = figure(process.resident()?);
    stack.stop().await;
    Ok((before, after))
}
