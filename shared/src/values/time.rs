//! Points in time: ISO 8601, UTC, `Z`, milliseconds.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, Months, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Timelike, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};

use crate::input::schema::Schema;
use crate::input::{Issues, Location, Parse, Raw, reject, words};

/// A point in time, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// The first instant of the year 0.
    pub const MIN: Self = Self(DateTime::from_timestamp_millis(-62_167_219_200_000).unwrap());

    /// The last instant of the year 9999.
    pub const MAX: Self = Self(DateTime::from_timestamp_millis(253_402_300_799_999).unwrap());

    /// The same as [`from_unix_millis`](Self::from_unix_millis) for input: `None` before [`MIN`](Self::MIN) or after
    /// [`MAX`](Self::MAX), because the year would need a sign or more than four digits, and its text could not be read
    /// again.
    pub fn checked_from_unix_millis(millis: i64) -> Option<Self> {
        let in_range = (Self::MIN.unix_millis()..=Self::MAX.unix_millis()).contains(&millis);
        in_range.then(|| Self::from_unix_millis(millis))
    }

    /// The instant `millis` milliseconds after the start of 1970.
    pub fn from_unix_millis(millis: i64) -> Self {
        Self(DateTime::from_timestamp_millis(millis).unwrap_or_default())
    }

    /// Milliseconds since 1970.
    pub const fn unix_millis(self) -> i64 {
        self.0.timestamp_millis()
    }

    /// Whole seconds since 1970, as in DynamoDB's TTL.
    pub const fn unix_seconds(self) -> i64 {
        self.0.timestamp()
    }

    /// The day of this instant in UTC.
    pub fn day(self) -> Day {
        Day(self.0.date_naive())
    }

    /// When the month of this instant began in UTC, and when the next one begins.
    pub fn month(self) -> [Self; 2] {
        let day = self.0.date_naive();
        let first = day.with_day(1).unwrap_or(day);
        let next = first.checked_add_months(Months::new(1)).unwrap_or(first);
        [first, next].map(|day| Self(NaiveDateTime::from(day).and_utc()))
    }

    /// This instant plus `seconds`.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0 + TimeDelta::seconds(seconds))
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        DateTime::parse_from_rfc3339(&text).map(|time| Self(time.to_utc())).map_err(de::Error::custom)
    }
}

impl Parse for Timestamp {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        let time = DateTime::parse_from_rfc3339(&text).ok().filter(|time| !is_leap_second(time));
        let time = time.and_then(|time| Self::checked_from_unix_millis(time.timestamp_millis()));
        time.or_else(|| reject(issues, at, words::TIME))
    }
}

/// Whether it is in the second 60 of a minute, which most programs cannot read.
fn is_leap_second(time: &impl Timelike) -> bool {
    time.nanosecond() >= 1_000_000_000
}

/// A date or a time in a filter: a date means its beginning, and a time without an offset is in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateOrTime {
    /// The point in time.
    pub at: Timestamp,
    /// Whether it has no offset.
    pub is_local: bool,
}

impl DateOrTime {
    /// The date or time in `text`, rounded up to the next millisecond.
    fn new(text: &str) -> Option<Self> {
        const LOCAL: [&str; 4] = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
        // A year must have four digits.
        let text = Some(text.trim()).filter(|text| text.as_bytes().get(4) == Some(&b'-'))?;
        let date = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(NaiveDateTime::from);
        let local = || LOCAL.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
        let minutes = || DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M%#z").ok();
        let offset = DateTime::parse_from_rfc3339(text).ok().or_else(minutes).map(|time| time.to_utc());
        let time = offset.or_else(|| date().or_else(local).map(|time| time.and_utc()))?;
        if is_leap_second(&time) {
            return None;
        }
        let surplus = time.timestamp_subsec_nanos() % 1_000_000;
        let at = Timestamp::checked_from_unix_millis(time.timestamp_millis() + i64::from(surplus > 0))?;
        Some(Self { at, is_local: offset.is_none() })
    }
}

impl Parse for DateOrTime {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        Self::new(&text).or_else(|| reject(issues, at, words::DATE_OR_TIME))
    }
}

impl Schema for DateOrTime {
    fn schema() -> Value {
        json!({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]})
    }
}

impl Schema for Timestamp {
    fn schema() -> Value {
        json!({"type": "string", "format": "date-time"})
    }
}

/// A day in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day(NaiveDate);

impl Day {
    /// The day in `text`, such as `2030-01-31`.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// When it begins.
    pub fn begins(self) -> Timestamp {
        Timestamp(NaiveDateTime::from(self.0).and_utc())
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("not a day such as 2030-01-31"))
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Schema for Day {
    fn schema() -> Value {
        json!({"type": "string", "format": "date"})
    }
}

/// The source of the time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The clock of the machine.
    System,
    /// A clock that a test sets, in milliseconds since 1970.
    Manual(Arc<AtomicI64>),
    /// The same, in an environment whose clock is this many milliseconds ahead.
    Skewed(Arc<AtomicI64>, i64),
    /// The clock of the machine plus this many milliseconds: for users who skip time on their own machine.
    Ahead(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that shows the same time until it is set.
    pub fn at(time: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(time.unix_millis())))
    }

    /// A manual clock, in an environment whose clock is `millis` ahead; the machine's clock stays as it is.
    #[must_use]
    pub fn ahead_by(&self, millis: i64) -> Self {
        match self {
            Self::Manual(time) => Self::Skewed(Arc::clone(time), millis),
            other => other.clone(),
        }
    }

    /// Sets a manual clock; does nothing to the machine's clock.
    pub fn set(&self, time: Timestamp) {
        if let Self::Manual(millis) = self {
            millis.store(time.unix_millis(), Ordering::SeqCst);
        }
    }

    /// Lets `time` pass at once; does nothing to the machine's clock.
    pub fn skip(&self, time: Duration) {
        if let Self::Manual(millis) | Self::Ahead(millis) = self {
            millis.fetch_add(i64::try_from(time.as_millis()).unwrap_or_default(), Ordering::SeqCst);
        }
    }

    /// Waits until `time`. A manual clock does not wait; it is set to `time`.
    pub async fn sleep_until(&self, time: Timestamp) {
        match self {
            Self::System | Self::Ahead(_) => {
                let wait = time.unix_millis() - self.now().unix_millis();
                tokio::time::sleep(Duration::from_millis(u64::try_from(wait).unwrap_or_default())).await;
            }
            Self::Manual(millis) => {
                millis.fetch_max(time.unix_millis(), Ordering::SeqCst);
            }
            Self::Skewed(millis, ahead) => {
                millis.fetch_max(time.unix_millis() - ahead, Ordering::SeqCst);
            }
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        match self {
            #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
            Self::System => Timestamp::from_unix_millis(Utc::now().timestamp_millis()),
            Self::Manual(millis) => Timestamp::from_unix_millis(millis.load(Ordering::SeqCst)),
            Self::Skewed(millis, ahead) => Timestamp::from_unix_millis(millis.load(Ordering::SeqCst) + ahead),
            Self::Ahead(millis) => {
                Timestamp::from_unix_millis(Self::System.now().unix_millis() + millis.load(Ordering::SeqCst))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_without_an_offset_are_in_utc() {
        let read = |text: &str| DateOrTime::new(text).map(|time| time.at.to_string());
        for (text, wanted) in [
            ("2026-01-31", "2026-01-31T00:00:00.000Z"),
            ("2026-01-31T12:30:15Z", "2026-01-31T12:30:15.000Z"),
            ("2026-01-31t12:30:15.25z", "2026-01-31T12:30:15.250Z"),
            ("2026-01-31T00:30:00+02:00", "2026-01-30T22:30:00.000Z"),
            ("2026-01-31 12:30:15", "2026-01-31T12:30:15.000Z"),
            (" 2026-01-31T12:30 ", "2026-01-31T12:30:00.000Z"),
            ("2026-01-31T12:30Z", "2026-01-31T12:30:00.000Z"),
            ("2026-01-31T12:30-02:00", "2026-01-31T14:30:00.000Z"),
            ("2026-01-31T12:30:15.0000001Z", "2026-01-31T12:30:15.001Z"),
            ("0000-01-01", "0000-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(wanted), "{text}");
        }
        let none = [
            "",
            "2026",
            "2026-13-01",
            "2026-02-30",
            "26-01-31",
            "12026-01-31",
            "+2026-01-31",
            "2026-01-31T25:00",
            "x",
            "😀😀",
        ];
        assert!(none.iter().all(|text| read(text).is_none()));
    }

    #[test]
    fn a_time_outside_years_0_to_9999_is_refused() {
        let point = |text: &str| {
            let (body, mut issues) = (json!(text).to_string(), Issues::new());
            let read = Timestamp::parse(Raw::Json(&body), &Location::body(), &mut issues);
            read.map(|time| time.to_string())
        };
        let rounded_up = |text: &str| DateOrTime::new(text).map(|time| time.at.to_string());
        let (first, last) = ("0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z");
        for (text, wanted) in [
            ("0000-01-01T00:00:00Z", Some(first)),
            ("0000-01-01T12:00:00+12:00", Some(first)),
            ("9999-12-31T23:59:59.999Z", Some(last)),
            ("9999-12-31T11:59:59.999-12:00", Some(last)),
            ("0000-01-01T00:00:00+00:01", None),
            ("0000-01-01T00:00:00+12:00", None),
            ("9999-12-31T23:59:59-12:00", None),
            ("9999-12-31T23:59:59.999-00:01", None),
            ("9999-12-31T23:59:60Z", None),
            ("1990-06-15T12:34:60Z", None),
            ("1990-06-15T12:34:60.5+02:00", None),
        ] {
            assert_eq!(point(text).as_deref(), wanted, "{text}");
            assert_eq!(rounded_up(text).as_deref(), wanted, "{text}");
        }
        // `Timestamp` drops the part below a millisecond, and `DateOrTime` rounds it up.
        assert_eq!(point("9999-12-31T23:59:59.9999Z").as_deref(), Some(last));
        assert_eq!(rounded_up("9999-12-31T23:59:59.9999Z"), None);
        assert_eq!(rounded_up("9999-12-31 23:59:59.9991"), None);
        for at in [Timestamp::MIN, Timestamp::MAX] {
            assert_eq!(Timestamp::checked_from_unix_millis(at.unix_millis()), Some(at));
            assert_eq!(serde_json::from_value::<Timestamp>(json!(at)).unwrap(), at);
        }
        for millis in [Timestamp::MIN.unix_millis() - 1, Timestamp::MAX.unix_millis() + 1, i64::MIN, i64::MAX] {
            assert_eq!(Timestamp::checked_from_unix_millis(millis), None);
        }
    }
}
