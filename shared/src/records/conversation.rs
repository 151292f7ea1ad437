//! Conversations of an assistant with a person, and their messages.

mod answer;
pub mod idle;
pub(crate) mod query;
mod received;
mod replies;
mod reported;
mod requested;
pub(crate) mod storage;

pub use answer::{DatasourceIds, is_answered_already};
pub use query::ConversationQuery;
pub use received::{MessageFromNumber, ReceivedMessage, receive_message};
pub use reported::report;
pub use requested::{CallToNumber, MessageToNumber, Requested, send_message, start_call};
pub use storage::{
    Changed, add_message, forget_threads, message, open_thread, open_threads, said_between, transcribed, transcript,
    with_contact,
};
pub(crate) use storage::{keep_text, said_in};

use serde::Serialize;
use uuid::Uuid;

use crate::input::schema::{Schema, Value, extended, titled};
use crate::input::{Between, Location, OptionalBody, member};
use crate::records::assistant::{Assistant, ConversationSettings, IdleMinutes};
use crate::records::contact::Contact;
use crate::records::contact_point::PhoneNumber;
use crate::records::due::Due;
use crate::records::outcome::OutcomeReport;
use crate::records::widget::Widget;
use crate::request::error::{Error, Result};
use crate::table::cascade::Partitions;
use crate::table::declaration::Declared as _;
use crate::table::keys::Key;
use crate::table::page::Page;
use crate::table::stored::Stored as _;
use crate::table::version::Version;
use crate::values::id::{AssistantId, ContactId, ConversationId, MessageId, WidgetId, with_ordinal};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::text::{MessageText, Text};
use crate::values::time::Timestamp;

crate::choice! {
    /// The status of a conversation: only an open one accepts messages.
    pub enum ConversationStatus {
        Open = "open",
        Closed = "closed",
    }
}

crate::choice! {
    /// The side that speaks.
    pub enum SenderType {
        Bot = "bot",
        Agent = "agent",
        User = "user",
        Tool = "tool",
    }
}

crate::choice! {
    /// The medium of the message.
    pub enum MessageType {
        Voice = "voice",
        Text = "text",
    }
}

/// What a conversation was about.
pub type Summary = Text<4096>;
/// How a conversation ended.
pub type Outcome = Text<100>;
/// Why a conversation was closed.
pub type CloseReason = Text<200>;
/// How good a conversation was, from 1 to 5.
pub type Rating = Between<1, 5>;

/// The reason of a conversation that the service has closed.
pub const IDLE: &str = "idle";

crate::record! {
    /// A conversation.
    pub struct Conversation(ConversationId): listed("CONVERSATION" spread, pointers Conversation::thread, due Conversation::due) {
        /// Status. Only an open conversation takes messages.
        own(filter) status: ConversationStatus = ConversationStatus::Open,
        /// Number of messages.
        own chat_count: u64 = 0,
        /// Time at which the conversation was closed; null while it is open.
        own closed_at: Option<Timestamp> = None,
        /// Why it was closed: what the body of close-conversation said, or `idle` if the service closed it; null for no reason.
        own close_reason: Option<CloseReason> = None,
        /// Time at which the conversation was opened.
        created(dates) created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// Assistant that takes part.
        fixed(filter) assistant_id: AssistantId => Assistant,
        /// Widget through which the conversation takes place; null for none.
        fixed(filter) widget_id: Option<WidgetId> = None => Widget,
        /// Contact that takes part; null if it is not known.
        fixed(sparse filter) contact_id: Option<ContactId> = None => Contact,
        /// The kind of device on the other side: `mobile`, `native`, `desktop`, `tablet` or `phone` where it is known. Any other text is kept as it was
        /// sent.
        input device_type: Option<String> = None,
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// What it was about, in your words; null for none.
        later summary: Option<Summary> = None,
        /// How good it was, from 1 to 5; null for none.
        later rating: Option<Rating> = None,
        /// How it ended, in your words; null for none.
        later outcome: Option<Outcome> = None,
        /// How its call or its message ended, as the connector has reported; null until then.
        own result: Option<OutcomeReport> = None,
        /// True if one of its messages is voice, or the service began it with a call.
        own(sparse filter) includes_voice: bool = false,
        /// Bytes of all messages together.
        hidden text_bytes: u64 = 0,
        /// The variables for the assistant's prompt, from the caller of start-call.
        hidden prompt_dynamic_variables: Option<JsonObject> = None,
        /// Minutes after which it is closed if it is idle, from its assistant when it was opened.
        hidden idle_close_minutes: Option<IdleMinutes> = None,
        /// When the tick looks whether it is idle; never later than it becomes idle.
        hidden due_at: Option<Timestamp> = None,
        /// The telephone number from which the connector has brought in the latest message. Answers leave to it.
        hidden reply_to: Option<PhoneNumber> = None,
        /// Who has said the latest message.
        hidden last_sender: Option<SenderType> = None,
    }
}

/// The most messages of a conversation.
pub const MAX_MESSAGES: u64 = 10_000;
/// The most bytes of text of a conversation: a transcript fits the memory of the function that sends it.
pub const MAX_TEXT: u64 = 4 * 1024 * 1024;

impl Conversation {
    /// A new conversation with a contact, with the settings of its assistant; its id has no ordinal yet.
    pub fn through(
        widget: WidgetId,
        (assistant, settings): (AssistantId, ConversationSettings),
        contact: ContactId,
        id: Uuid,
        now: Timestamp,
    ) -> Self {
        let begun = Self {
            id: ConversationId(id),
            status: ConversationStatus::Open,
            chat_count: 0,
            closed_at: None,
            close_reason: None,
            created_at: now,
            updated_at: now,
            assistant_id: assistant,
            widget_id: Some(widget),
            contact_id: Some(contact),
            device_type: None,
            attributes: JsonObject::default(),
            summary: None,
            rating: None,
            outcome: None,
            result: None,
            includes_voice: false,
            text_bytes: 0,
            prompt_dynamic_variables: None,
            idle_close_minutes: None,
            due_at: None,
            reply_to: None,
            last_sender: None,
            version: Version::default(),
        };
        begun.under(settings)
    }

    /// This conversation with its ordinal.
    #[must_use]
    pub fn at(&self, ordinal: u64) -> Self {
        Self { id: ConversationId(with_ordinal(self.id.0, ordinal)), ..self.clone() }
    }

    /// Whether it is open: only an open conversation accepts messages.
    pub fn is_open(&self) -> bool {
        self.status == ConversationStatus::Open
    }

    /// Closes it, for a reason if there is one.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is closed.
    pub fn close(&mut self, reason: Option<CloseReason>, now: Timestamp) -> Result<()> {
        if !self.is_open() {
            return Err(Self::is_closed_already());
        }
        (self.status, self.closed_at) = (ConversationStatus::Closed, Some(now));
        (self.close_reason, self.due_at) = (reason, None);
        self.touch(now);
        Ok(())
    }

    /// Its partition in the index of due items.
    fn due(&self, _: ConversationId) -> Option<String> {
        self.due_at.map(|_| Due::Conversation.partition(self.id.0))
    }

    /// Whether it has room for a message with this text.
    pub fn has_room_for(&self, text: &str) -> bool {
        self.has_room(text.len() as u64)
    }

    /// Whether it has room for a message of so many bytes.
    pub const fn has_room(&self, bytes: u64) -> bool {
        self.chat_count < MAX_MESSAGES && self.text_bytes + bytes <= MAX_TEXT
    }

    /// The answer to a message for which a conversation has no room.
    pub fn is_full() -> Error {
        Error::Conflict {
            at: Location::path().name("conversation_id"),
            kind: "conversation_full",
            message: "The conversation has no room for this message",
        }
    }

    /// Requires that it is closed.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is open.
    pub fn require_closed(&self) -> Result<()> {
        if !self.is_open() {
            return Ok(());
        }
        let at = Location::path().name("conversation_id");
        Err(Error::Conflict { at, kind: "conversation_open", message: "The conversation is open" })
    }

    /// The answer to a request that needs an open conversation.
    pub fn is_closed_already() -> Error {
        Error::Conflict {
            at: Location::path().name("conversation_id"),
            kind: "conversation_closed",
            message: "The conversation is closed",
        }
    }

    /// The pointer from a contact and a widget to their open conversation. A request that closes the conversation
    /// leaves the pointer for the stream to remove: a write of the row alone costs half as much as a transaction.
    fn thread(&self, tenant: &Tenant) -> Vec<Key> {
        let between = self.widget_id.zip(self.contact_id);
        between.map(|(widget, contact)| thread(tenant, widget, contact, self.id)).into_iter().collect()
    }
}

/// The key of the pointer from a contact and a widget to their open conversation.
fn thread(tenant: &Tenant, widget: WidgetId, contact: ContactId, conversation: ConversationId) -> Key {
    Key::of(tenant, format_args!("THREAD#{widget}#{contact}"), conversation)
}

impl Partitions for Conversation {
    fn partitions(tenant: &Tenant, id: Uuid) -> Vec<String> {
        vec![Message::key(tenant, (ConversationId(id), 0)).pk]
    }
}

crate::input! {
    /// The input of add-message.
    #[derive(Clone)]
    pub struct NewMessage {
        /// Who says it.
        pub sender_type: SenderType,
        /// Medium of the message.
        pub message_type: MessageType = MessageType::Text,
        /// Text of the message.
        pub text: MessageText,
        /// The message of the same conversation that it answers; null for none. Only the message of a bot answers another one. The first answer to a
        /// message is stored, and each further one is 409 `already_answered`.
        pub in_reply_to: Option<MessageId> = None,
        /// The data sources from which the answer was made, at most 20. Only the message of a bot has some.
        pub data_source_ids: DatasourceIds = DatasourceIds::default(),
    }
}

crate::input! {
    /// The body of close-conversation.
    pub struct Closing {
        /// Why it is closed, in your words; null for no reason.
        pub reason: Option<CloseReason> = None,
    }
}

impl Closing {
    /// The reason in `body`, if it has one.
    pub fn reason(body: OptionalBody<Self>) -> Option<CloseReason> {
        body.0.and_then(|closing| closing.reason)
    }
}

crate::object! {
    /// A message of a conversation.
    pub struct Message {
        /// Identifier.
        pub id: MessageId,
        /// The conversation.
        pub conversation_id: ConversationId,
        /// Who says it.
        pub sender_type: SenderType,
        /// Medium of the message.
        pub message_type: MessageType,
        /// Text of the message.
        pub text: MessageText,
        /// Its length in characters.
        pub char_count: u64,
        /// The message that it answers; null for none.
        pub in_reply_to: Option<MessageId>,
        /// The data sources from which it was made.
        #[serde(default)]
        pub data_source_ids: DatasourceIds,
        /// Time at which the message was said.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}

impl NewMessage {
    /// A text that somebody says.
    pub fn text(sender_type: SenderType, text: MessageText) -> Self {
        let (message_type, data_source_ids) = (MessageType::Text, DatasourceIds::default());
        Self { sender_type, message_type, text, in_reply_to: None, data_source_ids }
    }

    /// What it adds to the bytes of its conversation.
    pub fn bytes(&self) -> u64 {
        self.text.len() as u64 + answer::bytes_of(&self.data_source_ids)
    }

    /// The message that comes after `ordinal` others.
    pub fn message(&self, id: MessageId, conversation: ConversationId, ordinal: u64, now: Timestamp) -> Message {
        Message {
            id: MessageId(with_ordinal(id.0, ordinal)),
            conversation_id: conversation,
            sender_type: self.sender_type,
            message_type: self.message_type,
            text: self.text.clone(),
            char_count: self.text.chars().count() as u64,
            in_reply_to: self.in_reply_to,
            data_source_ids: self.data_source_ids.clone(),
            created_at: now,
            updated_at: now,
        }
    }
}

impl Message {
    /// What it adds to the bytes of its conversation.
    pub fn bytes(&self) -> u64 {
        self.text.len() as u64 + answer::bytes_of(&self.data_source_ids)
    }
}

/// A conversation with a page of its messages.
#[derive(Debug, Serialize)]
pub struct Transcribed {
    /// The conversation.
    #[serde(flatten)]
    pub conversation: Conversation,
    /// The messages, oldest first.
    pub transcript: Page<Message>,
}

impl Schema for Transcribed {
    fn schema() -> Value {
        let transcript = member::<Page<Message>>("transcript", true, "What was said, oldest first.");
        titled(
            extended(Conversation::schema(), vec![transcript]),
            "ConversationWithTranscript",
            "A conversation with a page of its messages.",
        )
    }
}
