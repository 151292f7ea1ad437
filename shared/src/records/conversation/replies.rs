//! Answers to a person whose messages a connector brings in. They leave through the connector: the transaction that adds
//! the message also makes the delivery.

use crate::records::contact_point::PhoneNumber;
use crate::records::conversation::{Conversation, Message, MessageType, Requested, SenderType};
use crate::records::delivery::{Delivery, NewDelivery};
use crate::records::event::EventId;
use crate::records::widget::Widget;
use crate::table::reservation::Reservation;
use crate::table::sends::Sends;
use crate::table::transaction::Transaction;
use crate::table::{Table, TableError};
use crate::values::id::{ContactId, EndpointId, WidgetId};

/// An answer that leaves, with everything that was reserved for it.
pub(super) struct PreparedReply {
    endpoint: EndpointId,
    place: Reservation,
    delivery: NewDelivery,
    sends: Sends,
}

/// Prepares that `message` leaves to the person in `conversation`; `None` if it stays.
///
/// # Errors
/// [`TableError::QuotaReached`] where the organisation has sent as much today as it may.
pub(super) async fn reply(
    table: &Table,
    conversation: &Conversation,
    message: &Message,
) -> Result<Option<PreparedReply>, TableError> {
    let Some((widget, contact, to)) = address(conversation, message) else { return Ok(None) };
    // The widget may have lost its connector. The message is stored all the same.
    if !table.find::<Widget>(widget).await?.is_some_and(|widget| widget.delivers_messages()) {
        return Ok(None);
    }
    let (endpoint, event_id, now) = (widget.into(), EventId(message.id.0), message.created_at);
    let sends = table.allow_sends(1, event_id.0, now).await?;
    let requested =
        Requested { conversation_id: conversation.id, contact_id: contact, message_id: Some(message.id), event_id };
    let delivery = NewDelivery::requested(&requested, to.clone(), now);
    let place = table.reserve::<Delivery>(endpoint, 1).await?;
    Ok(Some(PreparedReply { endpoint, place, delivery, sends }))
}

/// Where `message` goes: it leaves if the assistant or a person of the organisation writes to somebody whose messages
/// came in by the connector.
fn address<'a>(conversation: &'a Conversation, message: &Message) -> Option<(WidgetId, ContactId, &'a PhoneNumber)> {
    let is_answer = matches!(message.sender_type, SenderType::Bot | SenderType::Agent);
    // A voice message has been heard already, and no connector can send an empty text.
    let is_sent = is_answer && message.message_type == MessageType::Text && !message.text.is_empty();
    let to = conversation.reply_to.as_ref().filter(|_| is_sent)?;
    Some((conversation.widget_id?, conversation.contact_id?, to))
}

impl<M> Transaction<'_, M> {
    /// Adds the delivery of an answer, whose message is added by the same transaction. So it needs no marker of its own.
    /// Returns the place that was reserved for it.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub(super) fn reply(&mut self, reply: PreparedReply) -> Result<Reservation, TableError> {
        let PreparedReply { endpoint, place, delivery, sends } = reply;
        let (id, now) = (delivery.id(place.first()), delivery.at);
        self.insert((endpoint, id), &Delivery::new(id, delivery, now))?;
        self.send(sends);
        Ok(place)
    }
}
