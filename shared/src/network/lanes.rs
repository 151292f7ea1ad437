//! How long each organisation has made the stream wait in this process.
//!
//! The stream passes a lane's next batch after the slowest attempt of the one before. A circuit breaker knows one
//! endpoint; this knows one organisation, which may have any number of new endpoints. On Lambda, several processes
//! serve the lanes. Each of them knows only its own batches, so that no call is needed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::values::id::OrgId;
use crate::values::time::Timestamp;

/// Seconds of a period.
const PERIOD: i64 = 60;

/// For each organisation, how long its slow attempts have occupied a lane in a period.
#[derive(Debug, Default)]
pub struct LaneTime(Mutex<BTreeMap<OrgId, (i64, Duration)>>);

impl LaneTime {
    /// Adds a batch in which the slowest attempt of `org` took `time`.
    pub fn add(&self, org: OrgId, time: Duration, now: Timestamp) {
        let period = period_of(now);
        let mut all = self.lock();
        all.retain(|_, (of, _)| *of == period);
        all.entry(org).or_insert((period, Duration::ZERO)).1 += time;
    }

    /// How long `org` has occupied a lane in the current period.
    pub fn of(&self, org: OrgId, now: Timestamp) -> Duration {
        let period = period_of(now);
        self.lock().get(&org).filter(|(of, _)| *of == period).map_or(Duration::ZERO, |(_, time)| *time)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<OrgId, (i64, Duration)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn period_of(now: Timestamp) -> i64 {
    now.unix_seconds().div_euclid(PERIOD)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn lane_time_adds_up_within_a_minute_for_each_organisation() {
        let (time, now) = (LaneTime::default(), Timestamp::from_unix_millis(1_800_000_000_000));
        let [one, other] = [1, 2].map(|number| OrgId(Uuid::from_u128(number)));
        time.add(one, Duration::from_secs(5), now);
        time.add(one, Duration::from_secs(4), now.plus_seconds(59));
        assert_eq!(time.of(one, now.plus_seconds(59)), Duration::from_secs(9));
        assert_eq!(time.of(other, now), Duration::ZERO);
        assert_eq!(time.of(one, now.plus_seconds(60)), Duration::ZERO);
        time.add(other, Duration::from_secs(1), now.plus_seconds(60));
        assert_eq!(time.lock().len(), 1, "what has passed is forgotten");
    }
}
