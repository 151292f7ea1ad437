//! The same service in Python, and the naive program in Rust.

use std::time::Instant;

use serde_json::Value;

use crate::Result;
use crate::bench::Bench;
use crate::calls;
use crate::figures::{Figures, Must, Row, Unit, median, milliseconds};
use crate::process::Program;
use crate::table::Snapshot;

/// The rows of this section.
pub const SECTION: &str = "Beside the twin";
/// The name of the service in Python.
pub const TWIN: &str = "the same in Python";
const NAIVE: &str = "naive";
/// How many times faster a start must be.
const START: f64 = 50.0;
/// How many times faster a warm call must be.
const CALL: f64 = 5.0;
const STARTS: usize = 9;
/// Each program runs several times in turn, so that other load on the machine affects all of them.
const TURNS: usize = 8;
/// Calls of a turn until its process has filled the caches again.
const WARM: usize = 10;
/// Counted calls of a turn.
const COUNTED: usize = 40;
/// The routes that all programs have.
const NAMES: [&str; 2] = ["create-assistant", "get-agent-list"];

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    starts(bench, figures).await?;
    for name in NAMES {
        walls(bench, figures, name).await?;
        instructions(bench, figures, name).await?;
    }
    Ok(())
}

/// From the start of a process to its first poll.
async fn starts(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    let [ours, naive, twin] = [bench.program(NAMES[0], &stack), bench.naive(&stack), bench.twin(&stack)];
    let (ours, naive, twin) = (start(&ours).await?, start(&naive).await?, start(&twin).await?);
    for (what, ours, naive, twin) in
        [("time of a processor", ours.0, naive.0, twin.0), ("time", ours.1, naive.1, twin.1)]
    {
        compare(figures, &format!("start to first poll, {what}"), [ours, naive, twin], START);
    }
    stack.stop().await;
    Ok(())
}

/// The service's milliseconds next to the other two, with the factor by which it must at least be faster than Python.
fn compare(figures: &mut Figures, subject: &str, [ours, naive, twin]: [f64; 3], least: f64) {
    figures.push(Row::new(SECTION, subject, ours, Unit::Milliseconds).compared_with(TWIN, twin));
    figures.push(Row::new(SECTION, subject, ours, Unit::Milliseconds).compared_with(NAIVE, naive));
    let row = Row::new(SECTION, format!("{subject}: times faster than {TWIN}"), twin / ours, Unit::Times);
    figures.push(row.must(Must::AtLeast(least)));
}

/// Milliseconds of processor time, and of real time.
async fn start(program: &Program) -> Result<(f64, f64)> {
    // The first start finds nothing compiled or cached.
    program.start().await?;
    let (mut cpu, mut wall) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let begun = Instant::now();
        let process = program.start().await?;
        wall.push(milliseconds(begun.elapsed()));
        cpu.push(milliseconds(process.cpu()?));
    }
    Ok((median(cpu), median(wall)))
}

/// Warm calls in real time, in turn, with the same table.
async fn walls(bench: &Bench, figures: &mut Figures, name: &str) -> Result<()> {
    let stack = bench.stack().await?;
    let event = bench.event(name)?;
    let programs = [bench.program(name, &stack), bench.naive(&stack), bench.twin(&stack)];
    let mut processes = Vec::new();
    for program in &programs {
        processes.push(program.start().await?);
    }
    let (mut walls, mut data) = (vec![Vec::new(); programs.len()], Vec::new());
    for _ in 0..TURNS {
        for (process, walls) in processes.iter_mut().zip(&mut walls) {
            for call in 0..WARM + COUNTED {
                let wall = calls::timed(process, &event).await?;
                if call >= WARM {
                    walls.push(milliseconds(wall));
                }
            }
        }
    }
    for process in &mut processes {
        data.push(data_of(&calls::invoke(process, &event).await?)?);
    }
    if data.iter().any(|other| *other != data[0]) {
        return Err(format!("{name} is not answered alike: {data:?}").into());
    }
    let walls: Vec<_> = walls.into_iter().map(median).collect();
    let &[ours, naive, twin] = walls.as_slice() else { return Err("one is missing".into()) };
    compare(figures, &format!("a warm call of {name}"), [ours, naive, twin], CALL);
    stack.stop().await;
    Ok(())
}

/// The data of an answer, without the id, which differs each time.
fn data_of(response: &Value) -> Result<Value> {
    let mut body: Value = serde_json::from_str(response["body"].as_str().ok_or("no body")?)?;
    if let Some(data) = body["data"].as_object_mut() {
        data.remove("id");
    }
    Ok(body)
}

/// Instructions of a warm call, compared with the naive program.
async fn instructions(bench: &Bench, figures: &mut Figures, name: &str) -> Result<()> {
    let stack = bench.stack().await?;
    let event = bench.event(name)?;
    let snapshot = Snapshot::take(&stack.database)?;
    let restore = |heads| snapshot.restore(&stack.database, heads);
    let ours = calls::warm(bench, &bench.program(name, &stack), &event, restore).await?;
    let naive = calls::warm(bench, &bench.naive(&stack), &event, restore).await?;
    let row = Row::new(SECTION, format!("a warm call of {name}, counted"), ours, Unit::Instructions);
    figures.push(row.compared_with(NAIVE, naive));
    stack.stop().await;
    Ok(())
}
