//! The first call of a process, compared with the ones after it.

use crate::Result;
use crate::bench::Bench;
use crate::calls;
use crate::figures::{Figures, Must, Row, Unit, median, milliseconds};
use crate::table::Again;

const SECTION: &str = "First call after start";
/// The most that the first call may take, in warm calls. It must look up a key that the others know.
const MOST: f64 = 3.0;
const STARTS: usize = 25;
/// Warm calls of each start, directly one after the other.
const WARM: usize = 25;

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    for name in ["create-assistant", "get-agent-list", "delete-tag", "open-conversation", "read-conversation"] {
        let (first, warm) = first_and_warm(bench, name).await?;
        figures.push(Row::new(SECTION, name, first, Unit::Milliseconds).compared_with("a warm call", warm));
        let row = Row::new(SECTION, format!("{name}: compared with a warm call"), first / warm, Unit::Times);
        figures.push(row.must(Must::AtMost(MOST)));
    }
    Ok(())
}

/// Milliseconds of the first call, and of the ones after it: the median of several starts.
async fn first_and_warm(bench: &Bench, name: &str) -> Result<(f64, f64)> {
    let stack = bench.stack().await?;
    let (program, event) = (bench.program(name, &stack), bench.event(name)?);
    let mut again = Again::of(&stack, name)?;
    let (mut first, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let mut process = program.start().await?;
        for call in 0..=WARM {
            let wall = milliseconds(calls::timed(&mut process, &event).await?);
            again.prepare(&stack)?;
            let of = if call == 0 { &mut first } else { &mut warm };
            of.push(wall);
        }
    }
    stack.stop().await;
    Ok((median(first), median(warm)))
}
