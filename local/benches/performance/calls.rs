//! Warm calls of every operation, compared with a minimal program that makes the same SDK calls.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use local::Stack;
use serde_json::{Value, json};
use shared::request::route::Route;
use shared::routes;

use crate::Result;
use crate::bench::{AT_ONCE, Bench, Effort, progress};
use crate::figures::{Figures, Must, Row, Unit, figure, median};
use crate::process::{Process, Program};
use crate::recorder::Recorder;
use crate::table::Snapshot;

/// The rows of this section.
pub const SECTION: &str = "A warm call";
/// Calls before the counted ones: after them every connection is open, and the process knows the position of every
/// list.
const WARM: usize = 6;
/// Counted calls, each one counted separately.
const COUNTED: usize = 11;
const QUICK_COUNTED: usize = 3;
/// Percent that authentication, validation, envelope and log line may add to the SDK's own work.
const MOST: f64 = 15.0;
/// The operation that registers with the payment provider at its first call; it is measured after that, with a call of
/// the provider on both sides.
const ONCE: &str = "setup-payment-webhook";
/// Operations that call S3 or sign requests to it, which a bare handler does not do. They may add more.
const OF_S3: [&str; 3] = ["add-datasource-text-blob", "create-datasource-file", "read-datasource-file"];
const MOST_OF_S3: f64 = 40.0;

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    for route in routes::ALL.iter().filter(|route| !bench.skipped.contains(route.name)) {
        let (ours, bare) = operation(bench, route.name).await.map_err(|error| format!("{}: {error}", route.name))?;
        let reference = "a bare handler";
        let row = Row::new(SECTION, route.name, ours, Unit::Instructions).of_binary(bench.digest(route.name)?);
        figures.push(row.compared_with(reference, bare));
        let more = (ours / bare - 1.0) * 100.0;
        let row = Row::new(SECTION, format!("{}: more instructions than {reference}", route.name), more, Unit::Percent);
        let most = if OF_S3.contains(&route.name) { MOST_OF_S3 } else { MOST };
        figures.push(row.must(Must::AtMost(most)));
    }
    Ok(())
}

/// The count of every operation.
pub async fn ours(bench: &Bench) -> Result<Vec<(String, f64)>> {
    let wanted: Vec<&Route> = routes::ALL.iter().copied().filter(|route| !bench.skipped.contains(route.name)).collect();
    let all = wanted.len();
    let count = async |(number, route): (usize, &Route)| {
        progress(&format!("calls of {}", route.name), number, all);
        let World { stack, program, event, snapshot } = World::of(bench, route.name).await?;
        let count = warm(bench, &program, &event, |heads| snapshot.restore(&stack.database, heads)).await?;
        stack.stop().await;
        Ok((route.name.to_owned(), count))
    };
    stream::iter(wanted.into_iter().enumerate()).map(count).buffered(AT_ONCE).try_collect().await
}

/// The environment of a called operation.
struct World {
    stack: Stack,
    program: Program,
    event: String,
    snapshot: Snapshot,
}

impl World {
    async fn of(bench: &Bench, name: &str) -> Result<Self> {
        let stack = bench.stack().await?;
        let (program, event) = (bench.program(name, &stack), bench.event(name)?);
        if name == ONCE {
            invoke(&mut program.start().await?, &event).await?;
        }
        let snapshot = Snapshot::take(&stack.database)?;
        Ok(Self { stack, program, event, snapshot })
    }
}

/// Instructions of a warm call of an operation, and of a bare handler.
async fn operation(bench: &Bench, name: &str) -> Result<(f64, f64)> {
    let World { stack, program, event, snapshot } = World::of(bench, name).await?;
    let ours = warm(bench, &program, &event, |heads| snapshot.restore(&stack.database, heads)).await?;
    snapshot.restore(&stack.database, false)?;
    let (script, before) = record(&program, &event, &stack, &snapshot).await?;
    let file = bench.scratch.join(format!("{name}.json"));
    std::fs::write(&file, script.to_string())?;
    let bare = bench.program("bare", &stack).with("SCRIPT", file.display().to_string());
    // The recorded calls need the lists in the state in which they were recorded.
    let bare = warm(bench, &bare, &event, |_| before.restore(&stack.database, false)).await?;
    stack.stop().await;
    Ok((ours, bare))
}

/// The database calls and the answer of a warm call of `program`, and the table before it.
async fn record(program: &Program, event: &str, stack: &Stack, snapshot: &Snapshot) -> Result<(Value, Snapshot)> {
    let recorder = Recorder::start(&stack.dynamodb_url, &stack.gateway.service.config.payment_api_base).await?;
    let program = program.clone().with("AWS_ENDPOINT_URL_DYNAMODB", &recorder.url);
    let mut process = program.with("PAYMENT_API_BASE", &recorder.url).start().await?;
    for _ in 0..WARM {
        invoke(&mut process, event).await?;
        snapshot.restore(&stack.database, true)?;
    }
    let before = Snapshot::take(&stack.database)?;
    recorder.take();
    let answer = invoke(&mut process, event).await?;
    let script = json!({"calls": recorder.take(), "status": answer["statusCode"], "body": answer["body"]});
    Ok((script, before))
}

/// Instructions of a warm call: the median of several, since a timer or a busy machine makes some of them more
/// expensive. `restore` restores the table, except the heads of lists if its argument says so.
pub async fn warm(bench: &Bench, program: &Program, event: &str, restore: impl Fn(bool) -> Result<()>) -> Result<f64> {
    restore(false)?;
    let mut process = program.clone().counted(&bench.scratch).start().await?;
    let mut counts = Vec::new();
    let counted = if bench.effort == Effort::Quick { QUICK_COUNTED } else { COUNTED };
    for call in 0..WARM + counted {
        invoke(&mut process, event).await?;
        restore(true)?;
        // The counts of the earlier calls and of the start are dropped.
        if call + 1 >= WARM {
            counts.push(figure(process.counted().await?));
        }
    }
    counts.remove(0);
    process.end().await?;
    Ok(median(counts))
}

/// Sends an event, and requires success.
pub async fn invoke(process: &mut Process, event: &str) -> Result<Value> {
    Ok(invoke_timed(process, event).await?.0)
}

/// The duration of a successful call.
pub async fn timed(process: &mut Process, event: &str) -> Result<Duration> {
    Ok(invoke_timed(process, event).await?.1)
}

async fn invoke_timed(process: &mut Process, event: &str) -> Result<(Value, Duration)> {
    let answer = process.invoke(event).await?;
    let response: Value = serde_json::from_str(&answer.body)?;
    if response["statusCode"].as_u64().is_some_and(|status| status < 300) {
        return Ok((response, answer.wall));
    }
    Err(format!("refused: {}", answer.body).into())
}
