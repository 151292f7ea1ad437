//! Deliveries of one organisation, alone and beside another one whose slow endpoints are reset again and again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use local::receiver::{Behaviour, Receiver};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::network::address::Reach;
use shared::network::{Network, SystemLookup};
use shared::values::time::Clock;
use tokio::time::{interval, sleep};

use crate::Result;
use crate::bench::{Bench, on_own_threads};
use crate::figures::{Figures, Must, Row, Unit, milliseconds};
use crate::organisation::Organisation;

const SECTION: &str = "Deliveries beside 20 slow endpoints of another organisation, with a tenth of each time limit";

/// How many times faster than the machine's the clock is. All time limits are shorter by the same factor.
const TIMES: u32 = 10;
/// The time limit of an attempt, and when the slow endpoints answer.
const ATTEMPT: Duration = Duration::from_secs(15);
const SLOW: Duration = Duration::from_millis(14_500);
/// The slow endpoints, and the time between two resets with a test event.
const ENDPOINTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(700);
/// Deliveries to the healthy endpoint that are measured, one after another.
const MEASURED: usize = 100;
/// The most by which a delivery may be later than alone, as a factor.
const LITTLE: f64 = 1.5;

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    on_own_threads(|| async {
        let network = Network::new(Reach::Loopback, Arc::new(SystemLookup), ATTEMPT / TIMES);
        let clock = Clock::at(Clock::System.now());
        let settings = Settings { demo: None, network, clock: clock.clone(), ..Settings::of(&bench.root) };
        let (stack, receiver) = (Stack::start(settings).await?, Receiver::start().await?);
        let _stream = stack.following();
        tokio::select! {
            measured = compare(&stack, &receiver, figures) => measured?,
            () = pass(&clock) => {}
            () = ticks(&stack) => {}
        }
        stack.stop().await;
        Ok(())
    })
}

async fn compare(stack: &Stack, receiver: &Receiver, figures: &mut Figures) -> Result<()> {
    receiver.behave("/slow", Behaviour::Slow(SLOW / TIMES, 200));
    let healthy = webhooks(stack, receiver, "/healthy", 1).await?;
    let (other, slow) = webhooks(stack, receiver, "/slow", ENDPOINTS).await?;
    let alone = deliveries(stack, receiver, &healthy).await?;
    let beside = tokio::select! {
        beside = async {
            sleep(PAUSE * 10 / TIMES).await;
            deliveries(stack, receiver, &healthy).await
        } => beside?,
        failed = disturb(stack, &other, &slow) => return failed,
    };
    eprintln!("requests to the slow endpoints: {}", receiver.count("/slow"));
    for (what, place) in [("the middle one", MEASURED / 2), ("the 99th of 100", 98)] {
        let (alone, beside) = (milliseconds(alone[place]), milliseconds(beside[place]));
        let row = Row::new(SECTION, format!("from the request to the arrival: {what}"), beside, Unit::Milliseconds);
        figures.push(row.compared_with("alone", alone).must(Must::AtMost(LITTLE * alone)));
    }
    Ok(())
}

/// An organisation with so many webhooks, and the paths of these.
async fn webhooks(stack: &Stack, receiver: &Receiver, path: &str, count: usize) -> Result<(Organisation, Vec<String>)> {
    let organisation = Organisation::new(stack, stack.gateway.service.store.clone()).await?;
    let mut paths = Vec::new();
    for _ in 0..count {
        let body = json!({"endpoint": format!("{}{path}", receiver.url)});
        let webhook = organisation.post(stack, "/api/v1/outbound_webhook", &body).await?;
        paths.push(format!("/api/v1/outbound_webhook/{}", webhook["id"].as_str().ok_or("no id")?));
    }
    Ok((organisation, paths))
}

/// The times from the request of a test event to its arrival, sorted.
async fn deliveries(
    stack: &Stack,
    receiver: &Receiver,
    (organisation, paths): &(Organisation, Vec<String>),
) -> Result<Vec<Duration>> {
    let path = format!("{}/test", paths[0]);
    receiver.forget();
    let mut times = Vec::new();
    for number in 1..=MEASURED {
        let begun = Instant::now();
        organisation.post(stack, &path, &Value::Null).await?;
        let arrived = receiver.wait_for("/healthy", number, Duration::from_mins(1)).await?;
        times.push(arrived.last().ok_or("nothing came")?.at.duration_since(begun));
        // The stream is polled at intervals, so the requests come at different times in between.
        sleep(Duration::from_millis(fastrand::u64(0..250))).await;
    }
    times.sort_unstable();
    Ok(times)
}

/// Closes the circuits of the slow endpoints in turn and sends a test event to each, for ever.
async fn disturb(stack: &Stack, organisation: &Organisation, slow: &[String]) -> Result<()> {
    let mut pauses = interval(PAUSE / TIMES);
    for path in slow.iter().cycle() {
        pauses.tick().await;
        organisation.ask(stack, "PUT", path, &json!({"enabled": true})).await?;
        organisation.post(stack, &format!("{path}/test"), &Value::Null).await?;
    }
    Ok(())
}

/// Lets the clock run faster than the machine's.
async fn pass(clock: &Clock) {
    let mut last = Instant::now();
    loop {
        sleep(Duration::from_millis(5)).await;
        let passed = last.elapsed();
        last += passed;
        clock.skip(passed * TIMES);
    }
}

/// Invokes the functions with a schedule each minute of that clock.
async fn ticks(stack: &Stack) {
    let mut minutes = interval(Duration::from_mins(1) / TIMES);
    loop {
        minutes.tick().await;
        if let Err(failed) = stack.minute().await {
            eprintln!("{failed}");
        }
    }
}
