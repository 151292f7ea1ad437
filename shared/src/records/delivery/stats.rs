//! How a webhook does: its deliveries and their attempts, counted by the hour.
//!
//! The figures are counted from the rows when somebody asks. A count beside each change would cost a write for each
//! delivery, and a repeated change would count twice.

use std::collections::BTreeMap;

use crate::input::schema::{Value, object};
use crate::input::{Input, Issues, Location, Source, member};
use crate::records::delivery::{Delivery, DeliveryState};
use crate::records::webhook::Webhook;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::dates::Dates;
use crate::table::page::Order;
use crate::table::{Table, TableError};
use crate::values::id::WebhookId;
use crate::values::time::{DateOrTime, Timestamp};

/// The most deliveries that are counted: the rows take fewer read units than a partition gives in a second.
const COUNTED: usize = 10_000;
/// The rows that are read at a time: their texts need little memory.
const AT_ONCE: usize = 2_500;
/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;
/// The most hours of an answer.
const MOST_HOURS: i64 = 7 * 24;
/// The hours of an answer to a query without `date_from`.
const HOURS: i64 = 24;

/// The time of which the statistics are.
#[derive(Debug)]
pub struct StatsQuery(Dates);

impl Input for StatsQuery {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        Dates::read(source, issues).map(Self)
    }

    fn schema() -> Value {
        object(vec![
            member::<DateOrTime>(
                "date_from",
                false,
                "Only events that happened at this time or later. A date means 00:00 UTC of that day. Without it, the statistics have the hour before \
                 `date_to`, and the 23 hours before that one.",
            ),
            member::<DateOrTime>(
                "date_to",
                false,
                "Only events that happened before this time, at most 7 days after `date_from`. Without it, it is the present time.",
            ),
        ])
    }
}

crate::object! {
    /// The deliveries of the events of an hour.
    pub struct DeliveryHour {
        /// When the hour begins.
        pub hour: Timestamp,
        /// Events that have arrived: deliveries in the state `delivered`.
        pub arrived: u64,
        /// Events that were given up: deliveries in the state `dead`.
        pub failed: u64,
        /// Events that are still to be sent: deliveries in the state `ready` or `waiting`.
        pub waiting: u64,
        /// The milliseconds that half of the attempts took at most; null if there was none.
        pub median_milliseconds: Option<u64>,
        /// The milliseconds that 99 % of the attempts took at most; null if there was none.
        pub p99_milliseconds: Option<u64>,
    }
}

crate::object! {
    /// How a webhook does.
    pub struct DeliveryStats {
        /// The hours, the earliest first. The first and the last one have only what is within the dates.
        pub hours: Vec<DeliveryHour>,
        /// Number of deliveries that were counted.
        pub deliveries: u64,
        /// True if there are more than were counted. Then the latest ones were counted. Hours of which none was counted are left out, and the first hour may
        /// be incomplete.
        pub truncated: bool,
    }
}

/// The deliveries of an hour, and the milliseconds of their attempts.
#[derive(Debug, Default)]
struct Count {
    arrived: u64,
    failed: u64,
    waiting: u64,
    took: Vec<u64>,
}

impl Count {
    fn add(&mut self, delivery: &Delivery) {
        let number = match delivery.state {
            DeliveryState::Delivered => &mut self.arrived,
            DeliveryState::Dead => &mut self.failed,
            DeliveryState::Ready | DeliveryState::Waiting => &mut self.waiting,
        };
        *number += 1;
        self.took.extend(delivery.log.iter().map(|attempt| attempt.milliseconds));
    }

    /// The figures of the hour that begins at `hour`.
    fn into_hour(mut self, hour: Timestamp) -> DeliveryHour {
        self.took.sort_unstable();
        // The least time within which so many of a hundred attempts ended.
        let within = |hundredths: usize| {
            let attempts = (self.took.len() * hundredths).div_ceil(100);
            attempts.checked_sub(1).and_then(|place| self.took.get(place).copied())
        };
        let (median_milliseconds, p99_milliseconds) = (within(50), within(99));
        let Self { arrived, failed, waiting, .. } = self;
        DeliveryHour { hour, arrived, failed, waiting, median_milliseconds, p99_milliseconds }
    }
}

/// The number of the hour of a time.
const fn hour_of(time: Timestamp) -> i64 {
    time.unix_millis().div_euclid(HOUR)
}

/// When the hour with this number begins.
fn beginning(hour: i64) -> Timestamp {
    Timestamp::from_unix_millis(hour * HOUR)
}

impl StatsQuery {
    /// The time of the statistics, from its begin to its end.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it is too long.
    fn range(&self, now: Timestamp) -> Result<(Timestamp, Timestamp)> {
        let to = self.0.to.unwrap_or(now);
        let last = Timestamp::from_unix_millis(to.unix_millis() - 1);
        let from = self.0.from.unwrap_or_else(|| beginning(hour_of(last) - HOURS + 1).max(Timestamp::MIN));
        if to.unix_millis() - from.unix_millis() > MOST_HOURS * HOUR {
            let msg = "The dates should be at most 7 days apart";
            return Err(Error::invalid(Location::query().name("date_from").issue("dates_too_far_apart", msg)));
        }
        Ok((from, to))
    }
}

/// The statistics of the deliveries to a webhook.
///
/// # Errors
/// [`Error::NotFound`] where there is no such webhook, [`Error::Invalid`] where the dates are too far apart.
pub async fn stats_of_webhook(
    table: &Table,
    id: WebhookId,
    query: &StatsQuery,
    now: Timestamp,
) -> Result<DeliveryStats> {
    let (from, to) = query.range(now)?;
    let counted = Box::pin(count(table, id, Dates { from: Some(from), to: Some(to) }));
    // Not `try_join!`: the cost must not depend on whether the webhook exists.
    let (webhook, counted) = futures_util::join!(table.get::<Webhook>(id), counted);
    webhook.on_missing("webhook_id")?;
    let (mut counts, deliveries, truncated) = counted?;
    let first = hour_of(from);
    let first = if truncated { counts.keys().next().copied().unwrap_or(first) } else { first };
    let end = if from < to { hour_of(Timestamp::from_unix_millis(to.unix_millis() - 1)) + 1 } else { first };
    let hours = (first..end).map(|hour| counts.remove(&hour).unwrap_or_default().into_hour(beginning(hour))).collect();
    Ok(DeliveryStats { hours, deliveries, truncated })
}

/// The counts of each hour that has a delivery, how many deliveries these are, and whether there are more.
async fn count(table: &Table, id: WebhookId, dates: Dates) -> Result<(BTreeMap<i64, Count>, u64, bool), TableError> {
    let (mut counts, mut deliveries, mut read) = (BTreeMap::<i64, Count>::new(), 0, 0);
    let mut stretch = table.stretch::<Delivery>(id.into(), (dates, Order::Descending), None).await?;
    while !stretch.is_read() && read < COUNTED {
        let rows: Vec<Delivery> = table.next_rows(&mut stretch, AT_ONCE).await?;
        read += rows.len();
        for row in rows.iter().filter(|row| dates.contain(row.created_at)) {
            counts.entry(hour_of(row.created_at)).or_default().add(row);
            deliveries += 1;
        }
    }
    Ok((counts, deliveries, !stretch.is_read()))
}
