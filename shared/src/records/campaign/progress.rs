//! The states of a campaign's contacts: each change of one is a transaction that also counts what became of it.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use super::storage::{SENT, failed_in, outcomes};
use super::{Campaign, CampaignContact, CampaignStatus, ContactStatus, SaidAt};
use crate::records::campaign::storage::AS_READ;
use crate::records::campaign::storage::as_read;
use crate::records::conversation::{Conversation, NewMessage};
use crate::records::delivery::{Delivery, DeliveryState, NewDelivery};
use crate::table::error::Cancelled;
use crate::table::item::{hide, null, number, text, values};
use crate::table::reservation::Reservation;
use crate::table::transaction::{Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignContactId, CampaignId, EndpointId, MessageId};
use crate::values::time::Timestamp;

/// Items that count what became of a campaign's contacts: as many deliveries may end at the same time without meeting.
const SHARDS: u32 = 32;
/// Deliveries of a removed widget that are ended at the same time.
const ENDED_TOGETHER: usize = 32;
/// Contacts that one transaction dispatches where each also gets a delivery: six of its hundred actions.
const TOGETHER: u32 = 16;
/// Contacts that one transaction dispatches where none gets a delivery: four actions each, and two for all of them.
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

/// A contact has its conversation, and is in the round of its campaign.
const DISPATCHED: &str = "SET conversation_id = :conversation, #status = :status, #error = :none, updated_at = :now, \
    #round = :round, delivery_id = :delivery, endpoint_id = :endpoint, said = :said";

/// A contact has failed without a conversation, in the round of its campaign.
const FAILED: &str = "SET conversation_id = :none, #status = :failed, #error = :error, updated_at = :now, #round = :round, \
    said = :said";

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

/// The step that removes the deliveries of a removed widget's connector. The contacts of those that it has not got yet fail first, and say why.
pub fn remove_deliveries(table: &Table, widget: Uuid, now: Timestamp) -> BoxFuture<'_, Result<bool, TableError>> {
    let endpoint = EndpointId(widget);
    Box::pin(async move {
        let rows = table.first_rows::<Delivery>(endpoint).await?;
        let deliveries = rows.records::<Delivery>();
        let open = deliveries.iter().filter(|was| matches!(was.state, DeliveryState::Ready | DeliveryState::Waiting));
        let ends: Vec<_> = open
            .filter_map(|was| Some((was, was.campaign_contact_id?)))
            .map(|(was, contact)| async move {
                let is = was.clone().dead("the widget is gone", now);
                table.settle_delivery(endpoint, was, &is, contact, ContactStatus::Failed, now).await
            })
            .collect();
        let ended: Vec<bool> = stream::iter(ends).buffer_unordered(ENDED_TOGETHER).try_collect().await?;
        // What has changed since it was read is for the next step.
        Ok(ended.into_iter().all(|ended| ended) && table.remove_first(rows).await?)
    })
}

impl Table {
    /// The action that counts contacts, of which this is the first, as sent or as failed in a round; with a negative number they no longer are.
    /// A contact that fails in a round has failed in all rounds before, which no longer count.
    pub(super) fn tally(
        &self,
        first: CampaignContactId,
        (status, round): (ContactStatus, u32),
        by: i64,
    ) -> Option<Write> {
        let expression = match (status, round) {
            (ContactStatus::Sent, _) => format!("ADD {SENT} :count"),
            (ContactStatus::Failed, 0) => format!("ADD {} :count", failed_in(0)),
            (ContactStatus::Failed, _) => format!("ADD {} :count REMOVE {}", failed_in(round), failed_in(round - 1)),
            (ContactStatus::Queued | ContactStatus::Cancelled, _) => return None,
        };
        Some(Write::Update {
            key: outcomes(&self.tenant, first.run(), first.place().unwrap_or_default() / TOGETHER % SHARDS),
            expression: expression.into(),
            condition: None,
            values: values([(":count", number(by))]),
        })
    }

    /// Requires that a campaign is being sent, with the text that was read: it is neither cancelled nor paused.
    fn under_way(&self, campaign: &Campaign) -> Write {
        Write::Check {
            key: self.key::<Campaign>(campaign.id),
            condition: "#status IN (:queued, :in_progress) \
                AND (attribute_not_exists(text_version) OR text_version = :text_version)",
            values: values([
                (":text_version", number(campaign.text_version)),
                (":queued", text(CampaignStatus::Queued.as_str())),
                (":in_progress", text(CampaignStatus::InProgress.as_str())),
            ]),
        }
    }

    /// Reserves the ordinals of the rows that contacts get.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn places_for(&self, dispatches: &[Dispatch]) -> Result<Places, TableError> {
        let count =
            |wanted: fn(&Dispatch) -> bool| dispatches.iter().filter(|dispatch| wanted(dispatch)).count() as u64;
        let endpoint =
            dispatches.iter().find_map(|dispatch| dispatch.connector.as_ref()).map(|(endpoint, _)| *endpoint);
        let (openings, deliveries) =
            (count(|dispatch| dispatch.thread.is_none()), count(|dispatch| dispatch.connector.is_some()));
        let opens =
            async { if openings == 0 { Ok(None) } else { self.reserve::<Conversation>((), openings).await.map(Some) } };
        let delivers = async {
            let Some(endpoint) = endpoint else { return Ok(None) };
            self.reserve::<Delivery>(endpoint, deliveries).await.map(Some)
        };
        match futures_util::join!(opens, delivers) {
            (Ok(conversations), Ok(deliveries)) => Ok(Places { conversations, deliveries }),
            (Err(error), other) | (other, Err(error)) => {
                self.give_back(other.ok().flatten()).await;
                Err(error)
            }
        }
    }

    /// Gives back the ordinals of rows that contacts do not get.
    pub async fn give_places_back(&self, Places { conversations, deliveries }: Places) {
        self.give_back(conversations.into_iter().chain(deliveries)).await;
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
        // What has no delivery is sent by this.
        let sent: Vec<&Dispatch> = dispatches.iter().filter(|dispatch| dispatch.connector.is_none()).collect();
        if let [first, ..] = sent[..] {
            let count = i64::try_from(sent.len()).unwrap_or(i64::MAX);
            transaction.writes.extend(self.tally(first.contact.id, (ContactStatus::Sent, campaign.round), count));
        }
        let counted = transaction.writes.len();
        // The contacts first: of several conditions that fail, theirs are told first.
        let mut said = Vec::with_capacity(dispatches.len());
        for dispatch in dispatches {
            let opening = dispatch.thread.is_none().then(|| dispatch.opening.at(places.next().unwrap_or_default()));
            let spoken = dispatch.thread.clone().or(opening).unwrap_or_else(|| dispatch.opening.clone());
            let status = if dispatch.connector.is_none() { ContactStatus::Sent } else { ContactStatus::Queued };
            let place = delivery_places.next().unwrap_or_default();
            let delivery = dispatch.connector.as_ref().map(|(_, new)| new.id(place));
            let mut values = values([
                (":conversation", text(spoken.id)),
                (":status", text(status.as_str())),
                (":none", null()),
                (":round", number(campaign.round)),
                (":delivery", delivery.map_or_else(null, text)),
                (":endpoint", dispatch.connector.as_ref().map_or_else(null, |(endpoint, _)| text(endpoint))),
                (":now", text(now)),
            ]);
            let before = spoken.chat_count;
            let message = dispatch.message.as_ref().map(|(id, new)| new.message(*id, spoken.id, before, now));
            let mut said_at = dispatch.contact.said_at();
            said_at.extend(message.as_ref().map(|_| SaidAt(spoken.id, Some(before), campaign.text_version)));
            hide(&mut values, ":said", &said_at)?;
            values.extend(as_read(&dispatch.contact));
            transaction.write(Write::Update {
                key: self.key::<CampaignContact>(dispatch.contact.id),
                expression: DISPATCHED.into(),
                condition: Some(AS_READ.into()),
                values,
            });
            said.push((spoken, place, message));
        }
        let contacts = transaction.writes.len();
        for (dispatch, (spoken, place, message)) in dispatches.iter().zip(&said) {
            let text_of = Some(campaign.text_of());
            match (&dispatch.thread, message) {
                (None, message) => transaction.begin(spoken, message.as_ref(), text_of)?,
                (Some(thread), Some(message)) => drop(transaction.say(thread, message, text_of)?),
                (Some(_), None) => {}
            }
            if let Some((endpoint, new)) = &dispatch.connector {
                let message_id = message.as_ref().map(|message| message.id);
                let new = NewDelivery { conversation_id: Some(spoken.id), message_id, ..new.clone() };
                transaction.deliver(*endpoint, *place, new, now)?;
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

    /// Notes that a contact has failed without a delivery, unless it has changed since it was read.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn fail_contact(
        &self,
        campaign: &Campaign,
        contact: &CampaignContact,
        error: &str,
        now: Timestamp,
    ) -> Result<(), TableError> {
        let mut values = values([
            (":failed", text(ContactStatus::Failed.as_str())),
            (":error", text(error)),
            (":none", null()),
            (":round", number(campaign.round)),
            (":now", text(now)),
        ]);
        hide(&mut values, ":said", &contact.said_at())?;
        values.extend(as_read(contact));
        let failed = Write::Update {
            key: self.key::<CampaignContact>(contact.id),
            expression: FAILED.into(),
            condition: Some(AS_READ.into()),
            values,
        };
        let mut writes = vec![failed, self.under_way(campaign)];
        writes.extend(self.tally(contact.id, (ContactStatus::Failed, campaign.round), 1));
        match self.store.transact(&writes).await {
            // Deleted, or the campaign is stopped, since it was read.
            Ok(()) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Replaces a campaign's delivery, unless it has changed since it was read, and sets the status of its contact. A message that was sent
    /// counts as sent, also where the campaign was stopped meanwhile. Returns whether the delivery was replaced.
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
        let outcome = Write::Update {
            key: self.key::<CampaignContact>(contact),
            expression: "SET #status = :status, #error = :error, updated_at = :now".into(),
            condition: Some("#status = :queued AND (attribute_not_exists(#round) OR #round = :round)".into()),
            values: values([
                (":status", text(to.as_str())),
                (":queued", text(ContactStatus::Queued.as_str())),
                (":error", is.failure().map_or_else(null, text)),
                (":round", number(was.round)),
                (":now", text(now)),
            ]),
        };
        let mut writes = vec![self.replacing_delivery(endpoint, was, is)?, outcome];
        writes.extend(self.tally(contact, (to, was.round), 1));
        match self.store.transact(&writes).await {
            Ok(()) => Ok(true),
            Err(Cancelled::Condition(0, _)) => Ok(false),
            // The contact is deleted, or has its final status already.
            Err(Cancelled::Condition(..)) => self.replace_delivery(endpoint, was, is).await,
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Parks a delivery while its campaign is paused: it is not due, until the dispatch of the resumed campaign comes by its contact. Returns
    /// false where the campaign is paused no more, or the delivery has changed since it was read.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn park_delivery(
        &self,
        endpoint: EndpointId,
        was: &Delivery,
        campaign: CampaignId,
        now: Timestamp,
    ) -> Result<bool, TableError> {
        let is_paused = Write::Check {
            key: self.key::<Campaign>(campaign),
            condition: "#status = :paused",
            values: values([(":paused", text(CampaignStatus::Paused.as_str()))]),
        };
        let parked = self.replacing_delivery(endpoint, was, &was.clone().parked(now))?;
        match self.store.transact(&[parked, is_paused]).await {
            Ok(()) => Ok(true),
            Err(Cancelled::Condition(..)) => Ok(false),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Makes the delivery of a dispatched contact ready, where it was parked.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn unpark_delivery(
        &self,
        campaign: &Campaign,
        contact: &CampaignContact,
        now: Timestamp,
    ) -> Result<(), TableError> {
        // What was dispatched before the connector was stored has that of the campaign, whose widget could not be changed then.
        let endpoint = contact.endpoint_id.or(campaign.widget_id.map(EndpointId::from));
        let Some((id, endpoint)) = contact.delivery_id.zip(endpoint) else { return Ok(()) };
        let parked = self.find::<Delivery>((endpoint, id)).await?.filter(Delivery::is_parked);
        if let Some(was) = parked {
            // Where it has changed, another process has done this.
            self.replace_delivery(endpoint, &was, &was.clone().ready(now)).await?;
        }
        Ok(())
    }
}
