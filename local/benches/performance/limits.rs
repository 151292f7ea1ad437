//! One key at three times its limit, from many environments of a function, which answer another organisation at the
//! same time.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::Result;
use crate::bench::Bench;
use crate::conflicts::Proxy;
use crate::contention::{KEY, add_key, key};
use crate::figures::{Figures, Must, Row, Unit, figure};
use crate::process::Process;

const SECTION: &str = "A key at three times its limit, from 20 environments, 6 ms for each call of the database";

const ENVIRONMENTS: u32 = 20;
/// Requests per second that the key allows, and at once.
const LIMIT: u32 = 50;
/// The load as a multiple of the limit.
const TIMES: u32 = 3;
/// One of so many requests of an environment belongs to the other organisation.
const OTHER: usize = 8;
/// The time before the measure, which uses up the burst.
const BEFORE: Duration = Duration::from_secs(4);
const MEASURED: Duration = Duration::from_secs(8);

/// The answers of one environment.
#[derive(Default)]
struct Answered {
    asked: u64,
    admitted: u64,
    /// Refusals of the other organisation.
    others_refused: u64,
    /// Whether a request was refused that waited for as long as `Retry-After` said.
    refused_again: bool,
}

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    let proxy = Proxy::start(&stack).await?;
    let program = bench.program("list-tags", &stack).with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url);
    add_key(&stack, 0, Some(LIMIT)).await?;
    add_key(&stack, 1, None).await?;
    let event = bench.event("list-tags")?;
    let events = [event.replace(KEY, &key(0)), event.replace(KEY, &key(1))];
    let mut processes = Vec::new();
    for _ in 0..ENVIRONMENTS {
        let mut process = program.start().await?;
        // A request of the other organisation, whose key and list the process knows after it: the burst stays
        // untouched.
        process.invoke(&events[1]).await?;
        processes.push(process);
    }
    let begun = Instant::now();
    proxy.write_units();
    let work = processes.iter_mut().zip(0..).map(|(process, place)| environment(process, place, &events, begun));
    let answered = futures_util::future::try_join_all(work).await?;
    let units = proxy.write_units() / begun.elapsed().as_secs_f64();
    let sum = |count: fn(&Answered) -> u64| figure(answered.iter().map(count).sum());
    let a_second = |count: f64| count / MEASURED.as_secs_f64();
    let limit = f64::from(LIMIT);
    let row = |subject: &str, value: f64, unit: Unit| Row::new(SECTION, subject, value, unit);
    let admitted = a_second(sum(|one| one.admitted));
    let at_most = row("admitted a second, at most", admitted, Unit::PerSecond).compared_with("the limit", limit);
    figures.push(at_most.must(Must::AtMost(1.2 * limit)));
    let at_least = row("admitted a second, at least", admitted, Unit::PerSecond).compared_with("the limit", limit);
    figures.push(at_least.must(Must::AtLeast(0.8 * limit)));
    // A machine that is too slow would send too few requests.
    let asked =
        row("asked a second", a_second(sum(|one| one.asked)), Unit::PerSecond).compared_with("the limit", limit);
    figures.push(asked.must(Must::AtLeast(2.0 * limit)));
    let refused =
        row("another organisation: answers with the status 429", sum(|one| one.others_refused), Unit::Requests);
    figures.push(refused.must(Must::Exactly(0.0)));
    let again = sum(|one| u64::from(one.refused_again));
    let again =
        row("callers that waited as long as `Retry-After` said: answers with the status 429", again, Unit::Requests);
    figures.push(again.must(Must::Exactly(0.0)));
    figures.push(row("write units a second for its leases", units, Unit::CapacityUnits));
    drop(processes);
    stack.stop().await;
    Ok(())
}

/// Lets an environment answer its part of the requests, each at its time.
async fn environment(process: &mut Process, place: u32, events: &[String; 2], begun: Instant) -> Result<Answered> {
    let every = Duration::from_secs(1) * ENVIRONMENTS / (LIMIT * TIMES);
    let mut times = interval_at(begun + every * place / ENVIRONMENTS, every);
    times.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut answered, mut wait) = (Answered::default(), Duration::from_secs(1));
    for request in 0.. {
        times.tick().await;
        let since = begun.elapsed();
        if since > BEFORE + MEASURED {
            break;
        }
        if request % OTHER == OTHER / 2 {
            let (status, _) = answer(process, &events[1]).await?;
            answered.others_refused += u64::from(status == 429);
        }
        let (status, retry_after) = answer(process, &events[0]).await?;
        wait = retry_after.unwrap_or(wait);
        if since > BEFORE {
            answered.asked += 1;
            answered.admitted += u64::from(status == 200);
        }
    }
    sleep(wait).await;
    answered.refused_again = answer(process, &events[0]).await?.0 == 429;
    Ok(answered)
}

/// Status and `Retry-After` of the process's answer.
async fn answer(process: &mut Process, event: &str) -> Result<(u64, Option<Duration>)> {
    let answer: Value = serde_json::from_str(&process.invoke(event).await?.body)?;
    let status = answer["statusCode"].as_u64().unwrap_or_default();
    if ![200, 429].contains(&status) {
        return Err(format!("{status}: {}", answer["body"]).into());
    }
    let seconds = answer["headers"]["retry-after"].as_str().and_then(|seconds| seconds.parse().ok());
    Ok((status, seconds.map(Duration::from_secs)))
}
