//! The counters: an item has the quarters of an hour of one day (UTC), of one metric and one set of values.
//!
//! One transaction adds what some changes count and puts a marker for each of these changes, on condition that the change
//! has none. So a change that comes again counts once, whichever changes come with it.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use serde::Deserialize;
use uuid::Uuid;

use super::metrics::{Metric, MetricCount};
use crate::bucket::kept::KEPT_DAYS;
use crate::table::error::Cancelled;
use crate::table::expression::UpdateExpression;
use crate::table::item::number;
use crate::table::keys::{Key, TTL, made_by};
use crate::table::retry::LostAnswer;
use crate::table::transaction::{Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::tenant::Tenant;
use crate::values::time::{Day, Timestamp};

/// Milliseconds of a quarter of an hour: the clocks of every time zone differ from UTC by a number of quarters.
pub const QUARTER: i64 = 15 * 60 * 1000;
/// Milliseconds of a day.
pub const DAY: i64 = 96 * QUARTER;
/// Days for which counts are kept: a month can be compared with the same month of the year before.
pub const COUNTED_DAYS: i64 = 400;
/// The partitions of the counters of a metric. All but the first are used while processes count at the same time.
const SHARDS: u32 = 16;
/// Seconds for which a process uses all partitions after another process was in its way.
const SHARED: i64 = 10;
/// Seconds for which a marker is kept: as long as a given-up change may be handled again, and some days more.
const REMEMBERED: i64 = (KEPT_DAYS + 5) * 86_400;
/// The most actions of a transaction.
const ACTIONS: usize = 100;
/// The first letter of the attribute of a quarter; its number follows.
const NAME: char = 'q';

/// A change that counts.
#[derive(Debug)]
pub struct CountedChange {
    /// The same for the same change, and for no other one.
    pub id: Uuid,
    /// What it counts.
    pub counts: Vec<(Metric, MetricCount)>,
}

/// The key of a counter, without its partition: its metric and its sort key.
type CounterName = (Metric, String);
/// What is added to counters, by their quarters.
type Additions = BTreeMap<CounterName, BTreeMap<i64, i64>>;

/// Counts changes, each once.
///
/// # Errors
/// [`TableError`]: some may have been counted.
pub async fn count(table: &Table, changes: &[CountedChange], now: Timestamp) -> Result<(), TableError> {
    // A batch of the stream may contain a change twice, but a transaction must not write an item twice.
    let changes: BTreeMap<Uuid, &CountedChange> = changes.iter().map(|change| (change.id, change)).collect();
    let (mut part, mut additions) = (Vec::new(), Additions::new());
    for change in changes.into_values().filter(|change| !change.counts.is_empty()) {
        let mut with = additions.clone();
        add(&mut with, change);
        if part.len() + 1 + with.len() > ACTIONS {
            count_part(table, std::mem::take(&mut part), now).await?;
            with = Additions::new();
            add(&mut with, change);
        }
        additions = with;
        part.push(change);
    }
    count_part(table, part, now).await
}

/// Counts the changes of one transaction.
async fn count_part(table: &Table, mut part: Vec<&CountedChange>, now: Timestamp) -> Result<(), TableError> {
    let (mut round, org) = (table.store.backoff(), table.tenant.org());
    while !part.is_empty() {
        let is_shared = table.store.recent.is_shared(org, now);
        let shard = if is_shared { fastrand::u32(..SHARDS) } else { 0 };
        let mut transaction = Transaction::new(table);
        for change in &part {
            transaction.made_by_until(change.id, change.id, now.plus_seconds(REMEMBERED));
        }
        let mut additions = Additions::new();
        for change in &part {
            add(&mut additions, change);
        }
        transaction
            .write_all(additions.iter().map(|(name, quarters)| adding(&table.tenant, name, quarters, (shard, now))));
        match transaction.commit_once(&LostAnswer::default()).await {
            Ok(()) => break,
            Err(Cancelled::Condition((), _)) => {
                let keys: Vec<Key> = part.iter().map(|change| made_by(&table.tenant, change.id)).collect();
                let counted = table.store.get_attributes(&keys, "pk, sk").await?;
                part.retain(|change| !counted.contains_key(&made_by(&table.tenant, change.id)));
            }
            Err(Cancelled::Conflict(_)) => {
                table.store.recent.note_shared(org, now.plus_seconds(SHARED));
                round.again("the counts").await?;
            }
            Err(cancelled) => return Err(cancelled.into()),
        }
    }
    Ok(())
}

/// Adds what `change` counts.
fn add(additions: &mut Additions, change: &CountedChange) {
    for (metric, counted) in &change.counts {
        let quarter = counted.at.unix_millis().rem_euclid(DAY) / QUARTER;
        let values = metric.dimensions().iter().map(|dimension| counted.value(*dimension).unwrap_or_default());
        let name = std::iter::once(counted.at.day().to_string()).chain(values.map(str::to_owned));
        let name = name.collect::<Vec<_>>().join("#");
        *additions.entry((*metric, name)).or_default().entry(quarter).or_default() += counted.amount;
    }
}

/// The write that adds to a counter.
fn adding(
    tenant: &Tenant,
    (metric, name): &CounterName,
    quarters: &BTreeMap<i64, i64>,
    (shard, now): (u32, Timestamp),
) -> Write {
    let update = quarters.iter().fold(UpdateExpression::new(), |update, (quarter, amount)| {
        update.add(&format!("{NAME}{quarter}"), number(amount))
    });
    let until = day_of(name).plus_seconds((COUNTED_DAYS + 1) * 86_400);
    // A connector may report what ended long ago, and DynamoDB leaves an item that expired years ago.
    let until = until.max(now.plus_seconds(86_400));
    let update = update.set(TTL, number(until.unix_seconds()));
    Write::update(Key { sk: name.clone(), ..partition(tenant, *metric, shard) }, update)
}

/// When the day begins with which the name of a counter begins.
fn day_of(name: &str) -> Timestamp {
    let day = name.split('#').next().and_then(Day::parse);
    day.map_or_else(|| Timestamp::from_unix_millis(0), Day::begins)
}

fn partition(tenant: &Tenant, metric: Metric, shard: u32) -> Key {
    Key::of(tenant, format_args!("COUNTS#{}#{shard}", metric.as_str()), "")
}

/// A counter: what happened on a day, to the same values.
#[derive(Debug, Deserialize)]
pub struct DayCounts {
    /// The day, and the values of the metric's dimensions in their order.
    sk: String,
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

impl DayCounts {
    /// The values of the metric's dimensions, in their order.
    pub fn values(&self) -> impl Iterator<Item = Option<&str>> {
        self.sk.split('#').skip(1).map(|value| Some(value).filter(|value| !value.is_empty()))
    }

    /// When each of its quarters begins, and its count.
    pub fn quarters(&self) -> impl Iterator<Item = (Timestamp, i64)> {
        let day = day_of(&self.sk).unix_millis();
        self.others.iter().filter_map(move |(name, count)| {
            let quarter: i64 = name.strip_prefix(NAME)?.parse().ok()?;
            Some((Timestamp::from_unix_millis(day + quarter * QUARTER), count.as_i64()?))
        })
    }
}

/// The counters of a metric from one day to another, both included; `None` if there are more than `most`.
///
/// # Errors
/// [`TableError`].
pub async fn between(
    table: &Table,
    metric: Metric,
    [first, last]: [Day; 2],
    most: usize,
) -> Result<Option<Vec<DayCounts>>, TableError> {
    // Every value sorts before a tilde.
    let (first, last) = (first.to_string(), format!("{last}~"));
    let read = async |shard| {
        let partition = partition(&table.tenant, metric, shard).pk;
        table.store.records_between::<DayCounts>(&partition, [&first, &last], most + 1, true).await
    };
    let found = try_join_all((0..SHARDS).map(read)).await?;
    let read: usize = found.iter().map(|found| found.read).sum();
    Ok((read <= most).then(|| found.into_iter().flat_map(|found| found.records).collect()))
}
