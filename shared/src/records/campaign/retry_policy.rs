//! Which outcomes of a campaign's contacts are followed by another attempt, and when the campaign makes it.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Campaign, CampaignContact, CampaignPhase, CampaignStatus};
use crate::input::schema::{Schema, Value};
use crate::input::{Between, Input, Issues, Location, Parse, Raw, Source, bounded_list};
use crate::records::outcome::{OutcomeReport, ReportedOutcome};
use crate::table::declaration::Declared as _;
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

    /// When the next step begins: at `next`, or earlier where a contact waits for another attempt.
    pub(super) fn soonest(&self, next: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let again = self.again_at.map(|at| at.max(now)).and_then(|at| match self.schedule() {
            Some(schedule) => schedule.opens(at),
            None => Some(at),
        });
        next.into_iter().chain(again).min()
    }

    /// Begins to dispatch the contacts that wait for another attempt. This is no execution, and it has no places. The
    /// time is cleared before the contacts are read, and noted again after that: a report in between notes its own.
    pub(super) fn try_again(&mut self) {
        if !self.lists_waiting {
            // Contacts without an item are found at their places.
            return self.rewind();
        }
        (self.until_place, self.unscheduled, self.again_at) = (Some(self.next_place), true, None);
    }

    /// Notes when a contact may be dispatched again.
    pub(super) fn note_attempt(&mut self, at: Option<Timestamp>) {
        self.again_at = self.again_at.into_iter().chain(at).min();
    }

    /// Notes that a contact waits for another attempt at `at`. A pass under way ends first.
    pub(super) fn await_attempt(&mut self, at: Timestamp, now: Timestamp) {
        // No contact waits yet, so all that wait from now on have their items.
        self.lists_waiting |= self.again_at.is_none() && self.until_place.is_none();
        self.note_attempt(Some(at));
        match self.phase() {
            CampaignPhase::Dispatched | CampaignPhase::Completed => {
                self.rest(now);
                self.touch(now);
            }
            CampaignPhase::Waiting { at: next } if self.until_place.is_none() => {
                let at = self.soonest(Some(next), now).unwrap_or(next);
                self.enter(CampaignPhase::Waiting { at });
            }
            _ => {}
        }
    }
}
