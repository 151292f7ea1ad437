//! The states of a campaign's contacts. The transaction that changes a contact also updates the counts.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use super::counts::Tally;
use super::storage::as_read;
use super::{Campaign, CampaignContact, CampaignStatus, ContactStatus, MessagePosition};
use crate::records::conversation::{Conversation, Message, NewMessage};
use crate::records::delivery::{Delivery, DeliveryOutcome, DeliveryState, NewDelivery};
use crate::table::cascade;
use crate::table::error::{Cancelled, was_done};
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{attribute, null, number, text};
use crate::table::reservation::Reservation;
use crate::table::transaction::{Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignContactId, CampaignId, EndpointId, MessageId};
use crate::values::time::Timestamp;

/// Deliveries of a removed widget that are ended at the same time.
const ENDED_TOGETHER: usize = 32;
/// Contacts that one transaction dispatches where each also gets a delivery: six of its hundred actions, and two for all
/// of them.
pub(super) const TOGETHER: u32 = 16;
/// Contacts that one transaction dispatches where none gets a delivery: four actions each, and three for all of them.
const WITHOUT_DELIVERY: u32 = 24;

/// The most contacts that are dispatched together, with or without a delivery to a connector.
pub const fn together(connector: bool) -> u32 {
    if connector { TOGETHER } else { WITHOUT_DELIVERY }
}

/// The dispatch of one contact of a campaign.
#[derive(Debug)]
pub struct Dispatch {
    /// The contact.
    pub contact: CampaignContact,
    /// The open conversation to continue; `None` where a new one begins.
    pub thread: Option<Conversation>,
    /// The new conversation, without its ordinal.
    pub opening: Conversation,
    /// The message in it.
    pub message: Option<(MessageId, NewMessage)>,
    /// The connector that gets the delivery, if the widget has one.
    pub connector: Option<(EndpointId, NewDelivery)>,
}

/// The ordinals reserved for the rows of the dispatch.
#[derive(Debug)]
pub struct Places {
    conversations: Option<Reservation>,
    deliveries: Option<Reservation>,
}

impl Places {
    /// Returns the ordinals of rows that were not written.
    pub async fn give_back(self, table: &Table) {
        table.give_back(self.conversations.into_iter().chain(self.deliveries)).await;
    }
}

/// The result of the dispatch of contacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// Each has its conversation.
    Done,
    /// One was deleted or cancelled, or was dispatched before.
    Stopped,
    /// A conversation to continue has changed since it was read.
    ConversationChanged,
}

/// The step that removes the deliveries of a removed widget's connector. Contacts whose delivery has not arrived are
/// first set to failed, with the reason.
pub fn remove_deliveries(table: &Table, widget: Uuid, now: Timestamp) -> BoxFuture<'_, Result<bool, TableError>> {
    let endpoint = EndpointId(widget);
    Box::pin(async move {
        let rows = cascade::first_rows::<Delivery>(table, endpoint).await?;
        let deliveries = rows.records::<Delivery>();
        let open = deliveries.iter().filter(|was| matches!(was.state, DeliveryState::Ready | DeliveryState::Waiting));
        let ends: Vec<_> = open
            .filter_map(|was| Some((was, was.campaign_contact_id?)))
            .map(|(was, contact)| async move {
                let is = was.clone().decide(DeliveryOutcome::GivenUp { reason: "the widget is gone".to_owned() }, now);
                settle_delivery(table, endpoint, (was, is), (contact, ContactStatus::Failed), now).await
            })
            .collect();
        let ended: Vec<bool> = stream::iter(ends).buffer_unordered(ENDED_TOGETHER).try_collect().await?;
        // The next step handles deliveries that have changed since they were read.
        Ok(ended.into_iter().all(|ended| ended) && cascade::remove_first(table, rows).await?)
    })
}

/// The condition that a campaign is being sent with the text that was read: it is neither cancelled nor paused.
fn under_way(table: &Table, campaign: &Campaign) -> Write {
    let is_sent = "#status IN (:queued, :in_progress) \
        AND (attribute_not_exists(text_version) OR text_version = :text_version)";
    let values = [
        (":text_version", number(campaign.text_version)),
        (":queued", text(CampaignStatus::Queued.as_str())),
        (":in_progress", text(CampaignStatus::InProgress.as_str())),
    ];
    Write::check(table.key::<Campaign>(campaign.id), Condition::of(is_sent, values))
}

/// The change of a contact that gets a status, with the reason where it failed.
fn contact_in(status: ContactStatus, error: Option<String>, now: Timestamp) -> UpdateExpression {
    let error = error.map_or_else(null, text);
    let version = UpdateExpression::new().add("version", number(1));
    version.set("status", text(status.as_str())).set("error", error).set("updated_at", text(now))
}

/// Reserves ordinals for the rows of the dispatch.
///
/// # Errors
/// [`TableError`].
pub async fn places_for(table: &Table, dispatches: &[Dispatch]) -> Result<Places, TableError> {
    let count = |wanted: fn(&Dispatch) -> bool| dispatches.iter().filter(|dispatch| wanted(dispatch)).count() as u64;
    let endpoint = dispatches.iter().find_map(|dispatch| dispatch.connector.as_ref()).map(|(endpoint, _)| *endpoint);
    let (openings, deliveries) =
        (count(|dispatch| dispatch.thread.is_none()), count(|dispatch| dispatch.connector.is_some()));
    let opens =
        async { if openings == 0 { Ok(None) } else { table.reserve::<Conversation>((), openings).await.map(Some) } };
    let delivers = async {
        let Some(endpoint) = endpoint else { return Ok(None) };
        table.reserve::<Delivery>(endpoint, deliveries).await.map(Some)
    };
    match futures_util::join!(opens, delivers) {
        (Ok(conversations), Ok(deliveries)) => Ok(Places { conversations, deliveries }),
        (Err(error), other) | (other, Err(error)) => {
            table.give_back(other.ok().flatten()).await;
            Err(error)
        }
    }
}

/// Dispatches queued contacts, at most as many as [`together`] allows. One transaction writes their conversations,
/// messages and deliveries, and counts the sends.
///
/// # Errors
/// [`TableError`]; [`TableError::QuotaReached`] where the organisation may not send so many more today.
pub async fn dispatch_together(
    table: &Table,
    campaign: &Campaign,
    dispatches: &[Dispatch],
    places: Places,
    now: Timestamp,
) -> Result<Dispatched, TableError> {
    // Read before the transaction, which counts them.
    let first = dispatches.first().map(|dispatch| dispatch.contact.id.0).unwrap_or_default();
    let sends = match table.allow_sends(dispatches.len() as u64, first, now).await {
        Ok(sends) => sends,
        Err(error) => {
            places.give_back(table).await;
            return Err(error);
        }
    };
    let Places { conversations, deliveries } = places;
    let mut transaction = Transaction::new(table).otherwise(Dispatched::ConversationChanged);
    transaction.write(under_way(table, campaign)).or(Dispatched::Stopped);
    // The message to a contact without a delivery is stored with this dispatch.
    let mut stored = dispatches.iter().filter(|dispatch| dispatch.connector.is_none());
    if let Some(first) = stored.next() {
        let count = i64::try_from(stored.count() + 1).unwrap_or(i64::MAX);
        let tally = Tally::default().status((ContactStatus::Stored, campaign.round), count);
        transaction.write_all(tally.write(table, first.contact.id));
    }
    let messages = contact_messages(dispatches, (conversations.as_ref(), deliveries.as_ref()), now);
    // The contacts come first: if several conditions fail, the one of a contact is reported first.
    for (dispatch, contact_message) in dispatches.iter().zip(&messages) {
        transaction.write(dispatched(table, campaign, dispatch, contact_message, now)?).or(Dispatched::Stopped);
    }
    for (dispatch, contact_message) in dispatches.iter().zip(messages) {
        write_message(&mut transaction, campaign, dispatch, contact_message, now)?;
    }
    transaction.send(sends);
    match transaction.commit_reserved(conversations.into_iter().chain(deliveries)).await {
        Ok(()) => Ok(Dispatched::Done),
        Err(Cancelled::Condition(ended, _)) => Ok(ended),
        Err(cancelled) => Err(cancelled.into()),
    }
}

/// The conversation and the message of a contact.
struct ContactMessage {
    conversation: Conversation,
    message: Option<Message>,
    /// The ordinal of its delivery.
    place: u64,
}

/// The conversation and the message of each contact, at the reserved places.
fn contact_messages(
    dispatches: &[Dispatch],
    (conversations, deliveries): (Option<&Reservation>, Option<&Reservation>),
    now: Timestamp,
) -> Vec<ContactMessage> {
    let mut places = conversations.into_iter().flat_map(Reservation::ordinals);
    let mut delivery_places = deliveries.into_iter().flat_map(Reservation::ordinals);
    let one = |dispatch: &Dispatch| {
        let opening = || dispatch.opening.at(places.next().unwrap_or_default());
        let conversation = dispatch.thread.clone().unwrap_or_else(opening);
        let message = dispatch.message.as_ref();
        let message = message.map(|(id, new)| new.message(*id, conversation.id, conversation.chat_count, now));
        ContactMessage { conversation, message, place: delivery_places.next().unwrap_or_default() }
    };
    dispatches.iter().map(one).collect()
}

/// Stores in a contact where its message is, on condition that the contact has not changed since it was read.
fn dispatched(
    table: &Table,
    campaign: &Campaign,
    dispatch: &Dispatch,
    contact_message: &ContactMessage,
    now: Timestamp,
) -> Result<Write, TableError> {
    let status = if dispatch.connector.is_none() { ContactStatus::Stored } else { ContactStatus::Queued };
    let delivery = dispatch.connector.as_ref().map(|(_, new)| new.id(contact_message.place));
    let mut positions = dispatch.contact.message_positions();
    let Conversation { id, chat_count, .. } = contact_message.conversation;
    positions
        .extend(contact_message.message.as_ref().map(|_| MessagePosition(id, Some(chat_count), campaign.text_version)));
    let dispatched = contact_in(status, None, now)
        .set("conversation_id", text(contact_message.conversation.id))
        .set("round", number(campaign.round))
        .set("delivery_id", delivery.map_or_else(null, text))
        .set("endpoint_id", dispatch.connector.as_ref().map_or_else(null, |(endpoint, _)| text(endpoint)))
        .set("said", attribute(&positions)?);
    let before = dispatch.contact.times_dispatched();
    let dispatched = if before == 0 {
        dispatched
    } else {
        // The first attempt follows from the conversation: most contacts have no other one.
        let again = dispatched.set("attempts", number(before + 1)).set("sent_at", text(now));
        again.set("next_attempt_at", null())
    };
    let key = table.key::<CampaignContact>(dispatch.contact.id);
    Ok(Write::update(key, dispatched).when(as_read(&dispatch.contact)))
}

/// Adds the conversation, the message and the delivery of a contact.
fn write_message(
    transaction: &mut Transaction<'_, Dispatched>,
    campaign: &Campaign,
    dispatch: &Dispatch,
    ContactMessage { conversation, message, place }: ContactMessage,
    now: Timestamp,
) -> Result<(), TableError> {
    let text_of = Some(campaign.text_of());
    match (&dispatch.thread, &message) {
        (None, message) => transaction.begin(&conversation, message.as_ref(), text_of)?,
        (Some(thread), Some(message)) => transaction.say(thread, message, text_of)?,
        (Some(_), None) => {}
    }
    if let Some((endpoint, new)) = &dispatch.connector {
        let message_id = message.map(|message| message.id);
        let new = NewDelivery { conversation_id: Some(conversation.id), message_id, ..new.clone() };
        transaction.deliver(*endpoint, place, new, Dispatched::ConversationChanged, now)?;
    }
    Ok(())
}

/// Stores that a contact has failed without a delivery, unless it has changed since it was read.
///
/// # Errors
/// [`TableError`].
pub async fn fail_contact(
    table: &Table,
    campaign: &Campaign,
    contact: &CampaignContact,
    error: &str,
    now: Timestamp,
) -> Result<(), TableError> {
    let failed = contact_in(ContactStatus::Failed, Some(error.to_owned()), now)
        .set("conversation_id", null())
        .set("attempts", number(contact.times_dispatched()))
        .set("next_attempt_at", null())
        .set("round", number(campaign.round))
        .set("said", attribute(&contact.message_positions())?);
    let failed = Write::update(table.key::<CampaignContact>(contact.id), failed).when(as_read(contact));
    let mut writes = vec![failed, under_way(table, campaign)];
    writes.extend(Tally::default().status((ContactStatus::Failed, campaign.round), 1).write(table, contact.id));
    // Or the contact was deleted, or the campaign stopped, since they were read.
    was_done(table.store.transact(&writes).await).map(drop)
}

/// Why a campaign's delivery could not end together with its contact.
enum SettlementRefused {
    /// The delivery has changed since it was read.
    DeliveryChanged,
    /// The contact is deleted, or has its final status already.
    ContactEnded,
}

/// Replaces a campaign's delivery, unless it has changed since it was read, and sets the status of its contact. A
/// message that was sent counts as sent, even if the campaign was stopped in the meantime. Returns whether the delivery
/// was replaced.
///
/// # Errors
/// [`TableError`].
pub async fn settle_delivery(
    table: &Table,
    endpoint: EndpointId,
    (was, is): (&Delivery, Delivery),
    (contact, to): (CampaignContactId, ContactStatus),
    now: Timestamp,
) -> Result<bool, TableError> {
    // The delivery of an earlier attempt ends alone.
    let is_queued = Condition::of(
        "#status = :queued AND (attribute_not_exists(#round) OR #round = :round) \
         AND (attribute_not_exists(delivery_id) OR delivery_id = :delivery)",
        [(":queued", text(ContactStatus::Queued.as_str())), (":round", number(was.round)), (":delivery", text(was.id))],
    );
    let outcome = Write::update(table.key::<CampaignContact>(contact), contact_in(to, is.failure(), now));
    let id = (endpoint, was.id);
    let mut transaction = Transaction::new(table).otherwise(SettlementRefused::DeliveryChanged);
    transaction.replace(id, was, is.clone(), None)?;
    transaction.write(outcome.when(is_queued)).or(SettlementRefused::ContactEnded);
    transaction.write_all(Tally::default().status((to, was.round), 1).write(table, contact));
    match transaction.commit().await {
        Ok(()) => Ok(true),
        Err(Cancelled::Condition(SettlementRefused::DeliveryChanged, _)) => Ok(false),
        Err(Cancelled::Condition(SettlementRefused::ContactEnded, _)) => {
            Ok(table.replace(id, was, is).await?.is_some())
        }
        Err(cancelled) => Err(cancelled.into()),
    }
}

/// Parks a delivery while its campaign is paused: it is not due until the resumed campaign's dispatch reaches its
/// contact. Returns false if the campaign is no longer paused, or the delivery has changed since it was read.
///
/// # Errors
/// [`TableError`].
pub async fn park_delivery(
    table: &Table,
    endpoint: EndpointId,
    was: &Delivery,
    campaign: CampaignId,
    now: Timestamp,
) -> Result<bool, TableError> {
    let mut transaction = Transaction::new(table);
    transaction.replace((endpoint, was.id), was, was.clone().decide(DeliveryOutcome::Paused, now), None)?;
    let is_paused = Condition::of("#status = :paused", [(":paused", text(CampaignStatus::Paused.as_str()))]);
    transaction.write(Write::check(table.key::<Campaign>(campaign), is_paused));
    was_done(transaction.commit().await)
}

/// Makes the delivery of a dispatched contact ready, if it was parked.
///
/// # Errors
/// [`TableError`].
pub async fn unpark_delivery(
    table: &Table,
    campaign: &Campaign,
    contact: &CampaignContact,
    now: Timestamp,
) -> Result<(), TableError> {
    // A contact that was dispatched before contacts stored their connector has the campaign's one: the widget could not
    // be changed then.
    let endpoint = contact.endpoint_id.or(campaign.widget_id.map(EndpointId::from));
    let Some((id, endpoint)) = contact.delivery_id.zip(endpoint) else { return Ok(()) };
    let parked = table.find::<Delivery>((endpoint, id)).await?.filter(Delivery::is_parked);
    if let Some(was) = parked {
        // If the delivery has changed, another process has already done this.
        table.replace((endpoint, id), &was, was.clone().decide(DeliveryOutcome::Resumed, now)).await?;
    }
    Ok(())
}
