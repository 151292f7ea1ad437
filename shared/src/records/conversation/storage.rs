//! How the messages of a conversation are stored, and how a contact's open conversation is found.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;
use serde::Deserialize;
use uuid::Uuid;

use super::answer::settled;
use super::replies::reply;
use super::{Conversation, DatasourceIds, Message, MessageType, NewMessage, SenderType, Transcribed, thread};
use crate::input::Issues;
use crate::records::campaign;
use crate::records::campaign::{RunId, TextOf};
use crate::records::contact::Contact;
use crate::table::error::{Cancelled, was_done};
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::filters::Term;
use crate::table::item::{Item, from_item, has_id, number, target_id, text, to_item};
use crate::table::keys::{Key, made_by};
use crate::table::metering::Metering;
use crate::table::page::{ListQuery, Order, Page, PageQuery};
use crate::table::retry::LostAnswer;
use crate::table::stored::{Listed as _, Single, Stored};
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::table::{Table, TableError};
use crate::values::id::{ContactId, ConversationId, MessageId, WidgetId, ordinal};
use crate::values::tenant::Tenant;
use crate::values::text::MessageText;
use crate::values::time::Timestamp;

/// The search for the newest open conversation passes over so many closed ones: the stream soon removes their pointers.
const MOST_CLOSED: usize = 8;

/// The result of a change of a conversation.
#[derive(Debug)]
pub enum Changed<T> {
    /// The conversation was changed.
    Done(T),
    /// The conversation is closed and stays unchanged.
    Closed,
    /// The conversation has no room for more and stays unchanged.
    Full,
    /// The message that was to be answered has an answer.
    Answered,
    /// The body names records that do not exist.
    Unknown(Issues),
}

// The messages of a conversation share a partition, in order.
impl Stored for Message {
    type Id = (ConversationId, u64);

    fn key(tenant: &Tenant, (conversation, ordinal): Self::Id) -> Key {
        Key::of(tenant, format_args!("MESSAGE#{conversation}"), format_args!("{ordinal:010}"))
    }
}

impl Single for Message {}

/// A message as it is stored: with its text, or with the run and the version of the campaign's text. So the text of a
/// campaign is stored once, however many contacts get it.
#[derive(Debug, Deserialize)]
struct StoredMessage {
    id: MessageId,
    conversation_id: ConversationId,
    sender_type: SenderType,
    message_type: MessageType,
    #[serde(default)]
    text: MessageText,
    char_count: u64,
    #[serde(default)]
    in_reply_to: Option<MessageId>,
    #[serde(default)]
    data_source_ids: DatasourceIds,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(default)]
    text_of: Option<RunId>,
    #[serde(default)]
    text_version: u32,
}

impl StoredMessage {
    /// The campaign's text to which it refers, if it has no text of its own.
    fn text_of(&self) -> Option<TextOf> {
        self.text_of.map(|run| TextOf { run, version: self.text_version })
    }

    /// The message; a campaign's text comes from `texts`.
    fn message(self, texts: &BTreeMap<TextOf, MessageText>) -> Message {
        let text = self.text_of().and_then(|of| texts.get(&of).cloned()).unwrap_or(self.text);
        Message {
            id: self.id,
            conversation_id: self.conversation_id,
            sender_type: self.sender_type,
            message_type: self.message_type,
            text,
            char_count: self.char_count,
            in_reply_to: self.in_reply_to,
            data_source_ids: self.data_source_ids,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// The item of `message`. `text_of` is the campaign's text to which the item refers. What few messages have adds nothing
/// to the others.
fn message_item(tenant: &Tenant, message: &Message, text_of: Option<TextOf>) -> Result<Item, TableError> {
    let mut item = to_item(&Message::key(tenant, (message.conversation_id, ordinal(message.id.0))), message)?;
    let absent =
        [("in_reply_to", message.in_reply_to.is_none()), ("data_source_ids", message.data_source_ids.is_empty())];
    for (name, _) in absent.into_iter().filter(|(_, is_absent)| *is_absent) {
        item.remove(name);
    }
    if let Some(TextOf { run, version }) = text_of {
        item.remove("text");
        item.insert("text_of".to_owned(), text(run));
        item.extend((version > 0).then(|| ("text_version".to_owned(), number(version))));
    }
    Ok(item)
}

impl<M> Transaction<'_, M> {
    /// Opens a conversation, with its first message if there is one: one transaction may write an item only once.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn begin(
        &mut self,
        conversation: &Conversation,
        message: Option<&Message>,
        text_of: Option<TextOf>,
    ) -> Result<(), TableError> {
        let Some(message) = message else { return self.insert(conversation.id, conversation) };
        let text_bytes = message.bytes();
        let last_sender = Some(message.sender_type);
        let includes_voice = conversation.includes_voice || message.message_type == MessageType::Voice;
        self.insert(
            conversation.id,
            &Conversation { chat_count: 1, text_bytes, includes_voice, last_sender, ..conversation.clone() },
        )?;
        self.write(Write::put(message_item(self.tenant(), message, text_of)?));
        Ok(())
    }

    /// Adds `message` to an open conversation that has room for it, on condition that the conversation has not changed
    /// since it was read.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn say(
        &mut self,
        conversation: &Conversation,
        message: &Message,
        text_of: Option<TextOf>,
    ) -> Result<(), TableError> {
        let Conversation { id, chat_count, text_bytes, version, .. } = conversation;
        let counting = UpdateExpression::new()
            .set("chat_count", number(chat_count + 1))
            .set("text_bytes", number(text_bytes + message.bytes()))
            .set("updated_at", text(message.created_at))
            .set("last_sender", text(message.sender_type.as_str()))
            .add("version", number(1));
        let counting = match message.message_type {
            MessageType::Voice => counting.set("includes_voice", AttributeValue::Bool(true)),
            MessageType::Text => counting,
        };
        let counting = match &conversation.reply_to {
            Some(number) => counting.set("reply_to", text(number.as_str())),
            None => counting,
        };
        let key = Conversation::key(self.tenant(), *id);
        self.write(Write::update(key, self.table().stamping(counting)).when(version.unchanged(id.0)));
        self.write(Write::put(message_item(self.tenant(), message, text_of)?));
        Ok(())
    }
}

/// Adds a message to an open conversation, unless a message of `origin` was added before, and counts it.
///
/// # Errors
/// [`TableError::Missing`] where there is no such conversation.
pub async fn add_message(
    table: &Table,
    conversation: ConversationId,
    id: MessageId,
    new: &NewMessage,
    (origin, metering): (Option<Uuid>, Option<Metering>),
    now: Timestamp,
) -> Result<Changed<Message>, TableError> {
    let message_at = |place| new.message(id, conversation, place, now);
    let (known, unknown) = futures_util::join!(table.get::<Conversation>(conversation), new.unknown_sources(table));
    let (mut known, unknown) = (known?, unknown?);
    let (mut round, mut unanswered) = (table.store.backoff(), None);
    loop {
        if let Some(refused) = refusal(&known, new, &unknown) {
            // An earlier attempt of the same request may have added it.
            let said = said_by(table, origin).await?.map(message_at);
            return Ok(said.map_or(refused, Changed::Done));
        }
        let message = message_at(known.chat_count);
        let reply = match reply(table, &known, &message).await {
            // An earlier attempt of the same request may have added it before the quota was reached.
            Err(refused @ TableError::QuotaReached(_)) => {
                let said = said_by(table, origin).await?.map(message_at);
                return said.map(Changed::Done).ok_or(refused);
            }
            reply => reply?,
        };
        let mut transaction = Transaction::of_request(table);
        transaction.once(origin, message.id.0, now);
        transaction.answer(&message);
        transaction.say(&known, &message, None)?;
        transaction.meter(metering.clone());
        let reserved = reply.map(|reply| transaction.reply(reply)).transpose()?;
        let lost = LostAnswer::default();
        known = match transaction.commit_reserved_once(reserved, &lost).await {
            Ok(()) => return Ok(Changed::Done(message)),
            Err(Cancelled::Condition(Unmet::Repeated, Some(marker))) => {
                return Ok(Changed::Done(message_at(ordinal(target_id(&marker)?))));
            }
            Err(Cancelled::Condition(Unmet::Settled, existing)) => {
                return Ok(settled(existing.as_ref(), &message, message_at));
            }
            Err(Cancelled::Condition(_, existing)) if !round.is_over() => {
                from_item(existing.ok_or(TableError::Missing)?)?
            }
            Err(Cancelled::Condition(..)) => {
                return Err(TableError::Unavailable("others kept adding messages at the same moment".into()));
            }
            // The conflicting request has added a message. A message at the place after it would only conflict with the
            // next request.
            Err(Cancelled::Conflict(_)) if round.wait().await => table.get(conversation).await?,
            Err(cancelled) => return Err(cancelled.into()),
        };
        if lost.happened() {
            unanswered = Some(message);
        }
        // Once a message can only come at a later place, the table shows whether an attempt with a lost answer
        // succeeded.
        if let Some(message) = unanswered.take_if(|message| known.chat_count > ordinal(message.id.0))
            && is_said(table, &message).await?
        {
            return Ok(Changed::Done(message));
        }
    }
}

/// Why a conversation does not take the message `new`, some of whose data sources may be `unknown`.
fn refusal(known: &Conversation, new: &NewMessage, unknown: &Issues) -> Option<Changed<Message>> {
    if !known.is_open() {
        return Some(Changed::Closed);
    }
    if !known.has_room(new.bytes()) {
        return Some(Changed::Full);
    }
    let missing = Some(unknown).filter(|unknown| !unknown.is_empty()).cloned();
    missing.or_else(|| new.answers_nothing(known.chat_count)).map(Changed::Unknown)
}

/// The place of the message of `origin`, if it was added.
async fn said_by(table: &Table, origin: Option<Uuid>) -> Result<Option<u64>, TableError> {
    let Some(origin) = origin else { return Ok(None) };
    let marker = table.store.get(&made_by(&table.tenant, origin)).await?;
    marker.map(|marker| target_id(&marker).map(ordinal)).transpose()
}

/// Whether exactly this message is stored at its place.
async fn is_said(table: &Table, message: &Message) -> Result<bool, TableError> {
    let stored = table.store.get(&table.key::<Message>((message.conversation_id, ordinal(message.id.0)))).await?;
    Ok(stored.is_some_and(|stored| has_id(&stored, Some(message.id.0))))
}

/// A conversation and a page of its messages, read at the same time.
///
/// # Errors
/// [`TableError::Missing`] where there is no such conversation.
pub async fn transcribed(table: &Table, id: ConversationId, query: &PageQuery) -> Result<Transcribed, TableError> {
    let page = async |(before, count)| {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        messages(table, &Message::key(&table.tenant, (id, before)), Some(count)).await
    };
    let (conversation, mut messages) = match query.order {
        Order::Ascending => {
            let page = page((query.offset(), query.size()));
            let (conversation, messages) = futures_util::join!(table.get::<Conversation>(id), page);
            (conversation?, messages?)
        }
        // Only the conversation tells where the last page begins.
        Order::Descending => {
            let conversation: Conversation = table.get(id).await?;
            let (before, count) = query.within(conversation.chat_count);
            // A query for no item is an error.
            let messages = if count > 0 { page((before, count)).await? } else { Vec::new() };
            (conversation, messages)
        }
    };
    let left = conversation.chat_count.saturating_sub(query.offset());
    messages.truncate(usize::try_from(left).unwrap_or(usize::MAX));
    let transcript = query.of(query.order.of(messages), conversation.chat_count);
    Ok(Transcribed { conversation, transcript })
}

/// A page of the conversations with a contact.
///
/// # Errors
/// [`TableError::Missing`] where there is no such contact.
pub async fn with_contact(
    table: &Table,
    contact: ContactId,
    page: PageQuery,
) -> Result<Page<Conversation>, TableError> {
    let of_it = Term::of("contact_id", &contact).map(Term::sparse);
    let query = ListQuery::new(page, of_it.into_iter().collect());
    // Not `try_join!`: the cost of a request must not depend on whether the contact exists.
    let (contact, page) = futures_util::join!(table.get::<Contact>(contact), table.list((), &query));
    contact.and(page)
}

/// All messages of a conversation.
///
/// # Errors
/// [`TableError`].
pub async fn transcript(table: &Table, id: ConversationId) -> Result<Vec<Message>, TableError> {
    messages(table, &Message::key(&table.tenant, (id, 0)), None).await
}

/// The messages at these places of a conversation.
///
/// # Errors
/// [`TableError`].
pub async fn said_between(table: &Table, id: ConversationId, places: Range<u64>) -> Result<Vec<Message>, TableError> {
    // A query for no item is an error.
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let count = usize::try_from(places.end - places.start).unwrap_or(usize::MAX);
    messages(table, &Message::key(&table.tenant, (id, places.start)), Some(count)).await
}

/// The message `id` of a conversation.
///
/// # Errors
/// [`TableError`].
pub async fn message(
    table: &Table,
    conversation: ConversationId,
    id: MessageId,
) -> Result<Option<Message>, TableError> {
    let first = Message::key(&table.tenant, (conversation, ordinal(id.0)));
    Ok(messages(table, &first, Some(1)).await?.pop().filter(|message| message.id == id))
}

async fn messages(table: &Table, first: &Key, limit: Option<usize>) -> Result<Vec<Message>, TableError> {
    let mut lost = BTreeSet::new();
    loop {
        let stored: Vec<StoredMessage> = table.store.query_records(&first.pk, (&first.sk, None), limit).await?.records;
        let mut named: BTreeSet<TextOf> = stored.iter().filter_map(StoredMessage::text_of).collect();
        let texts = campaign::texts(table, &named).await?;
        named.retain(|of| !texts.contains_key(of));
        if named.is_subset(&lost) {
            return Ok(stored.into_iter().map(|message| message.message(&texts)).collect());
        }
        // The campaign was removed just now. Before its text was deleted, the text was copied into its messages.
        lost = named;
    }
}

/// The messages of a run in a conversation, with the versions of their texts.
pub(crate) async fn said_in(
    table: &Table,
    conversation: ConversationId,
    run: RunId,
) -> Result<Vec<((ConversationId, u64), u32)>, TableError> {
    let first = Message::key(&table.tenant, (conversation, 0));
    let stored: Vec<StoredMessage> = table.store.query_records(&first.pk, (&first.sk, None), None).await?.records;
    let of_run = stored.into_iter().filter(|message| message.text_of == Some(run));
    Ok(of_run.map(|message| ((conversation, ordinal(message.id.0)), message.text_version)).collect())
}

/// Copies the text of a run into the message at this place, if the message only refers to it.
pub(crate) async fn keep_text(
    table: &Table,
    at: (ConversationId, u64),
    run: RunId,
    said: MessageText,
) -> Result<(), TableError> {
    let keeping = UpdateExpression::new().set("text", text(said)).remove_all(["text_of", "text_version"]);
    let names_it = Condition::of("text_of = :run", [(":run", text(run))]);
    // The message may have its text already, or be gone.
    was_done(table.store.update(&table.key::<Message>(at), &keeping, Some(&names_it)).await).map(drop)
}

/// The newest open conversation with `contact` through `widget`, if it has room for `message`.
///
/// # Errors
/// [`TableError`].
pub async fn open_thread(
    table: &Table,
    widget: WidgetId,
    contact: ContactId,
    message: &str,
) -> Result<Option<Conversation>, TableError> {
    let partition = thread(&table.tenant, widget, contact, ConversationId(Uuid::nil())).pk;
    let mut before: Option<ConversationId> = None;
    for _ in 0..MOST_CLOSED {
        let before_it = before.map(|id| id.to_string());
        let Some(pointer) = table.store.last(&partition, before_it.as_deref()).await? else { return Ok(None) };
        let id = ConversationId(target_id(&pointer)?);
        match table.find::<Conversation>(id).await? {
            Some(newest) if newest.is_open() => {
                return Ok(Some(newest).filter(|newest| newest.has_room_for(message)));
            }
            // The stream has not yet removed its pointer.
            _ => before = Some(id),
        }
    }
    Ok(None)
}

/// The newest open conversation of each of these contacts, if there is one. The conversations are read together.
///
/// # Errors
/// [`TableError`].
pub async fn open_threads(
    table: &Table,
    widget: WidgetId,
    contacts: &[ContactId],
    message: &str,
) -> Result<HashMap<ContactId, Conversation>, TableError> {
    let newest = contacts.iter().map(async |contact| {
        let partition = thread(&table.tenant, widget, *contact, ConversationId(Uuid::nil())).pk;
        let pointer = table.store.last(&partition, None).await?;
        Ok::<_, TableError>(
            pointer.map(|pointer| target_id(&pointer)).transpose()?.map(|id| (*contact, ConversationId(id))),
        )
    });
    let newest: Vec<_> = try_join_all(newest.collect::<Vec<_>>()).await?.into_iter().flatten().collect();
    let found = table.get_each::<Conversation>(&newest.iter().map(|(_, id)| *id).collect()).await?;
    let found: HashMap<_, _> = found.into_iter().map(|conversation| (conversation.id, conversation)).collect();
    let mut threads = HashMap::new();
    for (contact, id) in newest {
        let thread = match found.get(&id) {
            Some(newest) if newest.is_open() => Some(newest.clone()).filter(|newest| newest.has_room_for(message)),
            // The stream has not yet removed its pointer, and an older one may be open.
            _ => open_thread(table, widget, contact, message).await?,
        };
        threads.extend(thread.map(|thread| (contact, thread)));
    }
    Ok(threads)
}

/// Removes the pointers to conversations that are closed.
///
/// # Errors
/// [`TableError`]: some may have been removed.
pub async fn forget_threads(
    table: &Table,
    closed: impl Iterator<Item = &Conversation> + Send,
) -> Result<(), TableError> {
    let pointers: Vec<Key> = closed.flat_map(|closed| closed.pointers(&table.tenant)).collect();
    table.store.delete_all(&pointers).await
}
