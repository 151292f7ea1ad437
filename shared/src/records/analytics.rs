//! Counts over time: what is asked, and what is answered.

pub mod counters;
pub mod metrics;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::input::schema::{Member, Schema, extended, nullable, object, titled};
use crate::input::{Input, Issues, Location, Source, member};
use crate::records::analytics::counters::{COUNTED_DAYS, DAY, QUARTER};
use crate::records::analytics::metrics::{Dimension, Metric};
use crate::request::error::{Error, Result};
use crate::table::Table;
use crate::values::calendar::{Zone, ZoneName, ZonedTime};
use crate::values::id::RecordId;
use crate::values::time::{DateOrTime, Day, Timestamp};

/// The most rows of an answer.
const MOST_ROWS: usize = 1000;
/// The most counters that are read for an answer.
const MOST_COUNTERS: usize = 20_000;
/// The most days of an answer.
const MOST_DAYS: i64 = 366;
/// Milliseconds of a minute.
const MINUTE: i64 = 60_000;
/// The days of an answer to a query without `date_from`.
const DAYS: i64 = 30;

crate::choice! {
    /// What the rows of an answer are grouped by.
    pub enum Grouping {
        /// The day in the time zone.
        Day = "day",
        /// The hour in the time zone.
        Hour = "hour",
        /// The assistant.
        Assistant = "assistant",
        /// The widget.
        Widget = "widget",
        /// The campaign.
        Campaign = "campaign",
        /// How it ended.
        Outcome = "outcome",
        /// The intent.
        Intent = "intent",
    }
}

impl Grouping {
    /// The dimension by which it groups; `None` for a time.
    const fn dimension(self) -> Option<Dimension> {
        match self {
            Self::Day | Self::Hour => None,
            Self::Assistant => Some(Dimension::Assistant),
            Self::Widget => Some(Dimension::Widget),
            Self::Campaign => Some(Dimension::Campaign),
            Self::Outcome => Some(Dimension::Outcome),
            Self::Intent => Some(Dimension::Intent),
        }
    }

    /// The member of a row that has its value.
    const fn member(self) -> &'static str {
        match self.dimension() {
            Some(dimension) => dimension.as_str(),
            None => self.as_str(),
        }
    }

    /// Whether the counts of `metric` can be grouped by it.
    fn suits(self, metric: Metric) -> bool {
        self.dimension().is_none_or(|dimension| metric.dimensions().contains(&dimension))
    }
}

/// The counts that are asked for.
#[derive(Debug)]
pub struct AnalyticsQuery {
    metric: Metric,
    group_by: Grouping,
    from: Option<ZonedTime>,
    to: Option<ZonedTime>,
    zone: ZoneName,
}

impl Input for AnalyticsQuery {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let metric = source.required::<Metric>("metric", issues);
        let group_by = source.optional("group_by", issues, || Grouping::Day);
        let from = source.optional::<Option<DateOrTime>>("date_from", issues, || None);
        let to = source.optional::<Option<DateOrTime>>("date_to", issues, || None);
        let zone = source.optional("time_zone", issues, ZoneName::utc);
        let (from, to) = (from?.map(ZonedTime::from), to?.map(ZonedTime::from));
        Some(Self { metric: metric?, group_by: group_by?, from, to, zone: zone? })
    }

    fn schema() -> Value {
        let mut group_by = member::<Grouping>("group_by", false, "What the rows are grouped by.");
        group_by.schema["default"] = Grouping::Day.as_str().into();
        let mut zone = member::<ZoneName>("time_zone", false, "IANA name of the time zone of days, hours and dates.");
        zone.schema["default"] = "UTC".into();
        object(vec![
            member::<Metric>("metric", true, "What is counted."),
            group_by,
            member::<DateOrTime>(
                "date_from",
                false,
                "Only what happened at this time or later. A date means 00:00 of that day in the time zone. Without it, the answer begins 29 days before the day \
                 of `date_to`.",
            ),
            member::<DateOrTime>(
                "date_to",
                false,
                "Only what happened before this time. A date means 00:00 of that day in the time zone. Without it, it is the end of the present quarter of an \
                 hour.",
            ),
            zone,
        ])
    }
}

/// A row: the members that it is grouped by, and the count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnalyticsRow(Map<String, Value>);

impl Schema for AnalyticsRow {
    fn schema() -> Value {
        let ids = [
            member::<RecordId>("assistant_id", false, "The assistant; null for none."),
            member::<RecordId>("widget_id", false, "The widget; null for none."),
            member::<RecordId>("campaign_id", false, "The campaign; null for none."),
            member::<RecordId>("intent_id", false, "The intent."),
            member::<String>("outcome", false, "How it ended."),
            member::<String>("sender_type", false, "Who has said it."),
        ];
        let times = vec![
            member::<Day>("day", false, "The day in the time zone."),
            member::<Timestamp>("hour", false, "When the hour begins, with the offset of the time zone."),
        ];
        let nullable_ids = ids.map(|id| Member { schema: nullable(id.schema), ..id });
        let members = times.into_iter().chain(nullable_ids).collect();
        let row = extended(object(members), vec![member::<u64>("count", true, "The count.")]);
        titled(row, "AnalyticsRow", "A count, and what it is the count of: only the members by which it is grouped.")
    }
}

crate::object! {
    /// Counts over time.
    pub struct Analytics {
        /// What is counted.
        pub metric: Metric,
        /// What the rows are grouped by.
        pub group_by: Grouping,
        /// The time zone of days and hours.
        pub time_zone: ZoneName,
        /// The first time of the counts.
        pub date_from: Timestamp,
        /// The time after the counts.
        pub date_to: Timestamp,
        /// The counts: days and hours in their order, others with the highest count first. A row without a count is left out.
        pub rows: Vec<AnalyticsRow>,
        /// The sum of all rows.
        pub total: u64,
    }
}

impl AnalyticsQuery {
    /// The time that is asked for, from its begin to its end.
    ///
    /// # Errors
    /// [`Error::Invalid`] with all issues of the query.
    fn range(&self, zone: &Zone, now: Timestamp) -> Result<[Timestamp; 2]> {
        let of_quarter = |at: i64| Timestamp::from_unix_millis(at.div_euclid(QUARTER) * QUARTER);
        let in_zone = |time: Option<ZonedTime>| time.map(|time| time.in_zone(&self.zone));
        let to = in_zone(self.to).unwrap_or_else(|| of_quarter(now.unix_millis() + QUARTER));
        let from = in_zone(self.from).unwrap_or_else(|| begin(zone, to));
        let mut issues = Issues::new();
        let mut refuse = |name: &'static str, kind: &'static str, msg: String| {
            issues.push(Location::query().name(name).issue(kind, msg));
        };
        if !self.group_by.suits(self.metric) {
            let (metric, group_by) = (self.metric.as_str(), self.group_by.as_str());
            refuse("group_by", "not_counted", format!("{metric} are not counted by {group_by}"));
        }
        for (name, time) in [("date_from", from), ("date_to", to)] {
            if of_quarter(time.unix_millis()) != time {
                let msg = "The time should be at a quarter of an hour, such as 12:15";
                refuse(name, "not_a_quarter", msg.to_owned());
            }
        }
        if from > to {
            refuse("date_from", "dates_out_of_order", "date_from should not be after date_to".to_owned());
        }
        // A day in which the clocks are changed may have an hour more.
        if to.unix_millis() - from.unix_millis() > MOST_DAYS * DAY + 4 * QUARTER {
            let msg = format!("The dates should be at most {MOST_DAYS} days apart");
            refuse("date_from", "dates_too_far_apart", msg);
        }
        if from.unix_millis() < now.unix_millis() - COUNTED_DAYS * DAY {
            refuse("date_from", "no_longer_counted", format!("Counts are kept for {COUNTED_DAYS} days"));
        }
        if issues.is_empty() { Ok([from, to]) } else { Err(Error::Invalid(issues)) }
    }
}

/// When the first day begins of the [`DAYS`] days of which the last one has the moment before `to`.
fn begin(zone: &Zone, to: Timestamp) -> Timestamp {
    let last = zone.local(Timestamp::from_unix_millis(to.unix_millis() - 1)).date();
    let first = last.checked_sub(jiff::Span::new().days(DAYS - 1)).unwrap_or(last);
    let begin = zone.at(first.at(0, 0, 0, 0)).unwrap_or(to);
    // Where clocks once differed from UTC by other than quarters, it is the quarter before.
    Timestamp::from_unix_millis(begin.unix_millis().div_euclid(QUARTER) * QUARTER)
}

/// When the hour of a row begins, by which rows are ordered where clocks show an hour twice, and the values of its members.
type RowValues = (i64, Vec<Option<String>>);

/// The counts that a query asks for.
///
/// # Errors
/// [`Error::Invalid`] where the answer would have too many rows, or the query has an issue.
pub async fn read(table: &Table, query: &AnalyticsQuery, now: Timestamp) -> Result<Analytics> {
    let AnalyticsQuery { metric, group_by, zone: ref time_zone, .. } = *query;
    let zone = time_zone.zone();
    let [from, to] = query.range(&zone, now)?;
    let last = Timestamp::from_unix_millis(to.unix_millis() - 1);
    let days = [from, from.max(last)].map(Timestamp::day);
    let found = counters::between(table, metric, days, MOST_COUNTERS).await?;
    let shown: Vec<Dimension> = shown(metric, group_by);
    let mut counts = BTreeMap::<RowValues, i64>::new();
    for counter in found.ok_or_else(too_many)? {
        let values: Vec<Option<&str>> = counter.values().collect();
        let of_row = |dimension: &Dimension| {
            let place = metric.dimensions().iter().position(|known| known == dimension)?;
            values.get(place).copied().flatten().map(str::to_owned)
        };
        let of_row: Vec<Option<String>> = shown.iter().map(of_row).collect();
        for (at, count) in counter.quarters().filter(|(at, _)| (from..to).contains(at)) {
            let local = zone.local(at);
            let (begin, time) = match group_by {
                Grouping::Day => (0, Some(local.date().to_string())),
                Grouping::Hour => (at.unix_millis() - i64::from(local.minute()) * MINUTE, Some(zone.hour(at))),
                _ => (0, None),
            };
            let values = time.map(Some).into_iter().chain(of_row.iter().cloned()).collect();
            *counts.entry((begin, values)).or_default() += count;
        }
    }
    // A change that the stream gave up may be taken away before it is added.
    let counts: BTreeMap<RowValues, u64> = counts
        .into_iter()
        .filter_map(|(row, count)| Some((row, u64::try_from(count).ok().filter(|count| *count > 0)?)))
        .collect();
    if counts.len() > MOST_ROWS {
        return Err(too_many());
    }
    let total = counts.values().sum();
    let rows = rows(counts, group_by, &shown);
    Ok(Analytics { metric, group_by, time_zone: time_zone.clone(), date_from: from, date_to: to, rows, total })
}

/// The dimensions of the rows of an answer: the one by which they are grouped, and the ones that are always shown.
fn shown(metric: Metric, group_by: Grouping) -> Vec<Dimension> {
    let grouped = group_by.dimension();
    let others = metric.dimensions().iter().copied().filter(|other| other.is_always_shown() && grouped != Some(*other));
    grouped.into_iter().chain(others).collect()
}

/// The rows in the order of an answer.
fn rows(counts: BTreeMap<RowValues, u64>, group_by: Grouping, shown: &[Dimension]) -> Vec<AnalyticsRow> {
    let is_of_time = group_by.dimension().is_none();
    let mut counts: Vec<(RowValues, u64)> = counts.into_iter().collect();
    if !is_of_time {
        counts.sort_by_key(|(_, count)| Reverse(*count));
    }
    let time = is_of_time.then(|| group_by.member());
    let members: Vec<&str> = time.into_iter().chain(shown.iter().map(|dimension| dimension.as_str())).collect();
    let row = |((_, values), count): (RowValues, u64)| {
        let values = members.iter().zip(values).map(|(member, value)| ((*member).to_owned(), Value::from(value)));
        AnalyticsRow(values.chain([("count".to_owned(), count.into())]).collect())
    };
    counts.into_iter().map(row).collect()
}

/// The refusal of an answer that would be too long.
fn too_many() -> Error {
    let msg = format!(
        "The answer would have more than {MOST_ROWS} rows, or be made of more than {MOST_COUNTERS} counters: choose a \
         shorter time, or group by another field"
    );
    Error::invalid(Location::query().name("date_from").issue("too_many_rows", msg))
}
