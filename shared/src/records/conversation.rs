//! Conversations of an assistant with a person, and their messages.

mod received;
mod replies;
mod requested;
pub(crate) mod storage;

pub use received::{MessageFromNumber, ReceivedMessage, receive_message};
pub use requested::{CallToNumber, MessageToNumber, Requested, send_message, start_call};
pub use storage::{
    Changed, add_message, forget_threads, message, open_thread, open_threads, transcribed, transcript, with_contact,
};
pub(crate) use storage::{keep_text, said_in};

use serde::Serialize;
use uuid::Uuid;

use crate::input::schema::{Schema, Value, extended, titled};
use crate::input::{Location, member};
use crate::records::assistant::Assistant;
use crate::records::contact::Contact;
use crate::records::contact_point::PhoneNumber;
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
use crate::values::text::MessageText;
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

crate::record! {
    /// A conversation.
    pub struct Conversation(ConversationId): listed("CONVERSATION" spread, pointers Conversation::thread) {
        /// Status. Only an open conversation takes messages.
        own(filter) status: ConversationStatus = ConversationStatus::Open,
        /// Number of messages.
        own chat_count: u64 = 0,
        /// Time at which the conversation was closed; null while it is open.
        own closed_at: Option<Timestamp> = None,
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
        fixed device_type: Option<String> = None,
        /// Any JSON object of your own. The service stores it and does not read it.
        fixed attributes: JsonObject = JsonObject::default(),
        /// True if one of its messages is voice, or the service began it with a call.
        own(sparse filter) includes_voice: bool = false,
        /// Bytes of all messages together.
        hidden text_bytes: u64 = 0,
        /// The variables for the assistant's prompt, from the caller of start-call.
        hidden prompt_dynamic_variables: Option<JsonObject> = None,
        /// The telephone number from which the connector has brought in the latest message. Answers leave to it.
        hidden reply_to: Option<PhoneNumber> = None,
    }
}

/// The most messages of a conversation.
pub const MAX_MESSAGES: u64 = 10_000;
/// The most bytes of text of a conversation: a transcript fits the memory of the function that sends it.
pub const MAX_TEXT: u64 = 4 * 1024 * 1024;

impl Conversation {
    /// A new conversation with a contact; its id has no ordinal yet.
    pub fn through(widget: WidgetId, assistant: AssistantId, contact: ContactId, id: Uuid, now: Timestamp) -> Self {
        Self {
            id: ConversationId(id),
            status: ConversationStatus::Open,
            chat_count: 0,
            closed_at: None,
            created_at: now,
            updated_at: now,
            assistant_id: assistant,
            widget_id: Some(widget),
            contact_id: Some(contact),
            device_type: None,
            attributes: JsonObject::default(),
            includes_voice: false,
            text_bytes: 0,
            prompt_dynamic_variables: None,
            reply_to: None,
            version: Version::default(),
        }
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

    /// Closes it.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is closed.
    pub fn close(&mut self, now: Timestamp) -> Result<()> {
        if !self.is_open() {
            return Err(Self::is_closed_already());
        }
        (self.status, self.closed_at) = (ConversationStatus::Closed, Some(now));
        self.touch(now);
        Ok(())
    }

    /// Whether it has room for a message with this text.
    pub fn has_room_for(&self, text: &str) -> bool {
        self.chat_count < MAX_MESSAGES && self.text_bytes + text.len() as u64 <= MAX_TEXT
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
        /// Time at which the message was said.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}

impl NewMessage {
    /// The message that comes after `ordinal` others.
    pub fn message(&self, id: MessageId, conversation: ConversationId, ordinal: u64, now: Timestamp) -> Message {
        Message {
            id: MessageId(with_ordinal(id.0, ordinal)),
            conversation_id: conversation,
            sender_type: self.sender_type,
            message_type: self.message_type,
            text: self.text.clone(),
            char_count: self.text.chars().count() as u64,
            created_at: now,
            updated_at: now,
        }
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
