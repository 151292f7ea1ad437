//! Counts over time: what it costs to count a change, and whether 1,000 changes a second of one organisation are counted
//! once and without a throttle.

use std::time::{Duration, Instant};

use embedded_dynamodb::partitions::{Counting, Partitions};
use futures_util::future::try_join_all;
use local::database::{TABLE_NAME, client};
use local::{Settings, Stack};
use shared::records::analytics::counters::{self, CountedChange};
use shared::records::analytics::metrics::{Dimension, Metric, MetricCount};
use shared::runtime::http_client;
use shared::table::Table;
use shared::table::store::Store;
use shared::values::time::{Clock, Timestamp};
use tokio::time::sleep;
use uuid::Uuid;

use crate::Result;
use crate::bench::{Bench, on_own_threads};
use crate::conflicts::Proxy;
use crate::figures::{Figures, Must, Row, Unit, figure, milliseconds};
use crate::organisation::Organisation;

const SECTION: &str = "Counts of one organisation, 6 ms for each call of the database, overlapping writes refused";

/// Lanes of the stream: each is a process.
const LANES: u64 = 10;
/// The changes of a second, and for how many seconds they come.
const RATE: (u64, u64) = (1000, 5);
/// The most changes of a batch.
const BATCH: u64 = 100;
/// The assistants of the organisation.
const ASSISTANTS: u64 = 10;
/// The time limit of a call, which a busy machine stays within.
const ATTEMPT: Duration = Duration::from_secs(20);
/// The most counters that are read.
const MOST: usize = 10_000;

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    on_own_threads(|| async {
        let partitions = Partitions::new(Counting::Counted);
        let settings =
            Settings { demo: None, stream: false, partitions: partitions.clone(), ..Settings::of(&bench.root) };
        let stack = Stack::start(settings).await?;
        let proxy = Proxy::start(&stack).await?;
        cost(&stack, &proxy, figures).await?;
        follow(&stack, &proxy, &partitions, figures).await?;
        stack.stop().await;
        Ok(())
    })
}

fn row(subject: &str, value: f64, unit: Unit) -> Row {
    Row::new(SECTION, subject, value, unit)
}

/// The organisation as a process of its own sees it.
fn process(proxy: &Proxy, organisation: &Organisation) -> Result<Table> {
    let http = http_client::client(http_client::connector(http_client::amazon_roots()?));
    let store = Store::new(client(&proxy.url, http, ATTEMPT), TABLE_NAME.to_owned());
    Ok(Table::new(store, organisation.tenant))
}

/// A change that counts a message of one of so many assistants.
fn change(number: u64, assistants: u64, at: Timestamp) -> CountedChange {
    let assistant = Uuid::from_u64_pair(1, number % assistants).to_string();
    let values = vec![(Dimension::Assistant, assistant), (Dimension::Sender, "user".to_owned())];
    let counts = vec![(Metric::Messages, MetricCount { at, values, amount: 1 })];
    CountedChange { id: Uuid::from_u64_pair(2, number), counts }
}

/// Counts the write units of a change.
async fn cost(stack: &Stack, proxy: &Proxy, figures: &mut Figures) -> Result<()> {
    let organisation = Organisation::new(stack, stack.gateway.service.store.clone()).await?;
    let (table, now) = (process(proxy, &organisation)?, Clock::System.now());
    let cases = [
        ("a change alone", 1, 1),
        ("each of a batch of 100", BATCH, 1),
        ("each of a batch of 100, of ten assistants", BATCH, ASSISTANTS),
    ];
    let mut first = 0;
    for (what, changes, assistants) in cases {
        let batch: Vec<CountedChange> = (first..first + changes).map(|place| change(place, assistants, now)).collect();
        proxy.write_units();
        counters::count(&table, &batch, now).await?;
        figures.push(row(&format!("{what}: write units"), proxy.write_units() / figure(changes), Unit::CapacityUnits));
        first += changes;
    }
    Ok(())
}

/// Counts changes as fast as they come, in batches of those that have come.
async fn follow(stack: &Stack, proxy: &Proxy, partitions: &Partitions, figures: &mut Figures) -> Result<()> {
    let organisation = Organisation::new(stack, stack.gateway.service.store.clone()).await?;
    partitions.set(Counting::Throttled(1.0));
    partitions.forget();
    proxy.write_units();
    let (begun, now) = (Instant::now(), Clock::System.now());
    let tables = (0..LANES).map(|_| process(proxy, &organisation)).collect::<Result<Vec<_>>>()?;
    let lanes = (0..).zip(tables).map(|(lane, table)| follow_lane(table, lane, begun, now));
    let mut lags: Vec<Duration> = try_join_all(lanes).await?.concat();
    let took = begun.elapsed().as_secs_f64();
    let (units, heat) = (proxy.write_units(), partitions.heat());
    partitions.set(Counting::Counted);
    lags.sort_unstable();
    let changes = figure(RATE.0 * RATE.1);
    figures.push(row("changes counted a second", changes / took, Unit::PerSecond));
    let lag = |hundredths: usize| lags.get(lags.len() * hundredths / 100).copied().map_or(f64::NAN, milliseconds);
    let late = row("from a change to its count, 99th percentile", lag(99), Unit::Milliseconds);
    figures.push(late.compared_with("median", lag(50)).must(Must::AtMost(1000.0)));
    let refused: u64 = heat.values().map(|heat| heat.refused).sum();
    figures.push(row("calls that a partition refused", figure(refused), Unit::Requests).must(Must::Exactly(0.0)));
    figures.push(row("at this rate: write units of a change", units / changes, Unit::CapacityUnits));
    let counted = counted(&process(proxy, &organisation)?, now).await?;
    figures
        .push(row("changes of 5,000 that were counted", figure(counted), Unit::Requests).must(Must::Exactly(changes)));
    Ok(())
}

/// The changes of a lane; returns how long each waited.
async fn follow_lane(table: Table, lane: u64, begun: Instant, now: Timestamp) -> Result<Vec<Duration>> {
    let due = |number: u64| begun + Duration::from_micros(1_000_000 * (number * LANES + lane) / RATE.0);
    let (mut lags, mut next, all) = (Vec::new(), 0, RATE.0 * RATE.1 / LANES);
    while next < all {
        sleep(due(next).saturating_duration_since(Instant::now())).await;
        let come = (next..all.min(next + BATCH)).take_while(|number| due(*number) <= Instant::now());
        let batch: Vec<CountedChange> =
            come.map(|number| change(1_000_000 + number * LANES + lane, ASSISTANTS, now)).collect();
        counters::count(&table, &batch, now).await?;
        let end = next + batch.len() as u64;
        lags.extend((next..end).map(|number| due(number).elapsed()));
        next = end;
    }
    Ok(lags)
}

/// What the counters say.
async fn counted(table: &Table, now: Timestamp) -> Result<u64> {
    let found = counters::between(table, Metric::Messages, [now.day(), now.day()], MOST).await?;
    let found = found.ok_or("too many counters")?;
    let count: i64 = found.iter().flat_map(|day| day.quarters().collect::<Vec<_>>()).map(|(_, count)| count).sum();
    Ok(count.unsigned_abs())
}
