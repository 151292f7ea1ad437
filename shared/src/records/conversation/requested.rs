//! Single messages and calls to a telephone number, through the connector of a widget. One transaction writes the
//! contact, its conversation, the message, and the delivery.

use super::storage;
use crate::records::delivery;
use uuid::Uuid;

use super::{Conversation, NewMessage, SenderType};
use crate::records::assistant::{Assistant, ConversationSettings};
use crate::records::contact::Contact;
use crate::records::contact_point::PhoneNumber;
use crate::records::delivery::{Delivery, NewDelivery};
use crate::records::event::EventId;
use crate::records::suppression::{self, SuppressedChannel};
use crate::records::widget::Widget;
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::declaration::Declared as _;
use crate::table::error::Cancelled;
use crate::table::filters::Term;
use crate::table::item::target_id;
use crate::table::keys::made_by;
use crate::table::reservation::Reservation;
use crate::table::sends::Sends;
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::table::{Table, TableError};
use crate::values::id::{
    AssistantId, ContactId, ConversationId, EndpointId, MessageId, OrgId, WidgetId, ordinal, with_ordinal,
};
use crate::values::json::JsonObject;
use crate::values::text::SomeText;
use crate::values::time::Timestamp;

crate::input! {
    /// The body of send-message.
    pub struct MessageToNumber {
        /// The telephone number, with its country code.
        pub to: PhoneNumber,
        /// What the message says.
        pub message: SomeText,
    }
}

crate::input! {
    /// The body of start-call.
    pub struct CallToNumber {
        /// The telephone number, with its country code.
        pub to: PhoneNumber,
        /// Free-form: what the connector gets for the assistant's prompt.
        pub prompt_dynamic_variables: JsonObject = JsonObject::default(),
    }
}

crate::object! {
    /// The answer of send-message and start-call.
    pub struct Requested {
        /// The conversation: a message continues an open one, a call begins a new one.
        pub conversation_id: ConversationId,
        /// The contact with this number.
        pub contact_id: ContactId,
        /// The message; null of a call.
        pub message_id: Option<MessageId>,
        /// The event that the connector gets.
        pub event_id: EventId,
    }
}

/// Has the connector of `widget` send a message.
///
/// # Errors
/// [`Error::NotFound`] where there is no such widget, [`Error::Conflict`] where it makes calls, or is not ready to
/// send.
pub async fn send_message(cx: &Context<'_>, widget: WidgetId, new: MessageToNumber) -> Result<Requested> {
    let message = NewMessage::text(SenderType::Bot, new.message.into_text());
    request(&cx.table, widget, &Outbound::new(cx, new.to, Some(message), None)).await
}

/// Has the connector of `widget` make a call.
///
/// # Errors
/// [`Error::NotFound`] where there is no such widget, [`Error::Conflict`] where it sends messages, or is not ready to
/// call.
pub async fn start_call(cx: &Context<'_>, widget: WidgetId, new: CallToNumber) -> Result<Requested> {
    request(&cx.table, widget, &Outbound::new(cx, new.to, None, Some(new.prompt_dynamic_variables))).await
}

/// A message or a call that a caller requests. Its ids are the same in every execution of the request.
struct Outbound {
    to: PhoneNumber,
    /// The message; `None` for a call.
    message: Option<NewMessage>,
    /// The variables for the assistant's prompt; `None` for a message.
    variables: Option<JsonObject>,
    /// The id of the contact, if it creates one.
    contact: Uuid,
    /// The id of the conversation, if it begins one.
    conversation: Uuid,
    message_id: MessageId,
    event: EventId,
    /// Whether the request may be executed more than once.
    is_keyed: bool,
    org: OrgId,
    now: Timestamp,
}

impl Outbound {
    fn new(cx: &Context<'_>, to: PhoneNumber, message: Option<NewMessage>, variables: Option<JsonObject>) -> Self {
        let (event, now): (Uuid, _) = (cx.new_id(), cx.now());
        Self {
            to,
            message,
            variables,
            contact: cx.new_id(),
            conversation: cx.new_id(),
            message_id: cx.new_id(),
            event: EventId(event),
            is_keyed: cx.origin(event).is_some(),
            org: cx.tenant.org(),
            now,
        }
    }

    /// Requires that `widget` is of the right kind.
    fn fits(&self, widget: &Widget) -> Result<()> {
        if self.message.is_some() { widget.require_messages() } else { widget.require_calls() }
    }

    /// A new contact with the number.
    fn contact(&self, id: ContactId) -> Contact {
        Contact { phone_number: Some(self.to.clone()), ..Contact::unknown(id, self.org, self.now) }
    }
}

/// Everything that was read and reserved for the request.
struct Preparation {
    widget: WidgetId,
    assistant: (AssistantId, ConversationSettings),
    /// The contact with the number, if there is one.
    known: Option<ContactId>,
    /// The condition that the number may still be contacted.
    allowed: Write,
    /// The open conversation that a message continues.
    thread: Option<Conversation>,
    contact: Option<Reservation>,
    conversation: Option<Reservation>,
    delivery: Option<Reservation>,
    sends: Sends,
}

/// Executes the request `new`. Retries if others change the contact or its conversation at the same time.
async fn request(table: &Table, widget: WidgetId, new: &Outbound) -> Result<Requested> {
    let mut round = table.store.backoff();
    loop {
        let requested = match Box::pin(prepare(table, widget, new)).await {
            Ok(prepared) => request_prepared(table, prepared, new).await?,
            // An earlier execution of the request may have succeeded before the present reason to refuse it existed.
            Err(refused) if new.is_keyed && refused.status() < 500 => {
                return requested_before(table, widget.into(), new.event).await?.ok_or(refused);
            }
            Err(error) => return Err(error),
        };
        match requested {
            Some(requested) => return Ok(requested),
            None => round.again("the conversation").await?,
        }
    }
}

/// Reads the records, checks that the widget can send, and reserves the places of new rows.
async fn prepare(table: &Table, widget: WidgetId, new: &Outbound) -> Result<Preparation> {
    let unique = new.contact(ContactId(Uuid::nil())).unique();
    let number: Vec<Term> = unique.into_iter().map(|value| value.term).collect();
    let channel = SuppressedChannel::of_send(new.message.is_none());
    // Not `try_join!`: the cost of a request must not depend on which call fails first.
    let (widget, known, allowed) = futures_util::join!(
        table.get::<Widget>(widget),
        table.holders::<Contact>((), &number),
        suppression::require_free(table, &new.to, channel)
    );
    let widget = widget.on_missing("widget_id")?;
    new.fits(&widget)?;
    let assistant_id = widget.require_connector()?;
    let known = known?.first().map(|(_, id)| ContactId(*id));
    let allowed = allowed?;

    let contact = async { if known.is_some() { Ok(None) } else { table.reserve::<Contact>((), 1).await.map(Some) } };
    let conversation = async {
        let thread = match known.zip(new.message.as_ref()) {
            Some((contact, message)) => storage::open_thread(table, widget.id, contact, &message.text).await,
            None => Ok(None),
        };
        match thread {
            Ok(None) => (None, table.reserve::<Conversation>((), 1).await.map(Some)),
            Ok(thread) => (thread, Ok(None)),
            Err(error) => (None, Err(error)),
        }
    };
    let (assistant, contact, (thread, conversation), delivery, sends) = futures_util::join!(
        table.find::<Assistant>(assistant_id),
        contact,
        conversation,
        table.reserve::<Delivery>(widget.id.into(), 1),
        table.allow_sends(1, new.event.0, new.now),
    );
    let settings = assistant.as_ref().ok().and_then(Option::as_ref).map(|assistant| assistant.conversation);
    let mut refused: Option<Error> = match assistant {
        Ok(Some(assistant)) if assistant.webhook_id.is_some() || !widget.secrets.is_empty() => None,
        Ok(Some(_)) => Some(Widget::has_no_webhook()),
        Ok(None) => Some(Widget::has_no_assistant()),
        Err(error) => Some(error.into()),
    };
    let [contact, conversation, delivery] = [contact, conversation, delivery.map(Some)].map(|place| {
        place.unwrap_or_else(|error| {
            refused = Some(error.into());
            None
        })
    });
    match (refused, sends) {
        (None, Ok(sends)) => {
            let (widget, assistant) = (widget.id, (assistant_id, settings.unwrap_or_default()));
            Ok(Preparation { widget, assistant, known, allowed, thread, contact, conversation, delivery, sends })
        }
        (refused, sends) => {
            table.give_back([contact, conversation, delivery].into_iter().flatten()).await;
            let why = refused.or_else(|| sends.err().map(Error::from));
            Err(why.unwrap_or_else(|| Error::Internal("a request was refused without a reason".into())))
        }
    }
}

/// Writes everything for the request `new`; `None` if the records have changed since they were read.
async fn request_prepared(
    table: &Table,
    prepared: Preparation,
    new: &Outbound,
) -> Result<Option<Requested>, TableError> {
    let (endpoint, now) = (prepared.widget.into(), new.now);
    let first = |place: &Option<Reservation>| place.as_ref().map_or(0, Reservation::first);
    let contact = prepared.known.unwrap_or_else(|| ContactId(with_ordinal(new.contact, first(&prepared.contact))));
    let begun = || Conversation {
        prompt_dynamic_variables: new.variables.clone(),
        includes_voice: new.message.is_none(),
        ..Conversation::through(prepared.widget, prepared.assistant, contact, new.conversation, now)
    };
    let conversation = prepared.thread.clone().unwrap_or_else(|| begun().at(first(&prepared.conversation)));
    let before = conversation.chat_count;
    let message = new.message.as_ref().map(|said| said.message(new.message_id, conversation.id, before, now));
    let requested = Requested {
        conversation_id: conversation.id,
        contact_id: contact,
        message_id: message.as_ref().map(|message| message.id),
        event_id: new.event,
    };

    let mut transaction = Transaction::of_request(table);
    // The execution that made the delivery has made the rest too.
    let delivery = NewDelivery::requested(&requested, new.to.clone(), now);
    transaction.deliver(endpoint, first(&prepared.delivery), delivery, Unmet::Repeated, now)?;
    transaction.write(prepared.allowed);
    if prepared.known.is_none() {
        transaction.insert(contact, &new.contact(contact))?;
    }
    match prepared.thread.as_ref().zip(message.as_ref()) {
        Some((thread, message)) => transaction.say(thread, message, None)?,
        None => transaction.begin(&conversation, message.as_ref(), None)?,
    }
    transaction.send(prepared.sends);
    let reserved = [prepared.delivery, prepared.contact, prepared.conversation];
    match transaction.commit_reserved(reserved.into_iter().flatten()).await {
        Ok(()) => Ok(Some(requested)),
        Err(Cancelled::Condition(Unmet::Repeated, _)) => requested_before(table, endpoint, new.event).await,
        // In the meantime, another writer has created a contact with the number, suppressed it, or changed the conversation.
        Err(Cancelled::Condition(..) | Cancelled::Failed(TableError::Taken { .. })) => Ok(None),
        Err(cancelled) => Err(cancelled.into()),
    }
}

/// The result of an earlier execution of the same request.
async fn requested_before(
    table: &Table,
    endpoint: EndpointId,
    event: EventId,
) -> Result<Option<Requested>, TableError> {
    let Some(marker) = table.store.get(&made_by(&table.tenant, event.0)).await? else { return Ok(None) };
    let delivery = delivery::at(table, endpoint, ordinal(target_id(&marker)?)).await?;
    let requested = |delivery: Delivery| {
        let (conversation_id, contact_id) = delivery.conversation_id.zip(delivery.contact_id)?;
        Some(Requested { conversation_id, contact_id, message_id: delivery.message_id, event_id: event })
    };
    Ok(delivery.filter(|delivery| delivery.event_id == event).and_then(requested))
}
