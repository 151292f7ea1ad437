//! Idle conversations: how a conversation takes over the settings of its assistant, and how the tick closes it.
//!
//! A message does not write the index of due items. The tick looks at a conversation when it may be idle for the first
//! time, and moves the time if it was used since then. Without the setting, a conversation is not in the index.

use uuid::Uuid;

use super::{CloseReason, Conversation, ConversationStatus, IDLE};
use crate::records::assistant::{Assistant, ConversationSettings};
use crate::records::due::{Due, handle_due};
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::request::event::EventContext;
use crate::table::TableError;
use crate::table::declaration::Declared as _;
use crate::table::item::{Item, from_item};
use crate::table::keys::{Key, row_of};
use crate::table::rows::NamedItems;
use crate::values::id::ConversationId;
use crate::values::time::Timestamp;

/// The attributes of the records that a new conversation names: their identity, and the settings of the assistant.
const TAKEN: &str = "pk, sk, id, conversation";

/// Opens the conversation `new` under the settings of its assistant, which is read anyway: it must exist.
///
/// # Errors
/// [`Error::Invalid`](crate::request::error::Error::Invalid) at a field that names a missing record.
pub async fn open(cx: &Context<'_>, new: Conversation) -> Result<Conversation> {
    let (org, now, assistant) = (cx.tenant.org(), cx.now(), cx.table.key::<Assistant>(new.assistant_id));
    let make = |id: ConversationId, named: &NamedItems| {
        new.clone().begun(id.0, org, Uuid::nil(), now).under(settings(named.get(&assistant)))
    };
    let opened = cx.table.insert_taking(cx.new_row(()), None, (TAKEN, make), |_, _| Ok(())).await;
    opened.map_err(TableError::from).on_missing("")
}

/// The settings in the item of an assistant; an old one has none.
fn settings(assistant: Option<&Item>) -> ConversationSettings {
    let stored = assistant.and_then(|item| item.get("conversation").cloned());
    stored.and_then(|value| serde_dynamo::from_attribute_value(value).ok()).unwrap_or_default()
}

/// Closes the conversations that are idle, and moves the time of those that were used since they came into the index.
///
/// # Errors
/// The first error of a conversation; the others of the same round are handled all the same.
pub async fn close_idle(cx: &EventContext<'_>) -> Result<()> {
    handle_due(cx, Due::Conversation, |key| close_if_idle(cx, key)).await
}

/// Handles the conversation at `key`; false if it is no longer due. If it changes at the same moment, the change counts.
async fn close_if_idle(cx: &EventContext<'_>, key: Key) -> Result<bool> {
    let Some((tenant, _, _)) = row_of(&key) else { return Ok(false) };
    let (table, now) = (cx.table(tenant), cx.service.clock.now());
    let Some(item) = table.store.get(&key).await? else { return Ok(false) };
    let was: Conversation = from_item(item)?;
    if was.due_at.is_none_or(|due| now < due) {
        return Ok(false);
    }
    let mut is = was.clone();
    match was.idle_at().filter(|idle_at| *idle_at > now) {
        Some(idle_at) => is.due_at = Some(idle_at),
        None => is.close(Some(CloseReason::from(IDLE)), now)?,
    }
    Ok(table.replace(was.id, &was, is).await?.is_some())
}

impl Conversation {
    /// The same conversation, which has just begun, under these settings.
    #[must_use]
    pub(super) fn under(self, ConversationSettings { idle_close_minutes }: ConversationSettings) -> Self {
        let begun = Self { idle_close_minutes, ..self };
        Self { due_at: begun.idle_at(), ..begun }
    }

    /// When it becomes idle, if it is open and its assistant has a time for that.
    fn idle_at(&self) -> Option<Timestamp> {
        let minutes = self.idle_close_minutes.filter(|_| self.status == ConversationStatus::Open)?;
        Some(self.updated_at.plus_seconds(minutes.get() * 60))
    }
}
