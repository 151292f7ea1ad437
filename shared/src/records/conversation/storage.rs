//! How the messages of a conversation are stored, and how a contact's open conversation is found.

use uuid::Uuid;

use super::{Conversation, ConversationStatus, Message, NewMessage, Transcribed};
use crate::request::page::PageQuery;
use crate::request::tenant::Tenant;
use crate::table::commit::Transaction;
use crate::table::keys::Key;
use crate::table::store::{from_item, made_id, number, text, to_item, values};
use crate::table::stored::{Single, Stored};
use crate::table::transaction::{Cancelled, Write};
use crate::table::{ATTEMPTS, Table, TableError};
use crate::values::id::{ContactId, ConversationId, MessageId, WidgetId, ordinal};
use crate::values::time::Timestamp;

/// The result of a change of a conversation.
#[derive(Debug)]
pub enum Changed<T> {
    /// It was made.
    Done(T),
    /// The conversation is closed, and was not changed.
    Closed,
}

// The messages of a conversation share a partition, in order.
impl Stored for Message {
    type Id = (ConversationId, u32);

    fn key(tenant: &Tenant, (conversation, ordinal): Self::Id) -> Key {
        Key::of(tenant, format_args!("MESSAGE#{conversation}"), format_args!("{ordinal:010}"))
    }
}

impl Single for Message {}

/// The key of the pointer from a contact and a widget to their open conversation.
pub(super) fn thread(tenant: &Tenant, widget: WidgetId, contact: ContactId, conversation: ConversationId) -> Key {
    Key::of(tenant, format_args!("THREAD#{widget}#{contact}"), conversation)
}

impl Transaction<'_> {
    /// Opens a conversation, with its first message if there is one: a transaction may touch an item only once.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn begin(&mut self, conversation: &Conversation, message: Option<&Message>) -> Result<(), TableError> {
        let Some(message) = message else { return self.insert((), conversation.id, conversation) };
        self.insert((), conversation.id, &Conversation { chat_count: 1, ..conversation.clone() })?;
        let key = Message::key(self.tenant(), (conversation.id, ordinal(message.id.0)));
        self.write(Write::put(to_item(&key, message)?));
        Ok(())
    }

    /// Adds `message` to an open conversation that has `before` messages. Returns the index of the action.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn say(&mut self, conversation: ConversationId, before: u64, message: &Message) -> Result<usize, TableError> {
        let at = self.write(Write::Update {
            key: Conversation::key(self.tenant(), conversation),
            expression: "SET chat_count = :after, updated_at = :now ADD version :one".into(),
            condition: Some("id = :id AND #status = :open AND chat_count = :before"),
            values: values([
                (":id", text(conversation)),
                (":open", text(ConversationStatus::Open.as_str())),
                (":before", number(before)),
                (":after", number(before + 1)),
                (":now", text(message.created_at)),
                (":one", number(1)),
            ]),
        });
        let key = Message::key(self.tenant(), (conversation, ordinal(message.id.0)));
        self.write(Write::put(to_item(&key, message)?));
        Ok(at)
    }
}

impl Table {
    /// Adds a message to an open conversation, unless `origin` has added one before.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such conversation.
    pub async fn add_message(
        &self,
        conversation: ConversationId,
        id: MessageId,
        new: &NewMessage,
        origin: Option<Uuid>,
        now: Timestamp,
    ) -> Result<Changed<Message>, TableError> {
        let mut known: Conversation = self.get(conversation).await?;
        for _ in 0..ATTEMPTS {
            if !known.is_open() && origin.is_none() {
                return Ok(Changed::Closed);
            }
            let before = known.chat_count;
            let place = u32::try_from(before).map_err(|_| TableError::Broken("too many messages".into()))?;
            let message = new.message(id, conversation, place, now);
            let add = |transaction: &mut Transaction<'_>| {
                if let Some(origin) = origin {
                    transaction.made_by(origin, message.id.0, now);
                }
                transaction.say(conversation, before, &message)
            };
            match self.commit(add).await {
                Ok(_) => return Ok(Changed::Done(message)),
                Err(Cancelled::Condition(0, Some(marker))) if origin.is_some() => {
                    let place = ordinal(made_id(&marker)?);
                    return Ok(Changed::Done(new.message(id, conversation, place, now)));
                }
                Err(Cancelled::Condition(_, stands)) => known = from_item(stands.ok_or(TableError::Missing)?)?,
                Err(cancelled) => return Err(cancelled.into()),
            }
            if !known.is_open() {
                return Ok(Changed::Closed);
            }
        }
        Err(TableError::Unavailable("others kept adding messages at the same moment".into()))
    }

    /// A conversation and a page of its messages, read at the same time.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such conversation.
    pub async fn transcribed(&self, id: ConversationId, query: &PageQuery) -> Result<Transcribed, TableError> {
        let first = u32::try_from(query.offset()).unwrap_or(u32::MAX);
        let first = Message::key(&self.tenant, (id, first));
        let size = usize::try_from(query.size()).unwrap_or(usize::MAX);
        let (conversation, messages) = futures_util::join!(
            self.get::<Conversation>(id),
            self.store.query_records(&first.pk, &first.sk, Some(size))
        );
        let (conversation, mut messages) = (conversation?, messages?);
        let left = conversation.chat_count.saturating_sub(query.offset());
        messages.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        let transcript = query.of(messages, conversation.chat_count);
        Ok(Transcribed { conversation, transcript })
    }

    /// All messages of a conversation.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn transcript(&self, id: ConversationId) -> Result<Vec<Message>, TableError> {
        let first = Message::key(&self.tenant, (id, 0));
        self.store.query_records(&first.pk, &first.sk, None).await
    }

    /// The newest open conversation with `contact` through `widget`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn open_thread(&self, widget: WidgetId, contact: ContactId) -> Result<Option<Conversation>, TableError> {
        let first = thread(&self.tenant, widget, contact, ConversationId(Uuid::nil()));
        let Some(newest) = self.store.query(&first.pk, &first.sk, None).await?.pop() else { return Ok(None) };
        let id = newest.get("sk").and_then(|sk| sk.as_s().ok()?.parse().ok());
        let id = id.ok_or_else(|| TableError::Broken("a thread without a conversation".into()))?;
        Ok(self.find::<Conversation>(ConversationId(id)).await?.filter(Conversation::is_open))
    }
}
