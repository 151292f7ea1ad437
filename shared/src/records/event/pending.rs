//! Changes of conversations whose event waits: a conversation has at most one event a minute for new messages and
//! changed fields. The tick emits it, so that the last change of a minute has an event, too.

use serde::{Deserialize, Serialize};

use crate::records::due::Due;
use crate::table::error::was_done;
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{from_item, number, text};
use crate::table::keys::Key;
use crate::table::transaction::Write;
use crate::table::{Table, TableError};
use crate::values::id::ConversationId;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Seconds between two events about changes of a conversation.
const MINUTE: i64 = 60;

/// The changes of a conversation that have no event yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NotedChanges {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// How many changes were noted.
    pub changes: u64,
}

fn key(tenant: &Tenant, conversation: ConversationId) -> Key {
    Key::of(tenant, format_args!("EVENT_PENDING#{conversation}"), "EVENT_PENDING")
}

/// Notes that a conversation has changed.
///
/// # Errors
/// [`TableError`].
pub async fn note(table: &Table, conversation: ConversationId, now: Timestamp) -> Result<(), TableError> {
    let noting = UpdateExpression::new()
        .add("changes", number(1))
        .set_if_absent("conversation_id", text(conversation))
        .set_if_absent("due_at", text(now.plus_seconds(MINUTE)))
        .set_if_absent("due_pk", text(Due::Event.partition(conversation.0)));
    Ok(table.store.update(&key(&table.tenant, conversation), &noting, None).await.map(drop)?)
}

/// The changes that the item of `key` notes; `None` if their event was emitted meanwhile.
///
/// # Errors
/// [`TableError`].
pub async fn at(table: &Table, key: &Key) -> Result<Option<NotedChanges>, TableError> {
    table.store.get(key).await?.map(from_item).transpose()
}

/// Removes `pending`, unless further changes were noted meanwhile: the next tick emits these. Returns whether it is
/// removed.
///
/// # Errors
/// [`TableError`].
pub async fn settle(table: &Table, pending: &NotedChanges) -> Result<bool, TableError> {
    let same = Condition::of("changes = :changes", [(":changes", number(pending.changes))]);
    let settling = Write::delete(key(&table.tenant, pending.conversation_id)).when(same);
    was_done(table.store.transact(&[settling]).await)
}
