//! Conversations of an assistant with somebody, and their messages.

pub(crate) mod storage;

pub use storage::Changed;

use serde::{Deserialize, Serialize};

use crate::request::error::{Error, Location};
use crate::request::input::{Between, member};
use crate::request::page::{Page, PageQuery};
use crate::values::id::{AssistantId, ContactId, ConversationId, MessageId, WidgetId, with_ordinal};
use crate::values::json::JsonObject;
use crate::values::schema::{Schema, Value, extended, object};
use crate::values::time::Timestamp;

crate::choice! {
    /// Whether a conversation still takes messages.
    pub enum ConversationStatus {
        Open = "open",
        Closed = "closed",
    }
}

crate::choice! {
    /// Who speaks.
    pub enum SenderType {
        Bot = "bot",
        Agent = "agent",
        User = "user",
        Tool = "tool",
    }
}

crate::choice! {
    /// How it was said.
    pub enum MessageType {
        Voice = "voice",
        Text = "text",
    }
}

crate::input! {
    /// What open-conversation takes, and what a conversation keeps.
    #[derive(Clone, PartialEq, Serialize, Deserialize)]
    pub struct ConversationFields {
        /// The assistant that speaks.
        pub assistant_id: AssistantId,
        /// The widget it speaks through.
        pub widget_id: Option<WidgetId> = None,
        /// Whom it speaks with.
        pub contact_id: Option<ContactId> = None,
        /// What the other side speaks from.
        pub device_type: Option<String> = None,
        /// Free-form.
        pub attributes: JsonObject = JsonObject::default(),
    }
}

crate::record! {
    /// A conversation.
    pub struct Conversation {
        /// Identifier.
        pub id: ConversationId,
        /// Whether it still takes messages.
        pub status: ConversationStatus,
        /// How many messages it has.
        pub chat_count: u64,
        /// When it was closed.
        pub closed_at: Option<Timestamp>,
        /// When it was opened.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
        .. pub fields: ConversationFields,
    }
}

impl Conversation {
    /// A conversation that begins `now`.
    pub const fn open(id: ConversationId, fields: ConversationFields, now: Timestamp) -> Self {
        let status = ConversationStatus::Open;
        Self { id, status, chat_count: 0, closed_at: None, created_at: now, updated_at: now, fields }
    }

    /// This conversation at a place in the list.
    #[must_use]
    pub fn at(&self, ordinal: u32) -> Self {
        Self { id: ConversationId(with_ordinal(self.id.0, ordinal)), ..self.clone() }
    }

    /// Whether it still takes messages.
    pub fn is_open(&self) -> bool {
        self.status == ConversationStatus::Open
    }

    /// This conversation, closed `now`.
    #[must_use]
    pub fn closed(&self, now: Timestamp) -> Self {
        Self { status: ConversationStatus::Closed, closed_at: Some(now), updated_at: now, ..self.clone() }
    }

    /// The answer to whoever wants to do something with a closed conversation that only an open one allows.
    pub fn is_closed_already() -> Error {
        Error::Conflict {
            at: Location::path().name("conversation_id"),
            kind: "conversation_closed",
            message: "The conversation is closed",
        }
    }
}

crate::input! {
    /// What add-message takes.
    #[derive(Clone)]
    pub struct NewMessage {
        /// Who speaks.
        pub sender_type: SenderType,
        /// How it was said.
        pub message_type: MessageType = MessageType::Text,
        /// What is said.
        pub text: String,
    }
}

crate::record! {
    /// A message of a conversation.
    pub struct Message {
        /// Identifier.
        pub id: MessageId,
        /// The conversation.
        pub conversation_id: ConversationId,
        /// Who speaks.
        pub sender_type: SenderType,
        /// How it was said.
        pub message_type: MessageType,
        /// What is said.
        pub text: String,
        /// Its length in characters.
        pub char_count: u64,
        /// When it was said.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}

impl NewMessage {
    /// The message that has `ordinal` others before it.
    pub fn message(&self, id: MessageId, conversation: ConversationId, ordinal: u32, now: Timestamp) -> Message {
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

crate::input! {
    /// Which page of which conversations.
    pub struct ConversationQuery {
        /// Page, counted from 1.
        pub page: Between<1, { i64::MAX }> = Between::clamped(1),
        /// Records per page.
        pub size: Between<1, 100> = Between::clamped(50),
        /// Those with this status only.
        pub status: Option<ConversationStatus> = None,
        /// Those of this assistant only.
        pub assistant_id: Option<AssistantId> = None,
    }
}

impl ConversationQuery {
    /// The page.
    pub fn page(&self) -> PageQuery {
        PageQuery { page: self.page, size: self.size }
    }
}

/// A conversation with a page of its messages.
#[derive(Debug, Serialize)]
pub struct Transcribed {
    /// The conversation.
    #[serde(flatten)]
    pub conversation: Conversation,
    /// What was said, oldest first.
    pub transcript: Page<Message>,
}

impl Schema for Transcribed {
    fn schema() -> Value {
        let transcript = member::<Page<Message>>("transcript", true, "What was said, oldest first.");
        extended(Conversation::schema(), [object(vec![transcript])])
    }
}
