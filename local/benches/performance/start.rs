//! From the start of a process to its first poll.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::Result;
use crate::bench::{AT_ONCE, Bench, Effort, Function, progress};
use crate::figures::{Figures, Must, Row, Unit, figure, median};
use crate::process::Program;

/// The rows of this section.
pub const SECTION: &str = "Process start to first poll";
/// The most instructions of a process until it polls for its first event, including the call that opens its connection.
const MOST: f64 = 4_000_000.0;
/// Counted starts of each function: on a busy machine some take a tenth more.
const RUNS: usize = 3;
const QUICK_RUNS: usize = 1;

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    let hello = instructions(bench, &bench.program("hello", &stack)).await?;
    let naive = instructions(bench, &bench.naive(&stack)).await?;
    stack.stop().await;
    for (name, count) in ours(bench).await? {
        let digest = bench.digest(&name)?;
        let row = Row::new(SECTION, name, count, Unit::Instructions).compared_with("hello, which has no SDK", hello);
        let row = row.of_binary(digest);
        figures.push(row.must(Must::AtMost(MOST)));
    }
    figures.push(Row::new(SECTION, "hello", hello, Unit::Instructions));
    figures.push(Row::new(SECTION, "naive", naive, Unit::Instructions));
    Ok(())
}

/// The count of every function.
pub async fn ours(bench: &Bench) -> Result<Vec<(String, f64)>> {
    let stack = &bench.stack().await?;
    let functions = bench.functions()?;
    let all = functions.len();
    let count = async |(number, Function { name, .. }): (usize, Function)| {
        progress(&format!("start of {name}"), number, all);
        let count = instructions(bench, &bench.program(&name, stack)).await?;
        Ok((name, count))
    };
    stream::iter(functions.into_iter().enumerate()).map(count).buffered(AT_ONCE).try_collect().await
}

async fn instructions(bench: &Bench, program: &Program) -> Result<f64> {
    let mut counts = Vec::new();
    let runs = if bench.effort == Effort::Quick { QUICK_RUNS } else { RUNS };
    for _ in 0..runs {
        counts.push(figure(program.clone().counted(&bench.scratch).start().await?.end().await?));
    }
    Ok(median(counts))
}
