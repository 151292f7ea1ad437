//! Messages of people, which a connector brings in. One transaction writes the contact, its conversation and the message,
//! once for each of the connector's identifiers.

use super::storage;
use uuid::Uuid;

use super::{Conversation, NewMessage, SenderType};
use crate::records::assistant::{Assistant, ConversationSettings};
use crate::records::contact::Contact;
use crate::records::contact_point::PhoneNumber;
use crate::records::widget::Widget;
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::declaration::Declared as _;
use crate::table::error::Cancelled;
use crate::table::expression::Condition;
use crate::table::filters::Term;
use crate::table::item::{Item, from_item, number, target_id, text};
use crate::table::keys::{Key, TTL};
use crate::table::reservation::Reservation;
use crate::table::retry::{Backoff, LostAnswer};
use crate::table::stored::{Single, Stored};
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::table::{Fingerprint, Table, TableError};
use crate::values::hash::{hex, sha256};
use crate::values::id::{AssistantId, ContactId, ConversationId, MessageId, OrgId, WidgetId, ordinal, with_ordinal};
use crate::values::tenant::Tenant;
use crate::values::text::{ExternalId, SomeText};
use crate::values::time::Timestamp;

/// Seconds for which an identifier of a connector is remembered.
const REMEMBERED: i64 = 35 * 86_400;
/// Seconds for which the table knows which conversation was opened last. Only requests at the same moment need it.
const OPENED: i64 = 86_400;

crate::input! {
    /// The body of receive-message.
    pub struct MessageFromNumber {
        /// The telephone number of the person, with its country code.
        pub from: PhoneNumber,
        /// What the person says.
        pub text: SomeText,
        /// Your identifier of the message. The first message of a widget with it is added; 35 days long, a repeat gets the same answer.
        pub external_id: ExternalId,
    }
}

crate::object! {
    /// The answer of receive-message.
    pub struct ReceivedMessage {
        /// The conversation: the open one of the contact through the widget, or a new one.
        pub conversation_id: ConversationId,
        /// The contact with this number.
        pub contact_id: ContactId,
        /// The message.
        pub message_id: MessageId,
        /// True if this request has added the message; false if it was there already.
        pub is_new: bool,
    }
}

impl Stored for ReceivedMessage {
    type Id = (WidgetId, Fingerprint);

    fn key(tenant: &Tenant, (widget, external): Self::Id) -> Key {
        Key::of(tenant, format_args!("RECEIVED#{widget}#{}", hex(&external)), "RECEIVED")
    }
}

impl Single for ReceivedMessage {}

/// The key of the pointer to the conversation that was opened last for a message of `contact`.
fn opened(tenant: &Tenant, widget: WidgetId, contact: ContactId) -> Key {
    Key::of(tenant, format_args!("OPENED#{widget}#{contact}"), "OPENED")
}

/// Adds the message that a person has sent through the connector of `widget`.
///
/// # Errors
/// [`Error::NotFound`] where there is no such widget, [`Error::Conflict`] where it makes calls, or cannot begin a
/// conversation.
pub async fn receive_message(cx: &Context<'_>, widget: WidgetId, new: MessageFromNumber) -> Result<ReceivedMessage> {
    let (table, inbound) = (&cx.table, Inbound::new(cx, widget, new));
    let mut round = table.store.backoff();
    loop {
        if let Some(received) = Box::pin(inbound.attempt(table, &mut round)).await? {
            return Ok(received);
        }
        round.again("the conversation").await?;
    }
}

/// A message that came in. Its ids are the same in every execution of the request.
struct Inbound {
    widget: WidgetId,
    from: PhoneNumber,
    message: NewMessage,
    external: Fingerprint,
    /// The id of the contact, if it creates one.
    contact: Uuid,
    /// The id of the conversation, if it begins one.
    conversation: Uuid,
    message_id: MessageId,
    org: OrgId,
    now: Timestamp,
}

/// A contact that has no open conversation, and the conversation that was opened last for a message of it.
struct KnownContact {
    contact: ContactId,
    opened: Option<ConversationId>,
}

impl Inbound {
    fn new(cx: &Context<'_>, widget: WidgetId, new: MessageFromNumber) -> Self {
        let MessageFromNumber { from, text, external_id } = new;
        Self {
            widget,
            from,
            message: NewMessage::text(SenderType::User, text.into_text()),
            external: sha256([external_id.as_bytes()]),
            contact: cx.new_id(),
            conversation: cx.new_id(),
            message_id: cx.new_id(),
            org: cx.tenant.org(),
            now: cx.now(),
        }
    }

    /// Reads the records and adds the message; `None` if others have changed them since they were read.
    async fn attempt(&self, table: &Table, round: &mut Backoff) -> Result<Option<ReceivedMessage>> {
        let number: Vec<Term> =
            self.contact(ContactId(Uuid::nil())).unique().into_iter().map(|value| value.term).collect();
        // Not `try_join!`: the cost of a request must not depend on which call fails first.
        let (first, widget, known) = futures_util::join!(
            table.find_item::<ReceivedMessage>((self.widget, self.external)),
            table.get::<Widget>(self.widget),
            table.holders::<Contact>((), &number),
        );
        if let Some(first) = first?.filter(|first| !self.is_expired(first)) {
            return Ok(Some(self.answer(first)?));
        }
        let widget = widget.on_missing("widget_id")?;
        widget.require_messages()?;
        let Some((_, contact)) = known?.first().copied() else { return self.open(table, &widget, None).await };
        let contact = ContactId(contact);
        match storage::open_thread(table, widget.id, contact, &self.message.text).await? {
            Some(thread) => Ok(self.say(table, (contact, thread), round).await?),
            None => self.open_or_follow(table, &widget, contact, round).await,
        }
    }

    /// Opens a conversation, unless another message has just opened one.
    async fn open_or_follow(
        &self,
        table: &Table,
        widget: &Widget,
        contact: ContactId,
        round: &mut Backoff,
    ) -> Result<Option<ReceivedMessage>> {
        let pointer = table.store.get(&opened(&table.tenant, widget.id, contact)).await?;
        let opened = pointer.map(|pointer| target_id(&pointer)).transpose()?.map(ConversationId);
        let newest = match opened {
            Some(id) => table.find::<Conversation>(id).await?,
            None => None,
        };
        match newest.filter(|newest| newest.is_open() && newest.has_room_for(&self.message.text)) {
            Some(thread) => Ok(self.say(table, (contact, thread), round).await?),
            None => self.open(table, widget, Some(KnownContact { contact, opened })).await,
        }
    }

    /// Adds the message to an open conversation; `None` once the conversation is closed, full or gone.
    async fn say(
        &self,
        table: &Table,
        (contact, thread): (ContactId, Conversation),
        round: &mut Backoff,
    ) -> Result<Option<ReceivedMessage>, TableError> {
        let (id, mut known) = (thread.id, thread);
        while known.is_open() && known.has_room_for(&self.message.text) {
            let thread = Conversation { reply_to: Some(self.from.clone()), ..known };
            let message = self.message.message(self.message_id, id, thread.chat_count, self.now);
            let (conversation_id, message_id) = (id, message.id);
            let received = ReceivedMessage { conversation_id, contact_id: contact, message_id, is_new: true };
            let mut transaction = Transaction::of_request(table);
            transaction.write(self.claim(table, &received)?).or(Unmet::Repeated);
            transaction.say(&thread, &message, None)?;
            known = match transaction.commit_once(&LostAnswer::default()).await {
                Ok(()) => return Ok(Some(received)),
                Err(Cancelled::Condition(Unmet::Repeated, Some(first))) => return self.answer(first).map(Some),
                // Many messages may come in at once. Without the wait, all of them would try again at the same moment.
                Err(Cancelled::Condition(Unmet::Changed, Some(_)) | Cancelled::Conflict(_)) if round.wait().await => {
                    let Some(changed) = table.find(id).await? else { return Ok(None) };
                    changed
                }
                Err(Cancelled::Condition(..)) => return Ok(None),
                Err(cancelled) => return Err(cancelled.into()),
            };
        }
        Ok(None)
    }

    /// Begins a conversation with the message, and makes the contact if it is not known.
    async fn open(
        &self,
        table: &Table,
        widget: &Widget,
        known: Option<KnownContact>,
    ) -> Result<Option<ReceivedMessage>> {
        let assistant = widget.require_connector()?;
        let (settings, place, new_contact) = reserve(table, assistant, known.is_none()).await?;
        let contact = match (&known, &new_contact) {
            (Some(known), _) => known.contact,
            (None, new) => ContactId(with_ordinal(self.contact, new.as_ref().map_or(0, Reservation::first))),
        };
        let assistant = (assistant, settings);
        let begun = Conversation::through(widget.id, assistant, contact, self.conversation, self.now).at(place.first());
        let conversation = Conversation { reply_to: Some(self.from.clone()), ..begun };
        let message = self.message.message(self.message_id, conversation.id, 0, self.now);
        let (conversation_id, message_id) = (conversation.id, message.id);
        let received = ReceivedMessage { conversation_id, contact_id: contact, message_id, is_new: true };

        let mut transaction = Transaction::of_request(table);
        transaction.write(self.claim(table, &received)?).or(Unmet::Repeated);
        match known {
            Some(known) => drop(transaction.write(self.point(table, &known, conversation.id))),
            None => transaction.insert(contact, &self.contact(contact))?,
        }
        transaction.begin(&conversation, Some(&message), None)?;
        match transaction.commit_reserved([place].into_iter().chain(new_contact)).await {
            Ok(()) => Ok(Some(received)),
            Err(Cancelled::Condition(Unmet::Repeated, Some(first))) => Ok(Some(self.answer(first)?)),
            // In the meantime, another request has made a contact with the number, or opened a conversation.
            Err(Cancelled::Condition(..) | Cancelled::Failed(TableError::Taken { .. })) => Ok(None),
            Err(cancelled) => Err(TableError::from(cancelled).into()),
        }
    }

    /// A new contact with the number.
    fn contact(&self, id: ContactId) -> Contact {
        Contact { phone_number: Some(self.from.clone()), ..Contact::unknown(id, self.org, self.now) }
    }

    /// Remembers the answer, unless one is remembered for the same identifier.
    fn claim(&self, table: &Table, received: &ReceivedMessage) -> Result<Write, TableError> {
        let mut item = table.item((self.widget, self.external), received)?;
        item.insert(TTL.to_owned(), number(self.now.plus_seconds(REMEMBERED).unix_seconds()));
        Ok(Write::put(item).when(Condition::absent_or_expired(self.now)))
    }

    /// Points to the conversation that is opened, unless another message has opened one since the pointer was read.
    fn point(&self, table: &Table, known: &KnownContact, conversation: ConversationId) -> Write {
        let mut item = opened(&table.tenant, self.widget, known.contact).attributes();
        item.insert("id".to_owned(), text(conversation));
        item.insert(TTL.to_owned(), number(self.now.plus_seconds(OPENED).unix_seconds()));
        Write::put(item).when(match known.opened {
            Some(was) => Condition::of("id = :was", [(":was", text(was))]),
            None => Condition::absent(),
        })
    }

    fn is_expired(&self, first: &Item) -> bool {
        let end = first.get(TTL).and_then(|ttl| ttl.as_n().ok()?.parse::<i64>().ok());
        end.is_some_and(|end| end <= self.now.unix_seconds())
    }

    /// The remembered answer, as this request answers it. The message is new if an earlier execution of this request has
    /// added it.
    fn answer(&self, first: Item) -> Result<ReceivedMessage, TableError> {
        let first: ReceivedMessage = from_item(first)?;
        let own = with_ordinal(self.message_id.0, ordinal(first.message_id.0));
        Ok(ReceivedMessage { is_new: first.message_id.0 == own, ..first })
    }
}

/// Reserves the place of a conversation, and that of a contact if it `is_new`. The assistant must exist.
async fn reserve(
    table: &Table,
    assistant: AssistantId,
    is_new: bool,
) -> Result<(ConversationSettings, Reservation, Option<Reservation>)> {
    let contact = async { if is_new { table.reserve::<Contact>((), 1).await.map(Some) } else { Ok(None) } };
    let (assistant, conversation, contact) =
        futures_util::join!(table.find::<Assistant>(assistant), table.reserve::<Conversation>((), 1), contact);
    let (settings, mut refused): (_, Option<Error>) = match assistant {
        Ok(Some(assistant)) => (assistant.conversation, None),
        Ok(None) => (ConversationSettings::default(), Some(Widget::has_no_assistant())),
        Err(error) => (ConversationSettings::default(), Some(error.into())),
    };
    let [conversation, contact] = [conversation.map(Some), contact].map(|place| {
        place.unwrap_or_else(|error| {
            refused = Some(error.into());
            None
        })
    });
    match (refused, conversation) {
        (None, Some(conversation)) => Ok((settings, conversation, contact)),
        (refused, conversation) => {
            table.give_back([conversation, contact].into_iter().flatten()).await;
            Err(refused.unwrap_or_else(Widget::has_no_assistant))
        }
    }
}
