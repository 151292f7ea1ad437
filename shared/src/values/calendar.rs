//! Local time: time zones, hours of the day, days of the week.

use jiff::civil;
use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::input::schema::{Schema, Value};
use crate::input::{Between, Issues, Location, Parse, Raw, reject, words};
use crate::values::time::{DateOrTime, Timestamp};

/// Minutes of a day.
pub const DAY: i64 = 24 * 60;

/// A time zone of the IANA database, by its name there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ZoneName(String);

impl ZoneName {
    /// The zone of this name, in any case.
    pub fn new(text: &str) -> Option<Self> {
        // A name that begins with a slash or contains a dot is a file.
        TimeZone::get(text).ok()?.iana_name().map(|name| Self(name.to_owned()))
    }

    /// Coordinated universal time.
    pub fn utc() -> Self {
        Self("UTC".to_owned())
    }

    /// Its rules. A name that the database no longer has gets the rules of UTC.
    pub fn zone(&self) -> Zone {
        Zone(TimeZone::get(&self.0).unwrap_or(TimeZone::UTC))
    }
}

impl Parse for ZoneName {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        Self::new(&text).or_else(|| reject(issues, at, words::TIME_ZONE))
    }
}

impl Schema for ZoneName {
    fn schema() -> Value {
        json!({"type": "string", "format": "time-zone", "pattern": "^[A-Za-z0-9_+/-]{1,64}$"})
    }
}

/// The rules of a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The local time at `at`.
    pub fn local(&self, at: Timestamp) -> civil::DateTime {
        // The last `Timestamp` is at the end of the year 9999, and the library's last one is slightly earlier.
        let at = jiff::Timestamp::from_millisecond(at.unix_millis()).unwrap_or(jiff::Timestamp::MAX);
        self.0.to_datetime(at)
    }

    /// The hour that clocks show at `at`, with their offset from UTC, such as `2026-07-01T09:00:00+02:00`.
    pub fn hour(&self, at: Timestamp) -> String {
        let local = self.local(at);
        let moment = jiff::Timestamp::from_millisecond(at.unix_millis()).unwrap_or(jiff::Timestamp::MAX);
        let minutes = self.0.to_offset(moment).seconds() / 60;
        let (sign, ahead) = if minutes < 0 { ('-', -minutes) } else { ('+', minutes) };
        format!("{}T{:02}:00:00{sign}{:02}:{:02}", local.date(), local.hour(), ahead / 60, ahead % 60)
    }

    /// The clock changes after `from`, in order.
    pub fn changes(&self, from: Timestamp) -> impl Iterator<Item = Timestamp> {
        let from = jiff::Timestamp::from_millisecond(from.unix_millis()).unwrap_or(jiff::Timestamp::MAX);
        self.0.following(from).map(|change| of(change.timestamp()))
    }

    /// The first moment at which clocks show `local`. If clocks skip it, the result is later by the length of the gap.
    pub fn at(&self, local: civil::DateTime) -> Option<Timestamp> {
        let at = self.0.to_ambiguous_timestamp(local).compatible().ok()?;
        Timestamp::checked_from_unix_millis(at.as_millisecond())
    }

    /// The moment at which clocks show `local`, or at which they skip it. If they show it twice, both moments.
    pub fn moments(&self, local: civil::DateTime) -> Option<[Timestamp; 2]> {
        let ambiguous = self.0.to_ambiguous_timestamp(local);
        match ambiguous.offset() {
            AmbiguousOffset::Gap { .. } => {
                let after = ambiguous.compatible().ok()?;
                let skipped = self.0.preceding(after).next().map_or(after, |transition| transition.timestamp());
                Some([of(skipped); 2])
            }
            _ => Some([of(ambiguous.earlier().ok()?), of(ambiguous.later().ok()?)]),
        }
    }
}

fn of(at: jiff::Timestamp) -> Timestamp {
    Timestamp::from_unix_millis(at.as_millisecond())
}

/// An hour and a minute of a day, as `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay {
    minutes: u16,
}

impl TimeOfDay {
    /// The time in `text`.
    pub fn new(text: &str) -> Option<Self> {
        let (hour, minute) = text.split_once(':')?;
        let number = |digits: &str, end: u16| {
            let is_one = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
            let number: u16 = is_one.then(|| digits.parse().ok()).flatten()?;
            (number < end).then_some(number)
        };
        Some(Self { minutes: number(hour, 24)? * 60 + number(minute, 60)? })
    }

    /// Minutes since the day began.
    pub fn minutes(self) -> i64 {
        i64::from(self.minutes)
    }
}

impl std::fmt::Display for TimeOfDay {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:02}:{:02}", self.minutes / 60, self.minutes % 60)
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| serde::de::Error::custom("no time of day"))
    }
}

impl Parse for TimeOfDay {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        Self::new(&text).or_else(|| reject(issues, at, words::TIME_OF_DAY))
    }
}

impl Schema for TimeOfDay {
    fn schema() -> Value {
        json!({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"})
    }
}

/// Days of the week, from 1 for Monday to 7 for Sunday, each once and in order. No days mean every day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weekdays(Vec<i64>);

impl Weekdays {
    /// Whether it contains `day`.
    pub fn has(&self, day: civil::Date) -> bool {
        self.0.is_empty() || self.0.contains(&i64::from(day.weekday().to_monday_one_offset()))
    }

    /// Whether it contains every day.
    pub const fn is_every_day(&self) -> bool {
        matches!(self.0.len(), 0 | 7)
    }
}

impl Parse for Weekdays {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let days = Vec::<Between<0, 7>>::parse(raw, at, issues)?;
        let mut days: Vec<i64> = days.into_iter().map(|day| if day.get() == 0 { 7 } else { day.get() }).collect();
        days.sort_unstable();
        days.dedup();
        Some(Self(days))
    }
}

impl Schema for Weekdays {
    fn schema() -> Value {
        json!({"type": "array", "items": Between::<0, 7>::schema()})
    }
}

/// A point in time, which may have been sent without an offset: then it is a local time in a time zone that another
/// field names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ZonedTime {
    /// The time; without an offset, it is read as UTC.
    at: Timestamp,
    #[serde(skip)]
    is_local: bool,
}

impl ZonedTime {
    /// The point in time; a time without an offset is in `zone`.
    pub fn in_zone(self, zone: &ZoneName) -> Timestamp {
        if !self.is_local {
            return self.at;
        }
        let shown = ZoneName::utc().zone().local(self.at);
        zone.zone().at(shown).unwrap_or(self.at)
    }
}

impl From<DateOrTime> for ZonedTime {
    fn from(DateOrTime { at, is_local }: DateOrTime) -> Self {
        Self { at, is_local }
    }
}

impl From<Timestamp> for ZonedTime {
    fn from(at: Timestamp) -> Self {
        Self { at, is_local: false }
    }
}

impl Parse for ZonedTime {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        DateOrTime::parse(raw, at, issues).map(Self::from)
    }
}

impl Schema for ZonedTime {
    fn schema() -> Value {
        Timestamp::schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_has_the_form_hh_mm() {
        for text in ["00:00", "09:30", "23:59"] {
            assert_eq!(TimeOfDay::new(text).unwrap().to_string(), text);
        }
        for text in ["", "9:30", "24:00", "12:60", "12", "12:3", "1 :30", "+1:30", "12:30:00", "１２:30"] {
            assert_eq!(TimeOfDay::new(text), None, "{text}");
        }
    }

    #[test]
    fn a_zone_must_be_in_the_time_zone_database() {
        for (text, name) in
            [("UTC", "UTC"), ("europe/berlin", "Europe/Berlin"), ("America/New_York", "America/New_York")]
        {
            assert_eq!(ZoneName::new(text), Some(ZoneName(name.to_owned())));
        }
        for text in
            ["", "Mars/Olympus", "Europe", "../etc/passwd", "/etc/localtime", "+02:00", "EST5EDT,M3.2.0,M11.1.0"]
        {
            assert_eq!(ZoneName::new(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_without_an_offset_is_local_to_its_zone() {
        let read = |json: &str, zone: &str| {
            let time = ZonedTime::parse(Raw::Json(json), &Location::body(), &mut Issues::new()).unwrap();
            time.in_zone(&ZoneName::new(zone).unwrap()).to_string()
        };
        assert_eq!(read("\"2026-07-01T09:00:00\"", "Europe/Berlin"), "2026-07-01T07:00:00.000Z");
        assert_eq!(read("\"2026-07-01T09:00:00\"", "UTC"), "2026-07-01T09:00:00.000Z");
        assert_eq!(read("\"2026-07-01T09:00:00+05:00\"", "Europe/Berlin"), "2026-07-01T04:00:00.000Z");
        assert_eq!(read("\"2026-07-01\"", "America/New_York"), "2026-07-01T04:00:00.000Z");
        // A time that the clocks skip, and one that they show twice.
        assert_eq!(read("\"2026-03-29T02:30:00\"", "Europe/Berlin"), "2026-03-29T01:30:00.000Z");
        assert_eq!(read("\"2026-10-25T02:30:00\"", "Europe/Berlin"), "2026-10-25T00:30:00.000Z");
        // At the ends of the supported years, the time is in UTC.
        assert_eq!(read("\"0000-01-01\"", "Europe/Berlin"), "0000-01-01T00:00:00.000Z");
        assert_eq!(read("\"9999-12-31T23:00\"", "America/New_York"), "9999-12-31T23:00:00.000Z");
    }
}
