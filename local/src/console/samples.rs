//! How the contacts of each campaign were spread over the statuses, from time to time while `cargo local` runs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use shared::routes;
use shared::values::time::Timestamp;
use tokio::sync::watch;

use super::markup::member;
use super::{Console, ROWS};

/// The statuses of a contact of a campaign, in the order in which a chart stacks them.
pub const STATUSES: [&str; 6] = ["stored", "sent", "failed", "suppressed", "cancelled", "queued"];
/// The statuses of a campaign that is under way.
pub const UNDER_WAY: [&str; 4] = ["to_be_run", "queued", "in_progress", "paused"];
/// The most samples of a campaign.
const KEPT: usize = 300;
/// The least time between two samples.
const PAUSE: Duration = Duration::from_secs(1);

/// The samples of each campaign by its id, the oldest first.
#[derive(Debug, Default)]
pub struct Samples(Mutex<BTreeMap<String, VecDeque<CampaignSample>>>);

/// The contacts of a campaign at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignSample {
    /// The time.
    pub at: Timestamp,
    /// The contacts in each of [`STATUSES`].
    pub counts: [u64; STATUSES.len()],
}

impl CampaignSample {
    /// A campaign as the API answers it.
    pub fn of(campaign: &Value, at: Timestamp) -> Self {
        Self { at, counts: STATUSES.map(|status| campaign["counts"][status].as_u64().unwrap_or_default()) }
    }
}

impl Samples {
    /// Notes a campaign, if it is under way or has changed. A sample that comes soon after another one replaces it.
    pub fn note(&self, campaign: &Value, at: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = member(campaign, "id").to_owned();
        if !all.contains_key(&id) && !UNDER_WAY.contains(&member(campaign, "status")) {
            return;
        }
        let (samples, sample) = (all.entry(id).or_default(), CampaignSample::of(campaign, at));
        if samples.back().is_some_and(|last| last.counts == sample.counts) {
            return;
        }
        // The first one stays: it is what the campaign began with.
        let is_soon = |last: &CampaignSample| at < last.at.plus_seconds(1);
        if samples.len() > 1 && samples.back().is_some_and(is_soon) {
            samples.pop_back();
        }
        if samples.len() == KEPT {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// The samples of a campaign, the oldest first.
    pub fn of(&self, campaign: &str) -> Vec<CampaignSample> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(campaign).into_iter().flatten().cloned().collect()
    }
}

/// Notes the campaigns of the console after each change, until the console ends.
pub async fn follow(console: Weak<Console>, mut changes: watch::Receiver<u64>) {
    while changes.changed().await.is_ok() {
        let Some(console) = console.upgrade() else { return };
        console.note_campaigns().await;
        drop(console);
        tokio::time::sleep(PAUSE).await;
    }
}

impl Console {
    async fn note_campaigns(&self) {
        for organisation in self.api.organisations() {
            let newest = self.api.newest(organisation, &routes::LIST_CAMPAIGNS, ROWS).await;
            for campaign in newest.iter().flatten() {
                self.samples.note(campaign, self.clock.now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn campaign(status: &str, sent: u64) -> Value {
        json!({"id": "c", "status": status, "counts": {"queued": 5 - sent, "sent": sent}})
    }

    #[test]
    fn samples_are_a_second_apart_and_the_last_ones_are_kept() {
        let (samples, at) = (Samples::default(), Timestamp::from_unix_millis);
        samples.note(&campaign("completed", 5), at(0));
        assert_eq!(samples.of("c"), []);
        for (millis, sent) in [(0, 0), (1_000, 0), (1_100, 1), (1_500, 2), (3_000, 3)] {
            samples.note(&campaign("in_progress", sent), at(millis));
        }
        samples.note(&campaign("completed", 5), at(9_000));
        let seen: Vec<_> = samples.of("c").iter().map(|sample| (sample.at, sample.counts[1])).collect();
        assert_eq!(seen, [(at(0), 0), (at(1_500), 2), (at(3_000), 3), (at(9_000), 5)]);
        for number in 0..400 {
            samples.note(&campaign("in_progress", number % 5), at(10_000 + 1_000 * number.cast_signed()));
        }
        assert_eq!(samples.of("c").len(), KEPT);
    }
}
