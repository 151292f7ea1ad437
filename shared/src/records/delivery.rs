//! Deliveries: an event on its way to an endpoint, attempt after attempt; and how an endpoint fares.

pub(crate) mod storage;

use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::records::conversation::Conversation;
use crate::records::delivery::storage::{Due, held_partition};
use crate::values::id::{CampaignContactId, CampaignId, ConversationId, DeliveryId, EndpointId, MessageId};
use crate::values::schema::{Schema, Value};
use crate::values::time::Timestamp;

/// Seconds from each attempt to the next; jitter comes on top. After the last one there is no further.
const DELAYS: [i64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
/// How much longer than its delay an attempt may wait.
const JITTER: f64 = 0.1;
/// Seconds after which a delivery that nobody has sent is made ready once more.
const UNSENT: i64 = 300;
/// Failures in a row from which on an endpoint's deliveries are no longer tried with everybody else's.
const HELD_FROM: u64 = 3;
/// Seconds without a success after which a webhook is disabled.
const DISABLED_AFTER: i64 = 5 * 86_400;
/// Seconds after which the index surely shows what was held back.
const SETTLED: i64 = 300;
/// Seconds for which it is enough to have noted once that something is held back: far fewer than [`SETTLED`].
const NOTED: i64 = 30;
/// The most attempts that are kept in full.
const LOG: usize = 20;

crate::choice! {
    /// What happened.
    pub enum EventKind {
        ConversationClosed = "conversation.closed",
        CampaignMessage = "campaign.message",
        CampaignCall = "campaign.call",
        WebhookTest = "webhook.test",
    }
}

crate::choice! {
    /// How far a delivery is.
    pub enum DeliveryState {
        /// To be sent now.
        Ready = "ready",
        /// To be sent at a time.
        Waiting = "waiting",
        /// The endpoint has it.
        Delivered = "delivered",
        /// Given up.
        Dead = "dead",
    }
}

/// An event: `evt_` and the id of what it is about, in 32 hexadecimal digits. So an event has one id, however often it is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventId(pub Uuid);

impl std::fmt::Display for EventId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "evt_{}", self.0.simple())
    }
}

impl Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let id = text.strip_prefix("evt_").and_then(|id| id.parse().ok());
        id.map(Self).ok_or_else(|| serde::de::Error::custom("no event id"))
    }
}

impl Schema for EventId {
    fn schema() -> Value {
        json!({"type": "string", "pattern": "^evt_[0-9a-f]{32}$"})
    }
}

crate::object! {
    /// An attempt to deliver.
    pub struct Attempt {
        /// When it began.
        pub at: Timestamp,
        /// The HTTP status; none where no answer came.
        pub status: Option<u64>,
        /// How long it took.
        pub milliseconds: u64,
        /// Why there was no answer.
        pub error: Option<String>,
        /// How the answer began: 1 KB at most.
        pub answer: Option<String>,
    }
}

impl Attempt {
    /// Whether the endpoint has it.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

crate::choice! {
    /// Who sends a delivery when it becomes due.
    pub enum Lane {
        /// The stream, with everybody else's.
        Open = "open",
        /// The tick that looks after its endpoint.
        Held = "held",
    }
}

crate::record! {
    /// An event on its way to an endpoint.
    pub struct Delivery(DeliveryId): listed("DELIVERY" of EndpointId, due Delivery::partition) {
        /// The event's id, which is the `webhook-id` of every attempt.
        own event_id: EventId,
        /// What happened.
        own event: EventKind,
        /// How far it is.
        own state: DeliveryState,
        /// How often it was tried.
        own attempts: u64 = 0,
        /// The last attempt's HTTP status.
        own status: Option<u64> = None,
        /// How long the last attempt took.
        own milliseconds: Option<u64> = None,
        /// Why the last attempt had no answer, or why there was none.
        own error: Option<String> = None,
        /// When it is tried again.
        own next_attempt_at: Option<Timestamp> = None,
        /// The attempts, the oldest first; of many, the latest.
        own log: Vec<Attempt> = Vec::new(),
        /// The conversation it is about.
        own conversation_id: Option<ConversationId> = None,
        /// The contact of a campaign that it is for.
        own campaign_contact_id: Option<CampaignContactId> = None,
        /// When it happened.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// Attempts since it was last asked for: where in the schedule it is.
        hidden tries: u64 = 0,
        /// The campaign of the contact that it is for.
        hidden campaign_id: Option<CampaignId> = None,
        /// The message it hands over.
        hidden message_id: Option<MessageId> = None,
        /// The request that last asked for it.
        hidden asked_by: Option<Uuid> = None,
        /// Who sends it when it becomes due.
        hidden lane: Lane = Lane::Open,
        /// When it becomes due.
        hidden due_at: Option<Timestamp> = None,
    }
}

impl Delivery {
    /// Why it did not arrive, where it did not.
    pub fn failure(&self) -> Option<String> {
        let answered = || self.status.map(|status| format!("the connector answered {status}"));
        if self.state == DeliveryState::Delivered { None } else { self.error.clone().or_else(answered) }
    }
}

/// What is to be delivered.
#[derive(Debug, Clone, Copy)]
pub struct NewDelivery {
    /// The event's id.
    pub event_id: EventId,
    /// What happened.
    pub event: EventKind,
    /// The conversation it is about.
    pub conversation_id: Option<ConversationId>,
    /// The contact of a campaign that it is for.
    pub campaign_contact_id: Option<CampaignContactId>,
    /// The campaign of that contact.
    pub campaign_id: Option<CampaignId>,
    /// The message it hands over.
    pub message_id: Option<MessageId>,
    /// When it happened.
    pub at: Timestamp,
}

impl NewDelivery {
    /// An event that tells nothing but that it arrives.
    pub const fn test(event_id: EventId, at: Timestamp) -> Self {
        let event = EventKind::WebhookTest;
        Self {
            event_id,
            event,
            conversation_id: None,
            campaign_contact_id: None,
            campaign_id: None,
            message_id: None,
            at,
        }
    }

    /// That `conversation` was closed.
    pub fn closed(conversation: &Conversation) -> Self {
        Self {
            event_id: EventId(conversation.id.0),
            event: EventKind::ConversationClosed,
            conversation_id: Some(conversation.id),
            campaign_contact_id: None,
            campaign_id: None,
            message_id: None,
            at: conversation.closed_at.unwrap_or(conversation.updated_at),
        }
    }

    /// That a contact of a campaign is to get its message, or its call.
    pub fn of_campaign(campaign: CampaignId, contact: CampaignContactId, calls: bool, at: Timestamp) -> Self {
        Self {
            event_id: EventId(contact.0),
            event: if calls { EventKind::CampaignCall } else { EventKind::CampaignMessage },
            conversation_id: None,
            campaign_contact_id: Some(contact),
            campaign_id: Some(campaign),
            message_id: None,
            at,
        }
    }
}

impl Delivery {
    /// A delivery to be sent now.
    pub fn new(id: DeliveryId, new: NewDelivery, now: Timestamp) -> Self {
        Self {
            id,
            event_id: new.event_id,
            event: new.event,
            state: DeliveryState::Ready,
            attempts: 0,
            status: None,
            milliseconds: None,
            error: None,
            next_attempt_at: None,
            log: Vec::new(),
            conversation_id: new.conversation_id,
            campaign_contact_id: new.campaign_contact_id,
            created_at: new.at,
            updated_at: now,
            tries: 0,
            campaign_id: new.campaign_id,
            message_id: new.message_id,
            asked_by: None,
            lane: Lane::Open,
            due_at: None,
        }
        .ready(now)
    }

    /// To be sent now. Where nobody does, it becomes due.
    #[must_use]
    pub fn ready(mut self, now: Timestamp) -> Self {
        self.state = DeliveryState::Ready;
        self.next_attempt_at = None;
        self.due(Lane::Open, now.plus_seconds(UNSENT), now)
    }

    /// To be sent now, from the beginning of the schedule.
    #[must_use]
    pub fn again(self, by: Uuid, now: Timestamp) -> Self {
        Self { tries: 0, asked_by: Some(by), ..self }.ready(now)
    }

    /// Left to the schedule of its endpoint, without an attempt.
    #[must_use]
    pub fn held(mut self, now: Timestamp) -> Self {
        self.state = DeliveryState::Waiting;
        self.next_attempt_at = Some(now);
        self.due(Lane::Held, now, now)
    }

    /// Given up, for `reason`.
    #[must_use]
    pub fn dead(mut self, reason: &str, now: Timestamp) -> Self {
        self.error = Some(reason.to_owned());
        self.over(DeliveryState::Dead, now)
    }

    /// After `attempt`. The next one waits as long as the schedule says, or the endpoint, in this `lane`. `jitter` is from 0 to 1.
    #[must_use]
    pub fn after(
        mut self,
        attempt: Attempt,
        retry_after: Option<i64>,
        lane: Lane,
        jitter: f64,
        now: Timestamp,
    ) -> Self {
        let (succeeded, gone) = (attempt.succeeded(), attempt.status == Some(410));
        let delivery = &mut self;
        delivery.attempts += 1;
        (delivery.status, delivery.milliseconds) = (attempt.status, Some(attempt.milliseconds));
        delivery.error.clone_from(&attempt.error);
        delivery.log.push(attempt);
        let surplus = delivery.log.len().saturating_sub(LOG);
        delivery.log.drain(..surplus);
        let delay = usize::try_from(self.tries).ok().and_then(|tries| DELAYS.get(tries)).copied();
        self.tries += 1;
        match delay {
            _ if succeeded => self.over(DeliveryState::Delivered, now),
            Some(delay) if !gone => {
                let delay = retry_after.unwrap_or(0).max(delay) * 1000;
                #[expect(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    reason = "a day in milliseconds"
                )]
                let jitter = (delay as f64 * JITTER * jitter) as i64;
                let at = Timestamp::from_unix_millis(now.unix_millis() + delay + jitter);
                self.state = DeliveryState::Waiting;
                self.next_attempt_at = Some(at);
                self.due(lane, at, now)
            }
            _ => self.over(DeliveryState::Dead, now),
        }
    }

    fn over(mut self, state: DeliveryState, now: Timestamp) -> Self {
        self.state = state;
        self.next_attempt_at = None;
        self.updated_at = now;
        Self { due_at: None, ..self }
    }

    fn due(mut self, lane: Lane, at: Timestamp, now: Timestamp) -> Self {
        self.updated_at = now;
        Self { lane, due_at: Some(at), ..self }
    }

    /// Its partition in the index of what becomes due.
    fn partition(&self, (endpoint, id): (EndpointId, DeliveryId)) -> Option<String> {
        self.due_at?;
        Some(match self.lane {
            Lane::Open => Due::Delivery.partition(id.0),
            Lane::Held => held_partition(endpoint),
        })
    }
}

/// How an endpoint fares that does not fare well; of the others nothing is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointHealth {
    /// Webhook or widget.
    pub id: EndpointId,
    /// Failures in a row.
    pub failures: u64,
    /// When the first of them was.
    pub failing_since: Option<Timestamp>,
    /// Whether it last answered so late that others would have had to wait.
    pub slow: bool,
    /// When a delivery was last held back from it.
    pub held_at: Option<Timestamp>,
    /// Whether it is a widget's connector, and no webhook: what is known of it must be told even while no delivery is there to tell.
    #[serde(default)]
    pub connector: bool,
}

crate::single!(EndpointHealth, EndpointId, |id| format_args!("ENDPOINT_HEALTH#{id}"), "ENDPOINT_HEALTH");

impl EndpointHealth {
    /// A healthy endpoint.
    pub const fn good(id: EndpointId) -> Self {
        Self { id, failures: 0, failing_since: None, slow: false, held_at: None, connector: false }
    }

    /// Whether it fares well.
    pub const fn is_good(&self) -> bool {
        !self.slow && self.failures == 0
    }

    /// Whether something may be held back from it that the index does not show yet.
    pub fn may_be_held_from(&self, now: Timestamp) -> bool {
        self.held_at.is_some_and(|held| now <= held.plus_seconds(SETTLED))
    }

    /// Whether it was noted so lately that something is held back from it that it need not be noted again.
    pub fn is_known_to_be_held_from(&self, now: Timestamp) -> bool {
        self.held_at.is_some_and(|held| now <= held.plus_seconds(NOTED))
    }

    /// Whether its deliveries are left to the schedule instead of being tried with everybody else's.
    pub const fn is_held(&self) -> bool {
        self.slow || self.failures >= HELD_FROM
    }

    /// Whether it has failed for so long that it is disabled.
    pub fn is_hopeless(&self, now: Timestamp) -> bool {
        self.failing_since.is_some_and(|since| since.plus_seconds(DISABLED_AFTER) <= now)
    }

    /// With what was observed since.
    #[must_use]
    pub fn with(&self, observed: &Observed) -> Self {
        let earlier = if observed.succeeded { Self::good(self.id) } else { self.clone() };
        Self {
            id: self.id,
            failures: earlier.failures + observed.failures,
            failing_since: earlier.failing_since.or(observed.failing_since),
            slow: observed.slow.unwrap_or(self.slow),
            held_at: observed.held_at.or(self.held_at),
            connector: self.connector,
        }
    }
}

/// What was observed of an endpoint. Others observe it at the same time, and what they did is added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observed {
    /// Whether something arrived: what was before it is over.
    pub succeeded: bool,
    /// Failures, since then.
    pub failures: u64,
    /// When the first of them was.
    pub failing_since: Option<Timestamp>,
    /// Whether it last answered late.
    pub slow: Option<bool>,
    /// When a delivery was held back from it.
    pub held_at: Option<Timestamp>,
}

impl Observed {
    /// That it was mended, as its owner says.
    pub const fn mended() -> Self {
        Self { succeeded: true, failures: 0, failing_since: None, slow: Some(false), held_at: None }
    }

    /// What came of an attempt, which was slow from `slow_from` milliseconds on.
    pub fn of(attempt: &Attempt, slow_from: u64) -> Self {
        let (succeeded, slow) = (attempt.succeeded(), Some(attempt.milliseconds >= slow_from));
        let failing_since = Some(attempt.at).filter(|_| !succeeded);
        Self { succeeded, failures: u64::from(!succeeded), failing_since, slow, held_at: None }
    }

    /// This, and what was observed after it.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        let earlier = if later.succeeded { Self::default() } else { self };
        Self {
            succeeded: self.succeeded || later.succeeded,
            failures: earlier.failures + later.failures,
            failing_since: earlier.failing_since.or(later.failing_since),
            slow: later.slow.or(self.slow),
            held_at: later.held_at.or(self.held_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        fn to_note_all_at_once_is_to_note_one_after_another(attempts in prop::collection::vec(attempt(), 0..8), cut in 0..8_usize) {
            let good = EndpointHealth::good(EndpointId(Uuid::nil()));
            let one_by_one = attempts.iter().fold(good.clone(), |health, seen| health.with(seen));
            let (first, second) = attempts.split_at(cut.min(attempts.len()));
            let together = |seen: &[Observed]| seen.iter().fold(Observed::default(), |all, one| all.then(*one));
            prop_assert_eq!(&good.with(&together(first)).with(&together(second)), &one_by_one);
            prop_assert_eq!(&good.with(&together(first).then(together(second))), &one_by_one);
            let since_success = attempts.iter().rev().take_while(|seen| !seen.succeeded).count();
            prop_assert_eq!(one_by_one.failures, since_success as u64);
        }
    }
}
