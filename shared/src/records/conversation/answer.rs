//! What a bot's message answers, and from which data sources. The first answer to a message is noted in the item of that
//! message, by the transaction that stores the answer: so two answers cannot both be stored.

use uuid::Uuid;

use super::{Changed, Message, NewMessage, SenderType};
use crate::input::bounded::UpTo;
use crate::input::{Issues, Location};
use crate::records::datasource::Datasource;
use crate::request::error::{Error, Result};
use crate::table::cascade::missing_records;
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, has_id, text};
use crate::table::stored::{Stored as _, reference};
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::table::{Table, TableError};
use crate::values::id::{DatasourceId, ordinal, with_ordinal};

/// The bytes of a data source in a transcript.
const SOURCE_BYTES: u64 = 80;
/// The attribute of a message with the id of its answer.
const ANSWERED_BY: &str = "answered_by";
/// The field of a new message that names the answered one.
const IN_REPLY_TO: &str = "in_reply_to";
/// The field of a new message that names its data sources.
const SOURCES: &str = "data_source_ids";

/// The data sources from which a message was made.
pub type DatasourceIds = UpTo<20, DatasourceId>;

/// The bytes that data sources add to a conversation.
pub(super) const fn bytes_of(sources: &DatasourceIds) -> u64 {
    sources.0.len() as u64 * SOURCE_BYTES
}

impl NewMessage {
    /// Requires that only the message of a bot answers another one, or has data sources.
    ///
    /// # Errors
    /// [`Error::Invalid`] at each field that a message of this sender cannot have.
    pub fn require_bot(&self) -> Result<()> {
        if self.sender_type == SenderType::Bot {
            return Ok(());
        }
        let set = [(IN_REPLY_TO, self.in_reply_to.is_some()), (SOURCES, !self.data_source_ids.is_empty())];
        let issue = |(field, _)| {
            Location::body()
                .name(field)
                .issue("value_error", "Value error, only the message of a bot can have this field")
        };
        let issues: Issues = set.into_iter().filter(|(_, is_set)| *is_set).map(issue).collect();
        if issues.is_empty() { Ok(()) } else { Err(Error::Invalid(issues)) }
    }

    /// An issue at each data source that does not exist. Without data sources this reads nothing.
    pub(super) async fn unknown_sources(&self, table: &Table) -> Result<Issues, TableError> {
        let ids = &self.data_source_ids.0;
        let references = ids.iter().filter_map(|id| reference::<Datasource, _>(&table.tenant, SOURCES, id)).collect();
        let missing = if ids.is_empty() { Vec::new() } else { missing_records(table, references).await? };
        let is_missing = |id: &DatasourceId| missing.iter().any(|gone| gone.proof == Some(id.0));
        let unknown = ids.iter().enumerate().filter(|(_, id)| is_missing(id));
        Ok(unknown
            .map(|(index, _)| Location::body().name(SOURCES).index(index).issue("not_found", "Not found"))
            .collect())
    }

    /// An issue if it answers a message that comes after all of a conversation's `count`. A transaction could not write
    /// the place of the new message twice.
    pub(super) fn answers_nothing(&self, count: u64) -> Option<Issues> {
        self.in_reply_to.filter(|of| ordinal(of.0) >= count).map(|_| unknown_message())
    }
}

/// The message that is answered does not exist.
fn unknown_message() -> Issues {
    vec![Location::body().name(IN_REPLY_TO).issue("not_found", "Not found")]
}

/// The answer to a second answer.
pub fn is_answered_already() -> Error {
    Error::Conflict {
        at: Location::body().name(IN_REPLY_TO),
        kind: "already_answered",
        message: "Another message has answered this one",
    }
}

impl Transaction<'_, Unmet> {
    /// Notes in the message that `answer` names that it is answered, on condition that it exists and has no answer.
    /// Otherwise the transaction is [`Unmet::Settled`].
    pub(super) fn answer(&mut self, answer: &Message) {
        let Some(of) = answer.in_reply_to else { return };
        let open = Condition::of("id = :question AND attribute_not_exists(answered_by)", [(":question", text(of))]);
        let noting = UpdateExpression::new().set(ANSWERED_BY, text(answer.id));
        let key = Message::key(self.tenant(), (answer.conversation_id, ordinal(of.0)));
        self.write(Write::update(key, noting).when(open)).or(Unmet::Settled);
    }
}

/// The result of an answer whose transaction was [`Unmet::Settled`] by `existing`, the item at the place of the answered
/// message. `own` makes the message at a place: an attempt without an answer may have stored it there.
pub(super) fn settled(existing: Option<&Item>, answer: &Message, own: impl Fn(u64) -> Message) -> Changed<Message> {
    let question = existing.filter(|item| has_id(item, answer.in_reply_to.map(|of| of.0)));
    let Some(question) = question else { return Changed::Unknown(unknown_message()) };
    let stored = question.get(ANSWERED_BY).and_then(|id| id.as_s().ok()?.parse::<Uuid>().ok());
    let is_own = |id: &Uuid| with_ordinal(answer.id.0, ordinal(*id)) == *id;
    stored.filter(is_own).map_or(Changed::Answered, |id| Changed::Done(own(ordinal(id))))
}
