//! How many of a campaign's contacts have each status and each outcome. The transaction that changes a contact also
//! changes these counts, so that they are exact.

use std::collections::BTreeMap;

use super::progress::TOGETHER;
use super::storage::places;
use super::{Campaign, CampaignStatus, ContactStatus, RunId};
use crate::records::outcome::{OutcomeCounts, ReportedOutcome};
use crate::table::Table;
use crate::table::expression::UpdateExpression;
use crate::table::item::{Item, number};
use crate::table::keys::Key;
use crate::table::transaction::Write;
use crate::values::id::CampaignContactId;
use crate::values::tenant::Tenant;

/// Items that count the results of a campaign's contacts: so many deliveries may end at the same time without a
/// conflict.
const SHARDS: u32 = 32;

crate::object! {
    /// How many of a campaign's contacts are in each state.
    #[derive(Default, Copy)]
    pub struct Counts {
        /// Contacts that are not sent yet, or that wait for another attempt.
        pub queued: u64,
        /// Contacts whose message or call the connector has got.
        pub sent: u64,
        /// Contacts whose message is stored, because the widget has no connector.
        #[serde(default)]
        pub stored: u64,
        /// Contacts for which sending was given up.
        pub failed: u64,
        /// Contacts to which nothing was sent, because they are not to be contacted.
        #[serde(default)]
        pub suppressed: u64,
        /// Contacts that were cancelled before they were sent.
        pub cancelled: u64,
    }
}

impl Counts {
    /// How many contacts have their result.
    pub const fn ended(&self) -> u64 {
        self.sent + self.stored + self.failed + self.suppressed
    }
}

/// The results of a campaign's contacts.
#[derive(Debug, Clone, Default)]
pub(super) struct ContactResults {
    /// Those with a result; of the failed ones, those of the current round.
    counts: Counts,
    outcomes: OutcomeCounts,
    /// Contacts that were deleted from the campaign, in any status.
    deleted: u64,
}

impl ContactResults {
    /// The results in this `round`, from the items that count them.
    pub fn of(items: &[Item], round: u32) -> Self {
        let count = |item: &Item, name: &str| -> i64 {
            item.get(name).and_then(|count| count.as_n().ok()?.parse().ok()).unwrap_or_default()
        };
        // One item may have a negative count: a contact may be counted in one item and subtracted in another.
        let all = |name: &str| items.iter().map(|item| count(item, name)).sum::<i64>().max(0).unsigned_abs();
        let with = |status| attribute(status, round).map_or(0, |name| all(&name));
        let counts = Counts {
            sent: with(ContactStatus::Sent),
            stored: with(ContactStatus::Stored),
            failed: with(ContactStatus::Failed),
            suppressed: with(ContactStatus::Suppressed),
            ..Counts::default()
        };
        let deleted = items.iter().map(|item| places(item).len() as u64).sum();
        Self { counts, outcomes: OutcomeCounts::of(|outcome| all(&of_outcome(outcome))), deleted }
    }
}

impl Campaign {
    /// This campaign with the counts of its contacts: all contacts without a result are queued, or cancelled with the
    /// campaign.
    #[must_use]
    pub(super) fn with_results(mut self, results: ContactResults) -> Self {
        let ContactResults { counts, outcomes, deleted } = results;
        let left = self.counts.queued.saturating_sub(counts.ended() + deleted);
        let cancelled = self.status == CampaignStatus::Cancelled;
        let (queued, cancelled) = if cancelled { (0, left) } else { (left, 0) };
        self.counts = Counts { queued, cancelled, ..counts };
        self.outcomes = outcomes;
        self
    }
}

/// The key of one item that counts results of a campaign's contacts. It has the partition key of the run's pointer.
fn results(tenant: &Tenant, run: RunId, shard: u32) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), format_args!("OUTCOMES#{shard:02}"))
}

/// The attribute that counts contacts with this status; `None` of one that follows from the others.
fn attribute(status: ContactStatus, round: u32) -> Option<String> {
    match status {
        ContactStatus::Sent | ContactStatus::Stored | ContactStatus::Suppressed => Some(status.as_str().to_owned()),
        ContactStatus::Failed if round == 0 => Some(status.as_str().to_owned()),
        ContactStatus::Failed => Some(format!("{}_{round}", status.as_str())),
        ContactStatus::Queued | ContactStatus::Cancelled => None,
    }
}

/// The attribute that counts contacts with this outcome.
fn of_outcome(outcome: ReportedOutcome) -> String {
    format!("outcome_{}", outcome.as_str())
}

/// A change of the counts; a negative number subtracts contacts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    changes: BTreeMap<String, i64>,
    /// The count of an earlier round. A contact that fails in a round has failed in all rounds before.
    past: Option<String>,
}

impl Tally {
    /// Counts `by` more contacts with this status.
    pub fn status(mut self, (status, round): (ContactStatus, u32), by: i64) -> Self {
        if let Some(name) = attribute(status, round) {
            *self.changes.entry(name).or_default() += by;
        }
        if let (ContactStatus::Failed, Some(before)) = (status, round.checked_sub(1)) {
            self.past = attribute(status, before);
        }
        self
    }

    /// Counts `by` more contacts with this outcome, if there is one.
    pub fn outcome(mut self, outcome: Option<ReportedOutcome>, by: i64) -> Self {
        if let Some(outcome) = outcome {
            *self.changes.entry(of_outcome(outcome)).or_default() += by;
        }
        self
    }

    /// The write that makes the change for contacts of which `first` is one; `None` if nothing changes.
    pub fn write(self, table: &Table, first: CampaignContactId) -> Option<Write> {
        let changes: Vec<_> = self.changes.into_iter().filter(|(_, by)| *by != 0).collect();
        if changes.is_empty() {
            return None;
        }
        let counting = changes.iter().fold(UpdateExpression::new(), |update, (name, by)| update.add(name, number(*by)));
        let shard = first.place().unwrap_or_default() / TOGETHER % SHARDS;
        Some(Write::update(results(&table.tenant, first.run(), shard), counting.remove_all(self.past)))
    }
}
