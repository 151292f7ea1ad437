//! Captured intents: the intents that were recognised in conversations.

use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::input::schema::{Schema, Value};
use crate::input::{Issues, Location, Parse, Raw};
use crate::records::conversation::query::with_intent;
use crate::records::conversation::{self, Conversation};
use crate::records::intent::Intent;
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::cascade::Links;
use crate::table::filters::{Marks, Term};
use crate::table::keys::Key;
use crate::table::stored::Stored as _;
use crate::table::version::Version;
use crate::values::id::{AssistantId, CapturedIntentId, ConversationId, IntentId, MessageId, WidgetId};
use crate::values::tenant::Tenant;
use crate::values::text::Name;
use crate::values::time::Timestamp;

/// How sure it is that an intent applies, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Confidence(f64);

impl Parse for Confidence {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let value = f64::parse(raw, at, issues)?;
        if (0.0..=1.0).contains(&value) {
            return Some(Self(value));
        }
        issues.push(at.issue("value_error", "Input should be a number from 0 to 1"));
        None
    }
}

impl Schema for Confidence {
    fn schema() -> Value {
        json!({"type": "number", "minimum": 0, "maximum": 1})
    }
}

crate::record! {
    /// An intent that was recognised in a conversation.
    pub struct CapturedIntent(CapturedIntentId): listed("CAPTURED_INTENT" spread, pointers CapturedIntent::of_owners) {
        /// The same as `id`, under the name that receivers of events know.
        derived captured_intent_id: CapturedIntentId = CapturedIntent::own_id,
        /// The intent.
        fixed(filter) intent_id: IntentId,
        /// Name of the intent when it was recognised.
        own intent_name: Name = Name::default(),
        /// The conversation.
        fixed(sparse filter) conversation_id: ConversationId,
        /// Widget of the conversation; null for none.
        own widget_id: Option<WidgetId> = None,
        /// Assistant of the conversation.
        fixed assistant_id: AssistantId,
        /// How sure it is, from 0 to 1; null if that is not known.
        fixed confidence: Option<Confidence> = None,
        /// The message that shows the intent; null for none.
        fixed message_id: Option<MessageId> = None,
        /// When it was made.
        created created_at: Timestamp,
        /// When the conversation was opened.
        hidden opened_at: Option<Timestamp> = None,
    }
}

crate::input! {
    /// The body of create-captured-intent.
    pub struct NewCapturedIntent {
        /// The intent.
        pub intent_id: IntentId,
        /// How sure it is, from 0 to 1; null if that is not known.
        pub confidence: Option<Confidence> = None,
        /// The message of the conversation that shows the intent; null for none.
        pub message_id: Option<MessageId> = None,
    }
}

impl CapturedIntent {
    const fn own_id(&self) -> CapturedIntentId {
        self.id
    }

    /// The pointers by which it is found when its intent or its conversation is removed.
    fn of_owners(&self, tenant: &Tenant) -> Vec<Key> {
        let (intent, conversation) = (self.intent_id.0, self.conversation_id.0);
        let partitions =
            [<Self as Links<Intent>>::partition(intent), <Self as Links<Conversation>>::partition(conversation)];
        partitions.map(|partition| Key::of(tenant, partition, self.id)).into()
    }
}

impl Links<Intent> for CapturedIntent {
    fn partition(intent: Uuid) -> String {
        format!("INTENT_CAPTURED#{intent}")
    }
}

impl Links<Conversation> for CapturedIntent {
    fn partition(conversation: Uuid) -> String {
        format!("CONVERSATION_INTENTS#{conversation}")
    }
}

// No operation removes one captured intent: with its conversation or its intent, all captures of the two are removed.
impl Marks for CapturedIntent {
    fn marked(&self, tenant: &Tenant) -> Key {
        Conversation::key(tenant, self.conversation_id)
    }

    fn mark(&self) -> Option<Term> {
        with_intent(self.intent_id)
    }

    fn marked_made_at(&self) -> Option<Timestamp> {
        self.opened_at
    }
}

/// Notes that an intent was recognised in a conversation.
///
/// # Errors
/// [`Error::NotFound`] without the conversation, [`Error::Invalid`] where the body names an unknown intent or message.
pub async fn capture_intent(
    cx: &Context<'_>,
    conversation: ConversationId,
    new: &NewCapturedIntent,
) -> Result<CapturedIntent> {
    let (table, row) = (&cx.table, cx.new_row(()));
    let message = async {
        match new.message_id {
            Some(id) => conversation::message(table, conversation, id).await.map(|message| message.is_some()),
            None => Ok(true),
        }
    };
    // Not `try_join!`: the cost of a request must not depend on which records exist.
    let (of, intent, has_message) =
        futures_util::join!(table.get::<Conversation>(conversation), table.find::<Intent>(new.intent_id), message);
    let (of, intent) = (of.on_missing("conversation_id")?, intent?);
    let intent = intent.ok_or_else(|| Error::unknown_in_body("intent_id"))?;
    if !has_message? {
        return Err(Error::unknown_in_body("message_id"));
    }
    let captured = |id| CapturedIntent {
        id,
        intent_id: intent.id,
        intent_name: intent.name.clone(),
        conversation_id: of.id,
        widget_id: of.widget_id,
        assistant_id: of.assistant_id,
        confidence: new.confidence,
        message_id: new.message_id,
        created_at: row.now,
        opened_at: Some(of.created_at),
        version: Version::default(),
    };
    Ok(table.insert(row, captured).await?)
}
