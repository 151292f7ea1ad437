//! The stages of a delivery, and how each outcome leads from one to the next. Nothing here reads or writes the table.

use uuid::Uuid;

use super::{Attempt, Delivery, DeliveryState, SentBy};
use crate::values::time::Timestamp;

/// The backoff: seconds from each attempt to the next, without the jitter. The attempt after the last delay is the last
/// attempt.
const DELAYS: [i64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
/// The most jitter, as a part of the delay that it is added to.
const JITTER: f64 = 0.1;
/// Seconds after which a ready delivery that was not sent is released.
pub(crate) const UNSENT: i64 = 300;
/// Seconds for which a delivery that has ended is kept.
pub const KEPT: i64 = 30 * 86_400;
/// The most attempts that a delivery lists.
const LOG: usize = 20;
/// The attempts without a result after which a delivery is given up.
const MOST_UNCONFIRMED: u32 = 10;
/// The number of releases after which a delivery may have crashed the processes that attempted it. Any failure of the
/// stream can cause one release.
const SUSPICIOUS_RELEASES: u32 = 2;

/// The stage of a delivery. The attributes `state`, `due_at`, `sent_by` and `next_attempt_at` store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStage {
    /// The stream sends it now. It is released at `due`, if the stream has not sent it by then.
    Ready {
        /// Deliveries of old versions have none.
        due: Option<Timestamp>,
    },
    /// It is sent at `due`.
    Waiting {
        /// The time.
        due: Timestamp,
        /// Whether the stream or the tick sends it.
        by: SentBy,
    },
    /// It waits for its campaign to be resumed.
    Parked,
    /// It has arrived.
    Delivered,
    /// It was given up.
    Dead,
}

/// An event in the life of a delivery.
#[derive(Debug, Clone)]
pub enum DeliveryOutcome {
    /// A request has redelivered it.
    AskedAgain {
        /// The request.
        by: Uuid,
    },
    /// A recovery sends it again, at the rate of the tick.
    Recovered {
        /// The request.
        by: Uuid,
    },
    /// Its campaign was resumed.
    Resumed,
    /// It was due: its time has come, or the stream has not sent it in time.
    Released,
    /// An attempt begins. If it crashes the process, this is its only trace.
    Begun,
    /// An attempt has a result.
    Attempted {
        /// The result.
        attempt: Attempt,
        /// Seconds for which the endpoint asks to wait.
        retry_after: Option<i64>,
        /// Whether the stream or the tick makes the next attempt.
        retried_by: SentBy,
        /// From 0 to 1.
        jitter: f64,
    },
    /// The stream has ended an attempt before an answer came. The tick, which has more time, makes the next one at once.
    CutShort {
        /// What is known of it.
        attempt: Attempt,
    },
    /// It is left to the tick without an attempt.
    Deferred,
    /// The attempt that had begun was not made.
    NotAttempted,
    /// The time window of its campaign is closed.
    WindowClosed {
        /// When it opens.
        opens: Timestamp,
    },
    /// Its campaign is paused.
    Paused,
    /// It cannot be sent, or must no longer be sent.
    GivenUp {
        /// Why.
        reason: String,
    },
}

impl Delivery {
    /// Its current stage.
    pub fn stage(&self) -> DeliveryStage {
        match (self.state, self.due_at) {
            (DeliveryState::Ready, due) => DeliveryStage::Ready { due },
            (DeliveryState::Waiting, Some(due)) => DeliveryStage::Waiting { due, by: self.sent_by },
            (DeliveryState::Waiting, None) => DeliveryStage::Parked,
            (DeliveryState::Delivered, _) => DeliveryStage::Delivered,
            (DeliveryState::Dead, _) => DeliveryStage::Dead,
        }
    }

    /// The delivery after `outcome`.
    #[must_use]
    pub fn decide(self, outcome: DeliveryOutcome, now: Timestamp) -> Self {
        match outcome {
            DeliveryOutcome::AskedAgain { by } => self.asked_again(by).made_ready(now),
            DeliveryOutcome::Recovered { by } => {
                self.asked_again(by).enter(DeliveryStage::Waiting { due: now, by: SentBy::Recovery }, now)
            }
            DeliveryOutcome::Resumed => self.made_ready(now),
            DeliveryOutcome::Released => {
                let releases = if self.state == DeliveryState::Ready { self.releases + 1 } else { 0 };
                Self { releases, ..self }.made_ready(now)
            }
            DeliveryOutcome::Begun if self.unconfirmed >= MOST_UNCONFIRMED => {
                self.given_up("no attempt came to an end", now)
            }
            DeliveryOutcome::Begun => Self { unconfirmed: self.unconfirmed + 1, updated_at: now, ..self },
            DeliveryOutcome::Attempted { attempt, retry_after, retried_by, jitter } => {
                self.attempted(attempt, (retry_after, retried_by, jitter), now)
            }
            DeliveryOutcome::CutShort { attempt } => {
                self.with_result(attempt).enter(DeliveryStage::Waiting { due: now, by: SentBy::Tick }, now)
            }
            DeliveryOutcome::Deferred => {
                Self { releases: 0, ..self }.enter(DeliveryStage::Waiting { due: now, by: SentBy::Tick }, now)
            }
            DeliveryOutcome::NotAttempted => self.not_attempted(now),
            DeliveryOutcome::WindowClosed { opens } => {
                let waiting = Self { releases: 0, ..self.not_attempted(now) };
                waiting.enter(DeliveryStage::Waiting { due: opens, by: SentBy::Stream }, now)
            }
            DeliveryOutcome::Paused => {
                Self { releases: 0, ..self.not_attempted(now) }.enter(DeliveryStage::Parked, now)
            }
            DeliveryOutcome::GivenUp { reason } => self.given_up(&reason, now),
        }
    }

    fn asked_again(self, by: Uuid) -> Self {
        Self { tries: 0, asked_by: Some(by), unconfirmed: 0, releases: 0, ..self }
    }

    /// Whether an attempt may have crashed the process.
    pub const fn is_suspect(&self) -> bool {
        self.unconfirmed > 0 || self.releases >= SUSPICIOUS_RELEASES
    }

    pub(super) fn made_ready(self, now: Timestamp) -> Self {
        self.enter(DeliveryStage::Ready { due: Some(now.plus_seconds(UNSENT)) }, now)
    }

    /// The delivery, with the last begun attempt taken back.
    fn not_attempted(self, now: Timestamp) -> Self {
        Self { unconfirmed: self.unconfirmed.saturating_sub(1), updated_at: now, ..self }
    }

    fn given_up(self, reason: &str, now: Timestamp) -> Self {
        Self { error: Some(reason.to_owned()), ..self }.enter(DeliveryStage::Dead, now)
    }

    /// The delivery after an attempt. The next attempt waits for the backoff or for the time that the endpoint asks
    /// for, whichever is longer.
    fn attempted(
        self,
        attempt: Attempt,
        (retry_after, retried_by, jitter): (Option<i64>, SentBy, f64),
        now: Timestamp,
    ) -> Self {
        let (succeeded, gone) = (attempt.succeeded(), attempt.status == Some(410));
        let delay = usize::try_from(self.tries).ok().and_then(|tries| DELAYS.get(tries)).copied();
        let stage = match delay {
            _ if succeeded => DeliveryStage::Delivered,
            Some(delay) if !gone => {
                DeliveryStage::Waiting { due: after(now, retry_after.unwrap_or(0).max(delay), jitter), by: retried_by }
            }
            _ => DeliveryStage::Dead,
        };
        Self { tries: self.tries + 1, ..self.with_result(attempt) }.enter(stage, now)
    }

    /// The delivery with one more attempt in its log, which did not crash the process.
    fn with_result(mut self, attempt: Attempt) -> Self {
        (self.unconfirmed, self.releases) = (0, 0);
        (self.status, self.milliseconds) = (attempt.status, Some(attempt.milliseconds));
        self.error.clone_from(&attempt.error);
        self.log.push(attempt);
        let surplus = self.log.len().saturating_sub(LOG);
        self.log.drain(..surplus);
        Self { attempts: self.attempts + 1, ..self }
    }

    /// The only function that stores a stage.
    fn enter(mut self, stage: DeliveryStage, now: Timestamp) -> Self {
        (self.state, self.due_at) = match stage {
            DeliveryStage::Ready { due } => (DeliveryState::Ready, due),
            DeliveryStage::Waiting { due, .. } => (DeliveryState::Waiting, Some(due)),
            DeliveryStage::Parked => (DeliveryState::Waiting, None),
            DeliveryStage::Delivered => (DeliveryState::Delivered, None),
            DeliveryStage::Dead => (DeliveryState::Dead, None),
        };
        self.next_attempt_at = self.due_at.filter(|_| self.state == DeliveryState::Waiting);
        self.sent_by = match stage {
            DeliveryStage::Ready { .. } => SentBy::Stream,
            DeliveryStage::Waiting { by, .. } => by,
            DeliveryStage::Parked | DeliveryStage::Delivered | DeliveryStage::Dead => self.sent_by,
        };
        let has_ended = matches!(stage, DeliveryStage::Delivered | DeliveryStage::Dead);
        self.ttl = has_ended.then(|| now.plus_seconds(KEPT).unix_seconds());
        self.updated_at = now;
        self
    }
}

/// The time `seconds` later, with jitter from 0 to 1.
fn after(now: Timestamp, seconds: i64, jitter: f64) -> Timestamp {
    let delay = seconds * 1000;
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "days in milliseconds")]
    let jitter = (delay as f64 * JITTER * jitter) as i64;
    Timestamp::from_unix_millis(now.unix_millis() + delay + jitter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::delivery::NewDelivery;
    use crate::records::event::EventId;
    use crate::values::id::DeliveryId;

    fn later(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(1_800_000_000_000).plus_seconds(seconds)
    }

    fn answered(status: u64) -> DeliveryOutcome {
        let attempt = Attempt { at: later(0), status: Some(status), milliseconds: 5, error: None, answer: None };
        DeliveryOutcome::Attempted { attempt, retry_after: None, retried_by: SentBy::Stream, jitter: 0.0 }
    }

    fn cut_short() -> DeliveryOutcome {
        let error = Some("timeout".to_owned());
        DeliveryOutcome::CutShort {
            attempt: Attempt { at: later(0), status: None, milliseconds: 5000, error, answer: None },
        }
    }

    fn in_stage(stage: DeliveryStage) -> Delivery {
        let new = NewDelivery::test(EventId(Uuid::nil()), later(0));
        Delivery::new(DeliveryId(Uuid::nil()), new, later(0)).enter(stage, later(0))
    }

    #[test]
    fn each_outcome_leads_from_each_stage_to_one_stage() {
        let ready = DeliveryStage::Ready { due: Some(later(UNSENT)) };
        let retried = DeliveryStage::Waiting { due: later(5), by: SentBy::Stream };
        let held = DeliveryStage::Waiting { due: later(0), by: SentBy::Tick };
        let recovered = DeliveryStage::Waiting { due: later(0), by: SentBy::Recovery };
        let opens = DeliveryStage::Waiting { due: later(60), by: SentBy::Stream };
        let reason = || "no".to_owned();
        for before in [ready, retried, held, DeliveryStage::Parked, DeliveryStage::Delivered, DeliveryStage::Dead] {
            let rows = [
                (DeliveryOutcome::AskedAgain { by: Uuid::nil() }, ready),
                (DeliveryOutcome::Recovered { by: Uuid::nil() }, recovered),
                (DeliveryOutcome::Resumed, ready),
                (DeliveryOutcome::Released, ready),
                (DeliveryOutcome::Begun, before),
                (answered(204), DeliveryStage::Delivered),
                (answered(500), retried),
                (answered(410), DeliveryStage::Dead),
                (cut_short(), held),
                (DeliveryOutcome::Deferred, held),
                (DeliveryOutcome::NotAttempted, before),
                (DeliveryOutcome::WindowClosed { opens: later(60) }, opens),
                (DeliveryOutcome::Paused, DeliveryStage::Parked),
                (DeliveryOutcome::GivenUp { reason: reason() }, DeliveryStage::Dead),
            ];
            for (outcome, after) in rows {
                let text = format!("{before:?}, {outcome:?}");
                let delivery = in_stage(before).decide(outcome, later(0));
                assert_eq!(delivery.stage(), after, "{text}");
                let has_ended = matches!(after, DeliveryStage::Delivered | DeliveryStage::Dead);
                assert_eq!(delivery.ttl.is_some(), has_ended, "{text}");
            }
        }
    }

    #[test]
    fn retries_follow_the_delays_or_a_longer_retry_after() {
        let mut delivery = in_stage(DeliveryStage::Ready { due: None });
        for delay in DELAYS {
            delivery = delivery.decide(answered(500), later(0));
            assert_eq!(delivery.stage(), DeliveryStage::Waiting { due: later(delay), by: SentBy::Stream });
        }
        assert_eq!(delivery.clone().decide(answered(500), later(0)).stage(), DeliveryStage::Dead);
        let again = delivery.decide(DeliveryOutcome::AskedAgain { by: Uuid::max() }, later(0));
        let DeliveryOutcome::Attempted { attempt, .. } = answered(429) else { unreachable!("it is an attempt") };
        let asked =
            DeliveryOutcome::Attempted { attempt, retry_after: Some(600), retried_by: SentBy::Tick, jitter: 1.0 };
        assert_eq!(again.decide(asked, later(0)).stage(), DeliveryStage::Waiting { due: later(660), by: SentBy::Tick });
    }

    #[test]
    fn an_attempt_that_is_cut_short_takes_no_step_of_the_backoff() {
        let delivery = in_stage(DeliveryStage::Ready { due: None }).decide(cut_short(), later(0));
        assert_eq!((delivery.attempts, delivery.tries, delivery.log.len()), (1, 0, 1));
        assert_eq!((delivery.milliseconds, delivery.error.as_deref()), (Some(5000), Some("timeout")));
        let retried = DeliveryStage::Waiting { due: later(DELAYS[0]), by: SentBy::Stream };
        assert_eq!(delivery.decide(answered(500), later(0)).stage(), retried);
    }

    #[test]
    fn attempts_without_a_result_make_a_delivery_suspect_then_dead() {
        let mut delivery = in_stage(DeliveryStage::Ready { due: None });
        assert!(!delivery.is_suspect());
        for _ in 0..MOST_UNCONFIRMED {
            delivery = delivery.decide(DeliveryOutcome::Begun, later(0));
            assert!(delivery.is_suspect());
        }
        assert_eq!(delivery.clone().decide(DeliveryOutcome::Begun, later(0)).stage(), DeliveryStage::Dead);
        assert!(!delivery.clone().decide(answered(500), later(0)).is_suspect());
        let once = in_stage(DeliveryStage::Ready { due: None }).decide(DeliveryOutcome::Begun, later(0));
        assert!(!once.clone().decide(DeliveryOutcome::NotAttempted, later(0)).is_suspect());
        // A request to send it again begins anew.
        for asked in [DeliveryOutcome::AskedAgain { by: Uuid::max() }, DeliveryOutcome::Recovered { by: Uuid::max() }] {
            assert!(!once.clone().decide(asked, later(0)).is_suspect());
        }
        let released = in_stage(DeliveryStage::Ready { due: None }).decide(DeliveryOutcome::Released, later(0));
        assert!(!released.is_suspect());
        assert!(released.clone().decide(DeliveryOutcome::Released, later(0)).is_suspect());
        assert!(
            !released
                .decide(DeliveryOutcome::Deferred, later(0))
                .decide(DeliveryOutcome::Released, later(0))
                .is_suspect()
        );
    }
}
