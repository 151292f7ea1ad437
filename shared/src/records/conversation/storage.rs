//! Conversations and their messages.
//!
//! All conversations of an organisation stand in one list. Three kinds of sets say which are closed, which are an assistant's, and
//! which of those are closed; the open ones are what is left.

use uuid::Uuid;

use crate::records::assistant::Assistant;
use crate::records::contact::Contact;
use crate::records::conversation::{
    Conversation, ConversationQuery, ConversationStatus, Message, NewMessage, Transcribed,
};
use crate::records::widget::Widget;
use crate::request::page::{Page, PageQuery};
use crate::table::filters::Selection;
use crate::table::keys::{Entity as _, Key, Row as _, list_row, thread};
use crate::table::list::{Plan, made_id};
use crate::table::store::{Cancelled, Item, Write, from_item, number, text, to_item, values};
use crate::table::{ATTEMPTS, Table, TableError};
use crate::values::id::{AssistantId, ContactId, ConversationId, MessageId, WidgetId, ordinal};
use crate::values::time::Timestamp;

/// What an open conversation needs that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The assistant.
    Assistant,
    /// The widget.
    Widget,
    /// The contact.
    Contact,
}

impl Needs {
    /// The field of the request that names it.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Assistant => "assistant_id",
            Self::Widget => "widget_id",
            Self::Contact => "contact_id",
        }
    }
}

/// How a change of a conversation ended.
#[derive(Debug)]
pub enum Changed<T> {
    /// It was made.
    Done(T),
    /// It is closed, and stays as it is.
    Closed,
}

fn closed_of(assistant: AssistantId) -> String {
    format!("CLOSED#{assistant}")
}

fn all_of(assistant: AssistantId) -> String {
    format!("ASSISTANT#{assistant}")
}

const CLOSED: &str = "CLOSED";

impl Plan<'_> {
    /// Opens `conversation`, whose id carries the ordinal that [`Plan::next`] gave.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn open(&mut self, conversation: &Conversation) -> Result<(), TableError> {
        self.put(conversation.id, conversation)?;
        let fields = &conversation.fields;
        self.insert(&all_of(fields.assistant_id), ordinal(conversation.id.0));
        if let Some((widget, contact)) = fields.widget_id.zip(fields.contact_id) {
            let lead = thread(self.tenant(), widget, contact, conversation.id);
            self.write(Write::put(lead.attributes()));
        }
        Ok(())
    }

    /// Opens a conversation with a message in it, where there is one: a transaction may touch an item only once.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn begin(&mut self, conversation: &Conversation, message: Option<&Message>) -> Result<(), TableError> {
        let Some(message) = message else { return self.open(conversation) };
        self.open(&Conversation { chat_count: 1, ..conversation.clone() })?;
        let key = Message::key(self.tenant(), (conversation.id, ordinal(message.id.0)));
        self.write(Write::put(to_item(&key, message)?));
        Ok(())
    }

    /// Adds `message` to an open conversation that has `before` of them; returns the action's place.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn say(&mut self, conversation: ConversationId, before: u64, message: &Message) -> Result<usize, TableError> {
        let at = self.write(Write::Update {
            key: Conversation::key(self.tenant(), conversation),
            expression: "SET chat_count = :after, updated_at = :now".into(),
            condition: Some("id = :id AND #status = :open AND chat_count = :before"),
            values: values([
                (":id", text(conversation)),
                (":open", text(ConversationStatus::Open.as_str())),
                (":before", number(before)),
                (":after", number(before + 1)),
                (":now", text(message.created_at)),
            ]),
        });
        let key = Message::key(self.tenant(), (conversation, ordinal(message.id.0)));
        self.write(Write::put(to_item(&key, message)?));
        Ok(at)
    }
}

impl Table {
    /// Opens what `make` makes of an id's ordinal, in one transaction, unless `origin` has opened one before.
    ///
    /// # Errors
    /// [`TableError`]; inside, what it needs and is not there.
    pub async fn open_conversation(
        &self,
        origin: Option<Uuid>,
        make: impl Fn(u32) -> Conversation + Sync,
    ) -> Result<Result<Conversation, Needs>, TableError> {
        let sample = make(0);
        let (fields, now) = (&sample.fields, sample.created_at);
        let needs: Vec<(Needs, Write)> = [
            Some((Needs::Assistant, self.require::<Assistant>(fields.assistant_id))),
            fields.widget_id.map(|id| (Needs::Widget, self.require::<Widget>(id))),
            fields.contact_id.map(|id| (Needs::Contact, self.require::<Contact>(id))),
        ]
        .into_iter()
        .flatten()
        .collect();
        let plan = |plan: &mut Plan<'_>| {
            let conversation = make(plan.next::<Conversation>(()));
            if let Some(origin) = origin {
                plan.made_by(origin, conversation.id.0, now);
            }
            for (_, write) in &needs {
                plan.write(write.clone());
            }
            plan.open(&conversation)?;
            Ok(conversation)
        };
        let markers = usize::from(origin.is_some());
        match self.carry_out(plan).await {
            Err(Cancelled::Condition(0, Some(marker))) if origin.is_some() => Ok(Ok(make(ordinal(made_id(&marker)?)))),
            Err(Cancelled::Condition(at, _)) => match at.checked_sub(markers).and_then(|at| needs.get(at)) {
                Some((needs, _)) => Ok(Err(*needs)),
                None => Err(TableError::Broken("a condition that an opening does not have".into())),
            },
            result => Ok(Ok(result?)),
        }
    }

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
            let plan = |plan: &mut Plan<'_>| {
                if let Some(origin) = origin {
                    plan.made_by(origin, message.id.0, now);
                }
                plan.say(conversation, before, &message)
            };
            match self.carry_out(plan).await {
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
        Err(TableError::Unavailable("others kept speaking at the same moment".into()))
    }

    /// Closes an open conversation, once. `by` names the request that does it, so that its repeat is told that it did.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such conversation.
    pub async fn close_conversation(
        &self,
        id: ConversationId,
        by: Uuid,
        now: Timestamp,
    ) -> Result<Changed<Conversation>, TableError> {
        let mut item = self.store.get(&self.key::<Conversation>(id)).await?.ok_or(TableError::Missing)?;
        for _ in 0..ATTEMPTS {
            let closed_by_this = item.get("closed_by") == Some(&text(by));
            let known: Conversation = from_item(item)?;
            if known.id != id {
                return Err(TableError::Missing);
            }
            if !known.is_open() {
                return Ok(if closed_by_this { Changed::Done(known) } else { Changed::Closed });
            }
            let closed = known.closed(now);
            let plan = |plan: &mut Plan<'_>| {
                plan.close(&closed, by);
                Ok(())
            };
            match self.carry_out(plan).await {
                Ok(()) => return Ok(Changed::Done(closed)),
                Err(Cancelled::Condition(_, stands)) => item = stands.ok_or(TableError::Missing)?,
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
        Err(TableError::Unavailable("others kept speaking at the same moment".into()))
    }

    /// A conversation and a page of its messages, side by side.
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

    /// All messages of a conversation, however many.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn transcript(&self, id: ConversationId) -> Result<Vec<Message>, TableError> {
        let first = Message::key(&self.tenant, (id, 0));
        self.store.query_records(&first.pk, &first.sk, None).await
    }

    /// A page of the conversations that `query` asks for.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn conversations(&self, query: &ConversationQuery) -> Result<Page<Conversation>, TableError> {
        use ConversationStatus::{Closed, Open};
        let (of, without) = match (query.status, query.assistant_id) {
            (None, None) => return self.page::<Conversation>((), &query.page()).await,
            (None, Some(assistant)) => (Some(all_of(assistant)), None),
            (Some(Closed), None) => (Some(CLOSED.to_owned()), None),
            (Some(Closed), Some(assistant)) => (Some(closed_of(assistant)), None),
            (Some(Open), None) => (None, Some(CLOSED.to_owned())),
            (Some(Open), Some(assistant)) => (Some(all_of(assistant)), Some(closed_of(assistant))),
        };
        let page = query.page();
        let all = of.is_none();
        let next = async { if all { self.next_ordinal::<Conversation>(()).await } else { Ok(0) } };
        let selection = Selection { of, without };
        let (ordinals, total) = Box::pin(self.select(&selection, next, page.offset(), page.size())).await?;
        let list = Conversation::list(());
        let keys: Vec<Key> = ordinals.iter().map(|ordinal| list_row(&self.tenant, &list, *ordinal)).collect();
        let mut items: Vec<Item> = self.store.get_all(&keys).await?;
        items.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
        let items = items.into_iter().map(from_item).collect::<Result<_, _>>()?;
        Ok(page.of(items, total))
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

impl Plan<'_> {
    fn close(&mut self, closed: &Conversation, by: Uuid) {
        let (id, fields) = (closed.id, &closed.fields);
        self.write(Write::Update {
            key: Conversation::key(self.tenant(), id),
            expression: "SET #status = :closed, closed_at = :now, updated_at = :now, closed_by = :by".into(),
            condition: Some("id = :id AND #status = :open AND chat_count = :count"),
            values: values([
                (":id", text(id)),
                (":open", text(ConversationStatus::Open.as_str())),
                (":closed", text(ConversationStatus::Closed.as_str())),
                // What is answered, and sent, is the conversation to its last word.
                (":count", number(closed.chat_count)),
                (":now", text(closed.updated_at)),
                (":by", text(by)),
            ]),
        });
        self.insert(CLOSED, ordinal(id.0));
        self.insert(&closed_of(fields.assistant_id), ordinal(id.0));
        if let Some((widget, contact)) = fields.widget_id.zip(fields.contact_id) {
            let key = thread(self.tenant(), widget, contact, id);
            self.write(Write::Delete { key, condition: None, values: Item::new() });
        }
    }
}

fn sort_key(item: &Item) -> Option<&String> {
    item.get("sk").and_then(|sk| sk.as_s().ok())
}
