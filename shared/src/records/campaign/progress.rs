//! The states of a campaign's contacts: each change of one is a transaction that also counts what became of it.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use super::storage::outcomes;
use super::{Campaign, CampaignContact, CampaignStatus, ContactStatus};
use crate::records::conversation::{Conversation, NewMessage};
use crate::records::delivery::{Delivery, DeliveryState, NewDelivery};
use crate::table::item::{null, number, text, values};
use crate::table::reservation::Reservation;
use crate::table::transaction::{Cancelled, Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignContactId, EndpointId, MessageId};
use crate::values::time::Timestamp;

/// Items that count what became of a campaign's contacts: as many deliveries may end at the same time without meeting.
const SHARDS: u32 = 32;
/// Contacts that one transaction dispatches where each also gets a delivery: six of its hundred actions.
const TOGETHER: u32 = 16;
/// Contacts that one transaction dispatches where none gets a delivery: four actions each, and up to four for all of them.
const WITHOUT_DELIVERY: u32 = 24;

/// How many contacts may be dispatched together, with or without a delivery to a connector.
pub const fn together(connector: bool) -> u32 {
    if connector { TOGETHER } else { WITHOUT_DELIVERY }
}

/// What a contact of a campaign gets.
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

/// The ordinals of the rows that contacts get.
#[derive(Debug)]
pub struct Places {
    conversations: Option<Reservation>,
    deliveries: Option<Reservation>,
}

/// How the dispatch of contacts ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// Each has its conversation.
    Done,
    /// One was deleted or cancelled, or was dispatched before.
    Stopped,
    /// A conversation to continue has changed since it was read.
    ThreadMoved,
}

/// The step that ends what a removed widget's connector has not got yet: the contacts fail, and say why.
pub fn fail_deliveries(table: &Table, widget: Uuid, now: Timestamp) -> BoxFuture<'_, Result<bool, TableError>> {
    let endpoint = EndpointId(widget);
    Box::pin(async move {
        let (deliveries, more) = table.some_rows::<Delivery>(endpoint).await?;
        let open = deliveries.iter().filter(|was| matches!(was.state, DeliveryState::Ready | DeliveryState::Waiting));
        let ends: Vec<_> = open
            .filter_map(|was| Some((was, was.campaign_contact_id?)))
            .map(|(was, contact)| async move {
                let is = was.clone().dead("the widget is gone", now);
                table.settle_delivery(endpoint, was, &is, contact, ContactStatus::Failed, now).await
            })
            .collect();
        let ended: Vec<bool> = stream::iter(ends).buffer_unordered(SHARDS as usize).try_collect().await?;
        Ok(!more && ended.into_iter().all(|ended| ended))
    })
}

impl Table {
    /// The actions that count contacts which became `status`, or, with `-1`, no longer are.
    pub(super) fn tally(
        &self,
        contacts: impl IntoIterator<Item = CampaignContactId>,
        status: ContactStatus,
        sign: i64,
    ) -> Vec<Write> {
        let mut shards: BTreeMap<_, i64> = BTreeMap::new();
        if matches!(status, ContactStatus::Sent | ContactStatus::Failed) {
            for id in contacts {
                // Contacts that are dispatched together share a shard.
                let shard = id.place().unwrap_or_default() / TOGETHER % SHARDS;
                *shards.entry((id.run(), shard)).or_default() += sign;
            }
        }
        let count = |((run, shard), count)| Write::Update {
            key: outcomes(&self.tenant, run, shard),
            expression: format!("ADD {} :count", status.as_str()).into(),
            condition: None,
            values: values([(":count", number(count))]),
        };
        shards.into_iter().map(count).collect()
    }

    /// Requires that a campaign is not cancelled.
    fn under_way(&self, campaign: &Campaign) -> Write {
        Write::Check {
            key: self.key::<Campaign>(campaign.id),
            condition: "#status <> :cancelled",
            values: values([(":cancelled", text(CampaignStatus::Cancelled.as_str()))]),
        }
    }

    /// Reserves the ordinals of the rows that contacts get.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn places_for(&self, dispatches: &[Dispatch]) -> Result<Places, TableError> {
        let count = |wanted: fn(&Dispatch) -> bool| {
            u32::try_from(dispatches.iter().filter(|dispatch| wanted(dispatch)).count()).unwrap_or(u32::MAX)
        };
        let endpoint = dispatches.iter().find_map(|dispatch| dispatch.connector).map(|(endpoint, _)| endpoint);
        let (openings, deliveries) =
            (count(|dispatch| dispatch.thread.is_none()), count(|dispatch| dispatch.connector.is_some()));
        let opens = async {
            if openings == 0 { Ok(None) } else { self.reserve::<Conversation>((), openings, None).await.map(Some) }
        };
        let delivers = async {
            let Some(endpoint) = endpoint else { return Ok(None) };
            self.reserve::<Delivery>(endpoint, deliveries, None).await.map(Some)
        };
        let (conversations, deliveries) = futures_util::try_join!(opens, delivers)?;
        Ok(Places { conversations, deliveries })
    }

    /// Dispatches queued contacts, at most as many as [`together`] says: their conversations, their messages and their deliveries, in one transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn dispatch(
        &self,
        campaign: &Campaign,
        dispatches: &[Dispatch],
        places: Places,
        now: Timestamp,
    ) -> Result<Dispatched, TableError> {
        let Places { conversations, deliveries } = places;
        let mut places = conversations.iter().flat_map(Reservation::ordinals);
        let mut delivery_places = deliveries.iter().flat_map(Reservation::ordinals);

        let mut transaction = Transaction::new(self);
        transaction.write(self.under_way(campaign));
        let sent = dispatches.iter().filter(|dispatch| dispatch.connector.is_none());
        for write in self.tally(sent.map(|dispatch| dispatch.contact.id), ContactStatus::Sent, 1) {
            transaction.write(write);
        }
        let counted = transaction.writes.len();
        // The contacts first: of several conditions that fail, theirs are told first.
        let mut said = Vec::with_capacity(dispatches.len());
        for dispatch in dispatches {
            let opening = dispatch.thread.is_none().then(|| dispatch.opening.at(places.next().unwrap_or_default()));
            let spoken = dispatch.thread.clone().or(opening).unwrap_or_else(|| dispatch.opening.clone());
            let status = if dispatch.connector.is_none() { ContactStatus::Sent } else { ContactStatus::Queued };
            transaction.write(Write::Update {
                key: self.key::<CampaignContact>(dispatch.contact.id),
                expression: "SET conversation_id = :conversation, #status = :status, updated_at = :now".into(),
                condition: Some("#status = :queued AND conversation_id = :none".into()),
                values: values([
                    (":conversation", text(spoken.id)),
                    (":status", text(status.as_str())),
                    (":queued", text(ContactStatus::Queued.as_str())),
                    (":none", null()),
                    (":now", text(now)),
                ]),
            });
            said.push(spoken);
        }
        let contacts = transaction.writes.len();
        for (dispatch, spoken) in dispatches.iter().zip(&said) {
            let before = u32::try_from(spoken.chat_count).unwrap_or(u32::MAX);
            let message = dispatch.message.as_ref().map(|(id, new)| new.message(*id, spoken.id, before, now));
            let run = Some(campaign.id.run());
            match (&dispatch.thread, &message) {
                (None, message) => transaction.begin(spoken, message.as_ref(), run)?,
                (Some(thread), Some(message)) => drop(transaction.say(thread, message, run)?),
                (Some(_), None) => {}
            }
            if let Some((endpoint, new)) = dispatch.connector {
                let message_id = message.map(|message| message.id);
                let new = NewDelivery { conversation_id: Some(spoken.id), message_id, ..new };
                transaction.deliver(endpoint, delivery_places.next().unwrap_or_default(), new, now)?;
            }
        }
        drop((places, delivery_places));
        match self.commit(transaction, conversations.into_iter().chain(deliveries)).await {
            Ok(()) => Ok(Dispatched::Done),
            Err(Cancelled::Condition(at, _)) if at == 0 || (counted..contacts).contains(&at) => Ok(Dispatched::Stopped),
            Err(Cancelled::Condition(..)) => Ok(Dispatched::ThreadMoved),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Sets the final status of a queued contact that has no delivery.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn fail_contact(
        &self,
        campaign: &Campaign,
        contact: CampaignContactId,
        error: &str,
        now: Timestamp,
    ) -> Result<(), TableError> {
        let mut writes = vec![self.outcome(contact, ContactStatus::Failed, Some(error), now), self.under_way(campaign)];
        writes.extend(self.tally([contact], ContactStatus::Failed, 1));
        match self.store.transact(&writes).await {
            // Deleted or cancelled since it was read.
            Ok(()) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    fn outcome(&self, id: CampaignContactId, to: ContactStatus, error: Option<&str>, now: Timestamp) -> Write {
        Write::Update {
            key: self.key::<CampaignContact>(id),
            expression: "SET #status = :status, #error = :error, updated_at = :now".into(),
            condition: Some("#status = :queued".into()),
            values: values([
                (":status", text(to.as_str())),
                (":queued", text(ContactStatus::Queued.as_str())),
                (":error", error.map_or_else(null, text)),
                (":now", text(now)),
            ]),
        }
    }

    /// Replaces a campaign's delivery, unless it has changed since it was read, and sets the status of its contact. A message that was sent
    /// counts as sent, also where the campaign was cancelled meanwhile. Returns whether the delivery was replaced.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn settle_delivery(
        &self,
        endpoint: EndpointId,
        was: &Delivery,
        is: &Delivery,
        contact: CampaignContactId,
        to: ContactStatus,
        now: Timestamp,
    ) -> Result<bool, TableError> {
        let mut writes =
            vec![self.replacing_delivery(endpoint, was, is)?, self.outcome(contact, to, is.failure().as_deref(), now)];
        writes.extend(self.tally([contact], to, 1));
        match self.store.transact(&writes).await {
            Ok(()) => Ok(true),
            Err(Cancelled::Condition(0, _)) => Ok(false),
            // The contact is deleted, or has its final status already.
            Err(Cancelled::Condition(..)) => self.replace_delivery(endpoint, was, is).await,
            Err(cancelled) => Err(cancelled.into()),
        }
    }
}
