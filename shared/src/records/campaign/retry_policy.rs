//! Which outcomes of a campaign's contacts are followed by another attempt, and when.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Campaign, CampaignContact, CampaignStatus};
use crate::input::schema::{Schema, Value};
use crate::input::{Between, Input, Issues, Location, Parse, Raw, Source, bounded_list};
use crate::records::outcome::{OutcomeReport, ReportedOutcome};
use crate::values::time::Timestamp;

/// How many times a contact is dispatched at most.
pub type MostAttempts = Between<1, 5>;
/// Minutes from an outcome to the next attempt: thirty days at most.
pub type WaitMinutes = Between<1, 43_200>;

crate::input! {
    /// When a contact is dispatched again after its outcome.
    #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct RetryPolicy {
        /// The outcomes that are followed by another attempt.
        pub on: RetriedOutcomes,
        /// How many times a contact is dispatched at most, the first time included.
        pub max_attempts: MostAttempts,
        /// Minutes from the time of the outcome to the next attempt. Outside its window and weekdays, a campaign sends nothing.
        pub wait_minutes: WaitMinutes,
    }
}

impl RetryPolicy {
    /// Its text, by which two requests are compared.
    pub fn print(&self) -> String {
        let Self { on, max_attempts, wait_minutes } = self;
        let on: Vec<&str> = on.0.iter().map(|outcome| outcome.as_str()).collect();
        format!("{} {} {}", on.join(","), max_attempts.get(), wait_minutes.get())
    }
}

impl Parse for RetryPolicy {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let source = Source::object(raw, at).map_err(|issue| issues.push(issue)).ok()?;
        Self::read(&source, issues)
    }
}

impl Schema for RetryPolicy {
    fn schema() -> Value {
        <Self as Input>::schema()
    }
}

/// One outcome at least.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RetriedOutcomes(Vec<ReportedOutcome>);

impl Parse for RetriedOutcomes {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        bounded_list(raw, at, issues, (1, ReportedOutcome::WORDS.len())).map(Self)
    }
}

impl Schema for RetriedOutcomes {
    fn schema() -> Value {
        json!({
            "type": "array", "items": ReportedOutcome::schema(), "minItems": 1, "maxItems": ReportedOutcome::WORDS.len(),
        })
    }
}

impl Campaign {
    /// When a contact is dispatched again after a report, if it is.
    pub(super) fn next_attempt(&self, contact: &CampaignContact, report: &OutcomeReport) -> Option<Timestamp> {
        let policy = self.retry_policy.as_ref().filter(|policy| policy.on.0.contains(&report.outcome))?;
        let is_left = i64::from(contact.times_dispatched()) < policy.max_attempts.get();
        let goes_on = self.status != CampaignStatus::Cancelled;
        (is_left && goes_on).then(|| report.at.plus_seconds(policy.wait_minutes.get() * 60))
    }
}
