//! How a call or a message ended, as its connector reports it: one vocabulary for calls, chats and campaigns.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::input::schema::{Schema, Value, object, titled};
use crate::input::{Between, Issues, Location, Parse, Raw, member, reject, text_of, words};
use crate::request::error::{Error, Result};
use crate::values::text::is_web_address;
use crate::values::time::Timestamp;

/// Seconds that the clock of a connector may be ahead of the service's.
const AHEAD: i64 = 300;
/// The most characters of the address of a recording.
const LONGEST_ADDRESS: usize = 2048;
/// The parts of one: a cost has six decimals.
const PARTS: f64 = 1e6;
/// The highest cost.
const HIGHEST: f64 = 1e9;

/// How long a call lasted, in seconds: a day at most.
pub type CallSeconds = Between<0, 86_400>;

crate::choice! {
    /// How a call or a message ended.
    pub enum ReportedOutcome {
        Answered = "answered",
        Voicemail = "voicemail",
        NoAnswer = "no_answer",
        Busy = "busy",
        Rejected = "rejected",
        InvalidNumber = "invalid_number",
        OptedOut = "opted_out",
        Delivered = "delivered",
        Read = "read",
        Failed = "failed",
    }
}

crate::input! {
    /// The body of a report of an outcome.
    pub struct NewOutcome {
        /// How it ended.
        pub outcome: ReportedOutcome,
        /// When it ended so. Of several reports the one with the latest time counts, in whatever order they come.
        pub at: Timestamp,
        /// How long the call lasted, in seconds.
        pub duration_seconds: Option<CallSeconds> = None,
        /// The address of a recording, which begins with `https://` or `http://`. The service stores it and does not read it.
        pub recording_url: Option<RecordingUrl> = None,
        /// What it cost, in a currency of your own, with up to six decimals.
        pub cost: Option<ReportedCost> = None,
    }
}

crate::object! {
    /// How a call or a message ended.
    #[derive(Eq)]
    pub struct OutcomeReport {
        /// The outcome.
        pub outcome: ReportedOutcome,
        /// When it ended so.
        pub at: Timestamp,
        /// How long the call lasted, in seconds; null if it is not known.
        pub duration_seconds: Option<CallSeconds>,
        /// The address of a recording; null for none.
        pub recording_url: Option<RecordingUrl>,
        /// What it cost, in a currency of your own; null if it is not known.
        pub cost: Option<ReportedCost>,
    }
}

impl NewOutcome {
    /// The report, if its time has come.
    ///
    /// # Errors
    /// [`Error::Invalid`] at a time in the future: no later report would count before that time.
    pub fn report(self, now: Timestamp) -> Result<OutcomeReport> {
        let Self { outcome, at, duration_seconds, recording_url, cost } = self;
        if at > now.plus_seconds(AHEAD) {
            let future = "Value error, the time is in the future";
            return Err(Error::invalid(Location::body().name("at").issue("value_error", future)));
        }
        Ok(OutcomeReport { outcome, at, duration_seconds, recording_url, cost })
    }
}

impl OutcomeReport {
    /// Whether it counts in place of the report `known`: it is the first one, or a later one.
    pub fn replaces(&self, known: Option<&Self>) -> bool {
        known.is_none_or(|known| known.at < self.at)
    }
}

/// The address of a recording. `Debug` hides it: it may contain a signature.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordingUrl(String);

impl std::fmt::Debug for RecordingUrl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RecordingUrl({} bytes)", self.0.len())
    }
}

impl Parse for RecordingUrl {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = text_of(LONGEST_ADDRESS, raw, at, issues)?;
        if is_web_address(&text) { Some(Self(text)) } else { reject(issues, at, words::WEB_ADDRESS) }
    }
}

impl Schema for RecordingUrl {
    fn schema() -> Value {
        json!({"type": "string", "format": "uri", "maxLength": LONGEST_ADDRESS})
    }
}

/// An amount that is not negative, in millionths: two equal amounts are stored as the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedCost(u64);

impl ReportedCost {
    /// The nearest amount; `None` if it is negative or too high.
    fn new(amount: f64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the amount is within the bounds")]
        (0.0..=HIGHEST).contains(&amount).then(|| Self((amount * PARTS).round() as u64))
    }

    /// The amount as a number with decimals.
    #[expect(clippy::cast_precision_loss, reason = "the bounds leave enough digits")]
    const fn amount(self) -> f64 {
        self.0 as f64 / PARTS
    }
}

impl Serialize for ReportedCost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.amount())
    }
}

impl<'de> Deserialize<'de> for ReportedCost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).ok_or_else(|| serde::de::Error::custom("no cost"))
    }
}

impl Parse for ReportedCost {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let number = serde_json::from_str(raw.source()).ok();
        number.and_then(Self::new).or_else(|| reject(issues, at, words::AMOUNT))
    }
}

impl Schema for ReportedCost {
    fn schema() -> Value {
        json!({"type": "number", "minimum": 0, "maximum": HIGHEST})
    }
}

/// How many contacts have each outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutcomeCounts(BTreeMap<ReportedOutcome, u64>);

impl OutcomeCounts {
    /// The count of every outcome, by `count`.
    pub fn of(count: impl Fn(ReportedOutcome) -> u64) -> Self {
        Self(ReportedOutcome::every().map(|outcome| (outcome, count(outcome))).collect())
    }

    /// How many contacts have this outcome.
    pub fn get(&self, outcome: ReportedOutcome) -> u64 {
        self.0.get(&outcome).copied().unwrap_or_default()
    }
}

impl ReportedOutcome {
    /// Every outcome.
    pub fn every() -> impl Iterator<Item = Self> {
        Self::WORDS.iter().filter_map(|word| Self::from_word(word))
    }
}

// As an item, a key of a map must be text.
impl Serialize for OutcomeCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(outcome, count)| (outcome.as_str(), count)))
    }
}

impl<'de> Deserialize<'de> for OutcomeCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counts = BTreeMap::<String, u64>::deserialize(deserializer)?;
        Ok(Self(counts.into_iter().filter_map(|(word, n)| Some((ReportedOutcome::from_word(&word)?, n))).collect()))
    }
}

impl Schema for OutcomeCounts {
    fn schema() -> Value {
        let count = |word: &&'static str| member::<u64>(word, false, "Contacts with this outcome.");
        let members = ReportedOutcome::WORDS.iter().map(count).collect();
        titled(object(members), "OutcomeCounts", "How many contacts have each outcome.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(json: &str) -> Option<String> {
        let cost = ReportedCost::parse(Raw::Json(json), &Location::body(), &mut Issues::new());
        cost.map(|cost| serde_json::to_string(&cost).unwrap())
    }

    #[test]
    fn a_cost_keeps_six_decimals() {
        for (sent, shown) in [("0", "0.0"), ("0.0123", "0.0123"), ("1.23456789", "1.234568"), ("1e9", "1000000000.0")] {
            assert_eq!(cost(sent).as_deref(), Some(shown), "{sent}");
        }
        for wrong in ["-1", "1e10", "1e400", "\"1\"", "null", "true"] {
            assert_eq!(cost(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_address_of_a_recording_is_one_of_the_web() {
        let read = |text: &str| {
            let json = serde_json::to_string(text).unwrap();
            RecordingUrl::parse(Raw::Json(&json), &Location::body(), &mut Issues::new())
        };
        assert!(["https://example.com/a.wav?x=1", "http://a/b"].iter().all(|text| read(text).is_some()));
        assert!(["", "a.wav", "ftp://a/b", "javascript:alert(1)"].iter().all(|text| read(text).is_none()));
        assert_eq!(format!("{:?}", read("https://a/b").unwrap()), "RecordingUrl(11 bytes)");
    }

    #[test]
    fn a_later_report_replaces_an_earlier_one_and_no_other() {
        let at = |millis| OutcomeReport {
            outcome: ReportedOutcome::Busy,
            at: Timestamp::from_unix_millis(millis),
            duration_seconds: None,
            recording_url: None,
            cost: None,
        };
        assert!(at(1).replaces(None) && at(2).replaces(Some(&at(1))));
        assert!(!at(1).replaces(Some(&at(1))) && !at(0).replaces(Some(&at(1))));
    }
}
