//! Deliveries. Each one delivers one event to one endpoint.

pub mod health;
mod logs;
mod state;
mod stats;
pub(crate) mod storage;

pub use health::{EndpointHealth, Observed};
pub use logs::{DeliveryPage, DeliveryQuery, of_webhook};
pub(crate) use state::UNSENT;
pub use state::{DeliveryOutcome, DeliveryStage, KEPT};
pub use stats::{DeliveryHour, DeliveryStats, StatsQuery, stats_of_webhook};
pub use storage::{
    all_at, announce_closed, at, deferred, enqueue, existing, held, named_webhooks, redeliver, revive, scope_of,
};

use uuid::Uuid;

use crate::records::campaign::{Campaign, CampaignContact};
use crate::records::contact_point::PhoneNumber;
use crate::records::conversation::{Conversation, Requested};
use crate::records::delivery::storage::deferred_partition;
use crate::records::due::Due;
use crate::records::event::{Event, EventId, EventKind};
use crate::table::version::Version;
use crate::values::id::{
    CampaignContactId, CampaignId, ContactId, ConversationId, DeliveryId, EndpointId, MessageId, with_ordinal,
};
use crate::values::time::Timestamp;

crate::choice! {
    /// The state of a delivery.
    pub enum DeliveryState {
        /// To be sent now.
        Ready = "ready",
        /// To be sent later, at a certain time.
        Waiting = "waiting",
        /// The endpoint has answered with a 2xx.
        Delivered = "delivered",
        /// Given up: there are no more attempts.
        Dead = "dead",
    }
}

crate::object! {
    /// An attempt to deliver.
    pub struct Attempt {
        /// Time at which the attempt began.
        pub at: Timestamp,
        /// HTTP status of the answer; null if there was no answer.
        pub status: Option<u64>,
        /// How many milliseconds the attempt took.
        pub milliseconds: u64,
        /// Why there was no answer; null if there was one.
        pub error: Option<String>,
        /// The beginning of the answer, at most 1 KB.
        pub answer: Option<String>,
    }
}

impl Attempt {
    /// Whether the endpoint has answered with a 2xx.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

crate::choice! {
    /// Who sends a delivery when it becomes due.
    pub enum SentBy {
        /// The consumer of the stream, as soon as it is made ready.
        Stream = "stream",
        /// The tick, every minute, which drains what is deferred.
        Tick = "tick",
        /// The tick alone, because it is sent again: what happens now must not wait for it in the stream.
        Recovery = "recovery",
    }
}

crate::record! {
    /// One event that is sent to one endpoint, with its attempts.
    pub struct Delivery(DeliveryId): listed("DELIVERY" of EndpointId spread, due Delivery::partition) {
        /// Identifier of the event: the header `webhook-id` of every attempt.
        own event_id: EventId,
        /// Type of the event.
        own event: EventKind,
        /// State of the delivery.
        own state: DeliveryState,
        /// Number of attempts so far.
        own attempts: u64 = 0,
        /// HTTP status of the last attempt; null if there was no answer.
        own status: Option<u64> = None,
        /// How many milliseconds the last attempt took; null if there was none.
        own milliseconds: Option<u64> = None,
        /// Why the last attempt had no answer, or why there was no attempt; null otherwise.
        own error: Option<String> = None,
        /// Time of the next attempt; null if there will be none.
        own next_attempt_at: Option<Timestamp> = None,
        /// The latest attempts, oldest first.
        own log: Vec<Attempt> = Vec::new(),
        /// Conversation that the event is about; null for none.
        own conversation_id: Option<ConversationId> = None,
        /// Contact of a campaign that the event is for; null for none.
        own campaign_contact_id: Option<CampaignContactId> = None,
        /// When the event happened.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// The attempts since it was first sent or was redelivered. Their number is its position in the backoff.
        hidden tries: u64 = 0,
        /// The campaign of that contact.
        hidden campaign_id: Option<CampaignId> = None,
        /// The round of that campaign.
        hidden round: u32 = 0,
        /// The version of that campaign's text.
        hidden text_version: u32 = 0,
        /// The message that it delivers.
        hidden message_id: Option<MessageId> = None,
        /// The contact that a single message or call is for.
        hidden contact_id: Option<ContactId> = None,
        /// The last request that redelivered it.
        hidden asked_by: Option<Uuid> = None,
        /// Whether the stream or the tick sends it when it becomes due.
        hidden sent_by: SentBy = SentBy::Stream,
        /// When it becomes due.
        hidden due_at: Option<Timestamp> = None,
        /// The attempts that were begun and whose result is unknown: each may have crashed the process.
        hidden unconfirmed: u32 = 0,
        /// How often it was released because the stream had not sent it.
        hidden releases: u32 = 0,
        /// The telephone number that a single message or call is for.
        hidden to: Option<PhoneNumber> = None,
        /// When it expires, in seconds since 1970; only a delivery that has ended expires.
        hidden ttl: Option<i64> = None,
        /// Whether its event is in the log, from where its body comes.
        hidden logged: bool = false,
    }
}

/// The subject of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// No subject: it is a test of a webhook.
    Test,
    /// An event of the log.
    Logged(EventId),
    /// A closed conversation.
    Closed(ConversationId),
    /// A contact of a campaign.
    Campaign(CampaignContactId),
    /// The conversation in which a single message or call was requested.
    Requested(ConversationId),
}

impl Delivery {
    /// Its subject; `None` if its item lacks the record that its event is about.
    pub fn subject(&self) -> Option<Subject> {
        match self.event {
            _ if self.logged => Some(Subject::Logged(self.event_id)),
            EventKind::WEBHOOK_TEST => Some(Subject::Test),
            EventKind::CONVERSATION_CLOSED => self.conversation_id.map(Subject::Closed),
            EventKind::CAMPAIGN_MESSAGE | EventKind::CAMPAIGN_CALL => self.campaign_contact_id.map(Subject::Campaign),
            EventKind::MESSAGE_REQUESTED | EventKind::CALL_REQUESTED => self.conversation_id.map(Subject::Requested),
            _ => None,
        }
    }

    /// Why it failed; `None` if it arrived.
    pub fn failure(&self) -> Option<String> {
        let answered = || self.status.map(|status| format!("the connector answered {status}"));
        if self.state == DeliveryState::Delivered { None } else { self.error.clone().or_else(answered) }
    }
}

/// The values of a new delivery.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    /// Identifier of the event: the header `webhook-id` of every attempt.
    pub event_id: EventId,
    /// Type of the event.
    pub event: EventKind,
    /// Conversation that the event is about; null for none.
    pub conversation_id: Option<ConversationId>,
    /// Contact of a campaign that the event is for; null for none.
    pub campaign_contact_id: Option<CampaignContactId>,
    /// The campaign of that contact.
    pub campaign_id: Option<CampaignId>,
    /// The round of that campaign.
    pub round: u32,
    /// The version of that campaign's text.
    pub text_version: u32,
    /// The message that it delivers.
    pub message_id: Option<MessageId>,
    /// The contact that a single message or call is for.
    pub contact_id: Option<ContactId>,
    /// The telephone number that a single message or call is for.
    pub to: Option<PhoneNumber>,
    /// Whether the event is in the log.
    pub logged: bool,
    /// The recovery that sends it.
    pub recovered_by: Option<Uuid>,
    /// Time of the event.
    pub at: Timestamp,
}

impl NewDelivery {
    /// An event without a subject.
    const fn of(event: EventKind, event_id: EventId, at: Timestamp) -> Self {
        Self {
            event_id,
            event,
            conversation_id: None,
            campaign_contact_id: None,
            campaign_id: None,
            round: 0,
            text_version: 0,
            message_id: None,
            contact_id: None,
            to: None,
            logged: false,
            recovered_by: None,
            at,
        }
    }

    /// A test event: the only thing it shows is that it arrived.
    pub const fn test(event_id: EventId, at: Timestamp) -> Self {
        Self::of(EventKind::WEBHOOK_TEST, event_id, at)
    }

    /// An event of the log.
    pub fn logged(event: &Event) -> Self {
        Self { conversation_id: event.conversation, logged: true, ..Self::of(event.event, event.id, event.created_at) }
    }

    /// The origin that the marker names by which `endpoint` gets the event only once. Several endpoints may get an event
    /// of the log.
    pub const fn origin(&self, endpoint: EndpointId) -> Uuid {
        if self.logged { Self::origin_of_logged(self.event_id, endpoint) } else { self.event_id.0 }
    }

    /// The same for an event of the log.
    pub const fn origin_of_logged(event: EventId, endpoint: EndpointId) -> Uuid {
        Uuid::from_u128(event.0.as_u128() ^ endpoint.0.as_u128())
    }

    /// The event that `conversation` was closed.
    pub fn closed(conversation: &Conversation) -> Self {
        let at = conversation.closed_at.unwrap_or(conversation.updated_at);
        let closed = Self::of(EventKind::CONVERSATION_CLOSED, EventId(conversation.id.0), at);
        Self { conversation_id: Some(conversation.id), ..closed }
    }

    /// The event that the contact with the number `to` gets a single message or call.
    pub fn requested(new: &Requested, to: PhoneNumber, at: Timestamp) -> Self {
        let event = if new.message_id.is_some() { EventKind::MESSAGE_REQUESTED } else { EventKind::CALL_REQUESTED };
        let Requested { conversation_id, contact_id, message_id, event_id } = *new;
        let (conversation_id, contact_id) = (Some(conversation_id), Some(contact_id));
        Self { conversation_id, message_id, contact_id, to: Some(to), ..Self::of(event, event_id, at) }
    }

    /// The event that a contact of a campaign gets its message or its call. In a later round, and in a further attempt,
    /// it has the id `fresh`.
    pub fn of_campaign(
        campaign: &Campaign,
        contact: &CampaignContact,
        fresh: Uuid,
        calls: bool,
        at: Timestamp,
    ) -> Self {
        let event = if calls { EventKind::CAMPAIGN_CALL } else { EventKind::CAMPAIGN_MESSAGE };
        let is_first = campaign.round == 0 && contact.times_dispatched() == 0;
        let id = EventId(if is_first { contact.id.0 } else { fresh });
        Self {
            campaign_contact_id: Some(contact.id),
            campaign_id: Some(campaign.id),
            round: campaign.round,
            text_version: campaign.text_version,
            ..Self::of(event, id, at)
        }
    }

    /// The id of the delivery at a reserved ordinal.
    pub fn id(&self, ordinal: u64) -> DeliveryId {
        DeliveryId(with_ordinal(self.event_id.0, ordinal))
    }
}

impl Delivery {
    /// A delivery to be sent now, or with the tick if it is recovered.
    pub fn new(id: DeliveryId, new: NewDelivery, now: Timestamp) -> Self {
        let made = Self {
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
            round: new.round,
            text_version: new.text_version,
            message_id: new.message_id,
            contact_id: new.contact_id,
            asked_by: None,
            sent_by: SentBy::Stream,
            due_at: None,
            unconfirmed: 0,
            releases: 0,
            to: new.to,
            ttl: None,
            logged: new.logged,
            version: Version::default(),
        };
        match new.recovered_by {
            Some(by) => made.decide(DeliveryOutcome::Recovered { by }, now),
            None => made.made_ready(now),
        }
    }

    /// Whether it is the same as `seen`, or was only released since then.
    pub fn is_still(&self, seen: &Self) -> bool {
        let Self { updated_at, due_at, releases, version, .. } = *self;
        releases >= seen.releases && *self == Self { updated_at, due_at, releases, version, ..seen.clone() }
    }

    /// Whether it waits for its campaign to be resumed.
    pub fn is_parked(&self) -> bool {
        self.stage() == DeliveryStage::Parked
    }

    /// Whether the tick sends it, now or later.
    pub fn is_held(&self) -> bool {
        matches!(self.stage(), DeliveryStage::Waiting { by: SentBy::Tick | SentBy::Recovery, .. })
    }

    /// Whether it is sent again by a recovery.
    pub fn is_recovered(&self) -> bool {
        matches!(self.stage(), DeliveryStage::Waiting { by: SentBy::Recovery, .. })
    }

    /// Whether its time has come by `now`.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.due_at.is_some_and(|due| due <= now)
    }

    /// Its partition in the index of due items.
    fn partition(&self, (endpoint, id): (EndpointId, DeliveryId)) -> Option<String> {
        self.due_at?;
        Some(match self.sent_by {
            SentBy::Stream => Due::Delivery.partition(id.0),
            SentBy::Tick | SentBy::Recovery => deferred_partition(endpoint),
        })
    }
}
