//! Events: what receivers learn of changes of records. They are kept in a log for 30 days, in a fixed order.
//!
//! The log of an organisation is a chain of pages. A page has the ids of the events of one batch of the stream, and one
//! transaction writes it together with the events themselves. It has the number after the page before, and nothing may
//! have that number yet. So events are only ever appended at the end, and a reader who has read up to an event
//! misses none and gets none twice.

pub mod kind;
mod log;
pub mod pending;

use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::input::schema::{Member, Schema, Value, extended};
use crate::input::{Between, Input, Issues, Location, Parse, Raw, Source, member};
use crate::records::webhook::subscription::{EventPattern, EventScope};
use crate::table::TableError;
use crate::table::item::{Item, number, text};
use crate::table::keys::{Key, TTL};
use crate::table::stored::{Single, Stored};
use crate::values::hash::uuid_of;
use crate::values::id::{AssistantId, ConversationId, Id, WidgetId};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

pub use kind::EventKind;
pub use log::{FoundEvents, LogPage, LogStretch, append, find, list, logged, read, unknown_after};

/// Days for which an event can be read.
pub const EVENT_DAYS: i64 = 30;
/// The most bytes of the record in an event.
pub const LONGEST: usize = 256 * 1024;
/// Seconds of a day.
const DAY: i64 = 86_400;

/// The events whose deliveries have a transcript.
pub const HAVE_TRANSCRIPTS: [EventKind; 3] =
    [EventKind::CONVERSATION_OPENED, EventKind::CONVERSATION_UPDATED, EventKind::CONVERSATION_CLOSED];

/// The id of an event. It follows from the change. So a change that is processed again makes no second
/// event, and receivers recognise a repeat by the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub Uuid);

impl EventId {
    /// The id of the event that a change of `record` makes. `change` is what no other change of it has.
    pub fn of_change(kind: EventKind, record: Uuid, change: &str) -> Self {
        let parts = [kind.as_str().as_bytes(), b" ", record.as_bytes(), b" ", change.as_bytes()];
        Self(uuid_of(parts))
    }
}

impl From<Uuid> for EventId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl From<EventId> for Uuid {
    fn from(id: EventId) -> Self {
        id.0
    }
}

impl Parse for EventId {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        Uuid::parse(raw, at, issues).map(Self)
    }
}

impl Id for EventId {
    const PARAMETER: &'static str = "event_id";
    const MANY: &'static str = "event_ids";
    const DOC: &'static str = "An event.";
}

impl std::fmt::Display for EventId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.0)
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
        // Earlier ids began with `evt_`.
        let id = text.strip_prefix("evt_").unwrap_or(&text).parse().ok();
        id.map(Self).ok_or_else(|| serde::de::Error::custom("no event id"))
    }
}

impl Schema for EventId {
    fn schema() -> Value {
        json!({"type": "string", "format": "uuid"})
    }
}

/// The word `event`, by which receivers distinguish an event from other objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventWord;

impl Serialize for EventWord {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("event")
    }
}

impl<'de> Deserialize<'de> for EventWord {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl Schema for EventWord {
    fn schema() -> Value {
        json!({"type": "string", "const": "event"})
    }
}

crate::object! {
    /// An event of the log.
    pub struct Event {
        /// Identifier: the header `webhook-id` of each of its deliveries.
        pub id: EventId,
        /// Always `event`.
        pub object: EventWord,
        /// What happened.
        pub event: EventKind,
        /// When it happened.
        pub created_at: Timestamp,
        /// Grows with each event of the record: whoever knows a higher one drops the event.
        pub sequence: u64,
        /// The record after the change, as its read operation answers it; a removed record as it was.
        pub data: JsonObject,
        /// The former values of the fields that have changed; null if the record was made or removed.
        pub previous: Option<JsonObject>,
        /// True if the record is too long for an event: `data` then has its `id` only, and `path` leads to the rest.
        pub truncated: bool,
        /// The path under which the record can be read; null where `data` has all of it.
        pub path: Option<String>,
    }
    hidden {
        /// The page of the log on which it stands.
        pub page: u64,
        /// Its place on that page.
        pub place: u64,
        /// The conversation that it is about.
        pub conversation: Option<ConversationId>,
        /// The assistant by which subscriptions are narrowed.
        pub of_assistant: Option<AssistantId>,
        /// The widget by which subscriptions are narrowed.
        pub of_widget: Option<WidgetId>,
        /// When it expires, in seconds since 1970.
        pub ttl: i64,
    }
}

impl Event {
    /// An event that is in no log yet.
    pub const fn new(
        event: EventKind,
        id: EventId,
        (created_at, sequence): (Timestamp, u64),
        data: JsonObject,
    ) -> Self {
        Self {
            id,
            object: EventWord,
            event,
            created_at,
            sequence,
            data,
            previous: None,
            truncated: false,
            path: None,
            page: 0,
            place: 0,
            conversation: None,
            of_assistant: None,
            of_widget: None,
            ttl: 0,
        }
    }

    /// The members that only events of the log have.
    pub fn members() -> [Member; 4] {
        let sequence = "Grows with each event of the record: whoever knows a higher one drops the event.";
        let previous = "The former values of the fields that have changed; null if the record was made or removed.";
        let truncated = "True if the record is too long for an event: `path` then leads to it.";
        let path = "The path under which the record can be read; null where `data` has all of it.";
        [
            member::<u64>("sequence", true, sequence),
            member::<Option<JsonObject>>("previous", true, previous),
            member::<bool>("truncated", true, truncated),
            member::<Option<String>>("path", true, path),
        ]
    }

    /// The same event without the content of its record, which can be read under `path`.
    #[must_use]
    pub fn truncated(&self, path: Option<String>) -> Self {
        let data = self.data.only("id").unwrap_or_default();
        Self { data, previous: None, truncated: true, path, ..self.clone() }
    }

    /// The bytes of its record, and of the former values.
    pub fn bytes(&self) -> usize {
        self.data.len() + self.previous.as_ref().map_or(0, JsonObject::len)
    }

    /// The same event with what subscriptions are narrowed by.
    #[must_use]
    pub const fn within(mut self, scope: EventScope) -> Self {
        (self.of_assistant, self.of_widget) = (scope.assistant_id, scope.widget_id);
        self
    }

    /// What subscriptions are narrowed by.
    pub const fn scope(&self) -> EventScope {
        EventScope { assistant_id: self.of_assistant, widget_id: self.of_widget }
    }

    /// Whether it is about the record `id`.
    pub fn is_about(&self, id: Uuid) -> bool {
        self.data.text("id").is_some_and(|text| text == id.to_string())
    }
}

impl Stored for Event {
    type Id = EventId;

    fn key(tenant: &Tenant, id: EventId) -> Key {
        Key::of(tenant, format_args!("EVENT#{id}"), "EVENT")
    }

    fn hide(&self, item: &mut Item) -> Result<(), TableError> {
        item.insert("page".to_owned(), number(self.page));
        item.insert("place".to_owned(), number(self.place));
        let ids = [
            ("conversation", self.conversation.map(text)),
            ("of_assistant", self.of_assistant.map(text)),
            ("of_widget", self.of_widget.map(text)),
        ];
        item.extend(ids.into_iter().filter_map(|(name, id)| Some((name.to_owned(), id?))));
        item.insert(TTL.to_owned(), number(self.ttl));
        Ok(())
    }
}

impl Single for Event {}

crate::object! {
    /// A page of events.
    pub struct EventPage {
        /// The events, oldest first.
        pub items: Vec<Event>,
        /// Most events on a page.
        pub size: u64,
        /// The value of `after` for the next page; null if there is no later event so far.
        pub next: Option<EventId>,
    }
}

crate::object! {
    /// The types of events to which a webhook can subscribe.
    pub struct EventTypes {
        /// The types, such as `contact.created`.
        pub items: Vec<EventKind>,
        /// How many there are.
        pub total: u64,
    }
}

impl EventTypes {
    /// All of them.
    pub fn all() -> Self {
        let mut items: Vec<_> = EventKind::emitted().collect();
        items.sort();
        Self { total: items.len() as u64, items }
    }
}

crate::input! {
    /// Which events to read.
    pub struct EventCursor {
        /// Events on a page.
        pub size: Between<1, 100> = Between::clamped(50),
        /// Identifier of the last event that is known already. Without it, the oldest events come first.
        pub after: Option<EventId> = None,
    }
}

/// The query of a page of events.
#[derive(Debug)]
pub struct EventQuery {
    /// The place in the log.
    pub cursor: EventCursor,
    /// The wanted events.
    pub kind: Option<EventPattern>,
}

/// The name of the filter of a list of events.
const TYPE: &str = "type";

impl Input for EventQuery {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let cursor = EventCursor::read(source, issues);
        let kind = source.optional::<Option<EventPattern>>(TYPE, issues, || None);
        Some(Self { cursor: cursor?, kind: kind? })
    }

    fn schema() -> Value {
        let about = "Only events of this type, such as `contact.created`, or of this kind, such as `contact.*`.";
        extended(EventCursor::schema(), vec![member::<EventPattern>(TYPE, false, about)])
    }
}
