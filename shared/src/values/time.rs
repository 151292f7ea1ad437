//! Points in time: ISO 8601, UTC, `Z`, milliseconds.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};

use crate::request::error::{Issues, Location};
use crate::request::input::{Parse, Raw, words};
use crate::values::schema::Schema;

/// A point in time, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// The last instant of the year 9999.
    pub const MAX: Self = Self(DateTime::from_timestamp_millis(253_402_300_799_999).unwrap());

    /// The instant `millis` milliseconds after 1970 began.
    pub fn from_unix_millis(millis: i64) -> Self {
        Self(DateTime::from_timestamp_millis(millis).unwrap_or_default())
    }

    /// Milliseconds since 1970 began.
    pub const fn unix_millis(self) -> i64 {
        self.0.timestamp_millis()
    }

    /// Whole seconds since 1970 began, as DynamoDB's TTL counts.
    pub const fn unix_seconds(self) -> i64 {
        self.0.timestamp()
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
        let time = DateTime::parse_from_rfc3339(&text);
        time.map(|time| Self(time.to_utc())).map_err(|_| issues.push(at.issue(words::TIME.0, words::TIME.1))).ok()
    }
}

impl Schema for Timestamp {
    fn schema() -> Value {
        json!({"type": "string", "format": "date-time"})
    }
}
