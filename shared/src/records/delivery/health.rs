//! The health of an endpoint: the state of its circuit breaker.

mod storage;

pub use storage::{drain_later, keep, of, recheck_at, resetting, stop_draining};

use serde::{Deserialize, Serialize};

use super::Attempt;
use crate::records::due::Due;
use crate::table::keys::Key;
use crate::table::stored::{Single, Stored};
use crate::table::version::{Version, Versioned};
use crate::values::id::EndpointId;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Failures in a row that open the circuit of an endpoint.
const OPENS_AFTER: u64 = 3;
/// Seconds without a success after which a webhook is disabled.
const DISABLED_AFTER: i64 = 5 * 86_400;
/// Seconds after which the index surely shows a deferred delivery.
const INDEX_LAG: i64 = 300;
/// Seconds for which one recorded deferral is enough: far fewer than [`INDEX_LAG`].
const NOTE_VALID: i64 = 30;
/// Seconds for which one recorded slow answer is enough.
const SLOW_NOTE_VALID: i64 = 300;
/// Seconds after a recorded slow answer in which the stream sends nothing: at least an hour after each slow answer.
const SLOW_FOR: i64 = 3600 + SLOW_NOTE_VALID;

/// The state of the circuit breaker of an endpoint, from its recent attempts. A healthy endpoint has no such record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointHealth {
    /// Webhook or widget.
    pub id: EndpointId,
    /// Failures in a row.
    pub failures: u64,
    /// When the first of them was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// Whether its last answer was slow.
    pub slow: bool,
    /// When an answer was slow, within some minutes of the last one. The owner cannot reset it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_at: Option<Timestamp>,
    /// When a delivery was last deferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred_at: Option<Timestamp>,
    /// Whether it is a widget's connector rather than a webhook. A delivery shows this too, but there may be no
    /// delivery.
    #[serde(default)]
    pub connector: bool,
    /// Whether the index shows no more of its deliveries, so that the next drain reads the list of deliveries itself
    /// and is the last.
    #[serde(default)]
    pub looked: bool,
    /// When the tick drains it next; `None` where nothing is deferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When its owner last closed the circuit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<Timestamp>,
    /// How often it has changed.
    #[serde(flatten)]
    pub version: Version,
}

impl Stored for EndpointHealth {
    type Id = EndpointId;

    fn key(tenant: &Tenant, id: EndpointId) -> Key {
        Key::of(tenant, format_args!("ENDPOINT_HEALTH#{id}"), "ENDPOINT_HEALTH")
    }

    fn due_partition(&self, id: EndpointId) -> Option<String> {
        self.due_at.map(|_| Due::Endpoint.partition(id.0))
    }
}

impl Single for EndpointHealth {}

impl Versioned for EndpointHealth {
    fn version(&self) -> Version {
        self.version
    }

    fn set_version(&mut self, version: Version) {
        self.version = version;
    }
}

impl EndpointHealth {
    /// A healthy endpoint.
    pub fn healthy(id: EndpointId) -> Self {
        Self {
            id,
            failures: 0,
            failing_since: None,
            slow: false,
            slow_at: None,
            deferred_at: None,
            connector: false,
            looked: false,
            due_at: None,
            reset_at: None,
            version: Version::default(),
        }
    }

    /// Whether nothing is wrong with it.
    pub fn is_healthy(&self, now: Timestamp) -> bool {
        !self.slow && self.failures == 0 && !self.was_slow(now)
    }

    /// Whether it was slow within the hour.
    fn was_slow(&self, now: Timestamp) -> bool {
        self.slow_at.is_some_and(|at| now < at.plus_seconds(SLOW_FOR))
    }

    /// Whether a deferred delivery may exist that the index does not show yet.
    pub fn may_have_deferred(&self, now: Timestamp) -> bool {
        self.deferred_at.is_some_and(|at| now <= at.plus_seconds(INDEX_LAG))
    }

    /// Whether a deferral was recorded so recently that another record is unnecessary.
    pub fn has_noted_deferral(&self, now: Timestamp) -> bool {
        self.deferred_at.is_some_and(|at| now <= at.plus_seconds(NOTE_VALID))
    }

    /// Whether the circuit is open: the stream sends nothing to this endpoint, and the tick probes it.
    pub fn circuit_is_open(&self, now: Timestamp) -> bool {
        self.slow || self.failures >= OPENS_AFTER || self.was_slow(now)
    }

    /// Whether it has failed for so long that its webhook must be disabled.
    pub fn has_failed_too_long(&self, now: Timestamp) -> bool {
        self.failing_since.is_some_and(|since| since.plus_seconds(DISABLED_AFTER) <= now)
    }

    /// This health, updated with later observations.
    #[must_use]
    pub fn with(&self, observed: &Observed) -> Self {
        let earlier = if observed.succeeded { Self::healthy(self.id) } else { self.clone() };
        Self {
            failures: earlier.failures + observed.failures,
            failing_since: earlier.failing_since.or(observed.failing_since),
            slow: observed.slow.unwrap_or(self.slow),
            slow_at: match (self.slow_at.filter(|_| !observed.recovered), observed.slow_at) {
                (Some(noted), Some(slow)) if slow < noted.plus_seconds(SLOW_NOTE_VALID) => Some(noted),
                (noted, slow) => slow.or(noted),
            },
            deferred_at: observed.deferred_at.or(self.deferred_at),
            looked: self.looked && observed.deferred_at.is_none(),
            ..self.clone()
        }
    }

    /// This health, updated with observations of the endpoint whose address was read at `read_at`; the tick drains the
    /// endpoint. If the circuit was closed after `read_at`, the address may have changed since, and only a deferral and
    /// the time of a slow answer count.
    #[must_use]
    pub fn after(&self, observed: &Observed, read_at: Timestamp, now: Timestamp) -> Self {
        let Observed { slow_at, deferred_at, .. } = *observed;
        let lasting = Observed { slow_at, deferred_at, ..Observed::default() };
        let is_of_now = self.reset_at.is_none_or(|reset_at| reset_at <= read_at);
        // A drain that only checks the list once more may be an hour away.
        let due_at = self.due_at.filter(|_| observed.deferred_at.is_none()).or(Some(now));
        Self { due_at, ..self.with(if is_of_now { observed } else { &lasting }) }
    }
}

/// Observations of an endpoint. Several functions make them at the same time; the table adds them up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observed {
    /// Whether an attempt succeeded: the failures before it no longer count.
    pub succeeded: bool,
    /// The failures since the last success.
    pub failures: u64,
    /// When the first of them was.
    pub failing_since: Option<Timestamp>,
    /// Whether its last answer was slow.
    pub slow: Option<bool>,
    /// When the first slow answer was.
    pub slow_at: Option<Timestamp>,
    /// Whether so many deliveries arrived at once that slow answers before no longer count.
    pub recovered: bool,
    /// When a delivery was deferred.
    pub deferred_at: Option<Timestamp>,
}

impl Observed {
    /// The result of an attempt, which is slow if it took `slow_from` milliseconds or more.
    pub fn of(attempt: &Attempt, slow_from: u64) -> Self {
        let (succeeded, slow) = (attempt.succeeded(), attempt.milliseconds >= slow_from);
        Self {
            succeeded,
            failures: u64::from(!succeeded),
            failing_since: Some(attempt.at).filter(|_| !succeeded),
            slow: Some(slow),
            slow_at: Some(attempt.at).filter(|_| slow),
            ..Self::default()
        }
    }

    /// An attempt that began `at` this time, and was ended before an answer could come: the endpoint is slow, and
    /// nobody knows whether it fails.
    pub fn cut_short(at: Timestamp) -> Self {
        Self { slow: Some(true), slow_at: Some(at), ..Self::default() }
    }

    /// These observations, followed by the ones made `later`.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        let earlier = if later.succeeded { Self::default() } else { self };
        Self {
            succeeded: self.succeeded || later.succeeded,
            failures: earlier.failures + later.failures,
            failing_since: earlier.failing_since.or(later.failing_since),
            slow: later.slow.or(self.slow),
            slow_at: self.slow_at.filter(|_| !later.recovered).or(later.slow_at),
            recovered: self.recovered || later.recovered,
            deferred_at: later.deferred_at.or(self.deferred_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use uuid::Uuid;

    use super::*;

    fn attempt() -> impl Strategy<Value = Observed> {
        (0..100_i64, prop::option::of(200..600_u64), 0..100_u64).prop_map(|(at, status, milliseconds)| {
            let at = Timestamp::from_unix_millis(at);
            Observed::of(&Attempt { at, status, milliseconds, error: None, answer: None }, 50)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn merged_observations_equal_single_ones(attempts in prop::collection::vec(attempt(), 0..8), cut in 0..8_usize) {
            let healthy = EndpointHealth::healthy(EndpointId(Uuid::nil()));
            let one_by_one = attempts.iter().fold(healthy.clone(), |health, seen| health.with(seen));
            let (first, second) = attempts.split_at(cut.min(attempts.len()));
            let together = |seen: &[Observed]| seen.iter().fold(Observed::default(), |all, one| all.then(*one));
            prop_assert_eq!(&healthy.with(&together(first)).with(&together(second)), &one_by_one);
            prop_assert_eq!(&healthy.with(&together(first).then(together(second))), &one_by_one);
            let since_success = attempts.iter().rev().take_while(|seen| !seen.succeeded).count();
            prop_assert_eq!(one_by_one.failures, since_success as u64);
        }
    }
}
