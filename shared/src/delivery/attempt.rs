//! One attempt to send a delivery: makes the body, sends it, and saves the result.

use std::time::Duration;

use tokio::sync::SemaphorePermit;

use crate::delivery::event::{CampaignData, ConversationData, Event, EventData, RequestedData, TestData};
use crate::delivery::sender::OUT_OF_RESOURCES;
use crate::delivery::signature;
use crate::records::campaign::{Campaign, CampaignContact, CampaignStatus, CampaignText, ContactStatus, TextOf};
use crate::records::contact::Contact;
use crate::records::conversation::{Conversation, Message};
use crate::records::delivery::{Attempt, Delivery, DeliveryState, EventKind, SentBy};
use crate::request::error::{Error, Result};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignId, WebhookId, WidgetId};
use crate::values::time::Timestamp;

use crate::delivery::endpoint::{Endpoint, Target};
use crate::delivery::outbox::Outbox;

/// An answer is slow when it takes this part of the time limit of an attempt, or more: a fifth.
const SLOW: u32 = 5;

/// How a try of a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// The delivery has arrived.
    Arrived,
    /// It has not.
    InVain,
    /// Nothing was sent: its campaign is paused.
    Parked,
}

/// Why a delivery is given up without an attempt.
enum GivenUp {
    /// It cannot be sent.
    Failed(&'static str),
    /// It is no longer to be sent.
    Stopped(&'static str),
    /// Its campaign is paused.
    Paused(CampaignId),
    /// The window of its campaign opens at this time.
    Closed(Timestamp),
    /// This process has no room for its body now.
    Postponed,
}

/// How long a delivery waits for its share of what the process has: the stream has others behind it, the tick works for a while.
const fn patience(was: &Delivery) -> Duration {
    Duration::from_secs(if matches!(was.state, DeliveryState::Ready) { 2 } else { 30 })
}

impl Outbox<'_> {
    /// Defers a delivery: the tick will send it.
    pub async fn defer(&self, endpoint: &Endpoint, was: &Delivery) -> Result<()> {
        let now = self.now();
        endpoint.note_deferral(now);
        // First the health, by which the tick finds the endpoint: without it the delivery would be lost.
        endpoint.keep_health(now).await?;
        endpoint.table.replace_delivery(endpoint.id, was, &was.clone().deferred(now)).await?;
        Ok(())
    }

    /// Makes one attempt and saves its result. Where a try may have ended its process, and always in the tick, which has no other trace of it,
    /// the try is counted before it is made.
    pub async fn attempt(&self, endpoint: &Endpoint, was: &Delivery) -> Result<Tried> {
        let target = match &endpoint.target {
            Ok(target) => target,
            Err(reason) => return self.give_up(endpoint, was, GivenUp::Failed(reason)).await,
        };
        let Some(_share) = self.bounds.attempt(patience(was)).await else {
            return self.give_up(endpoint, was, GivenUp::Postponed).await;
        };
        let mut begun = None;
        if self.counts_first || was.is_suspect() || was.state == DeliveryState::Waiting {
            let Some(is) = was.clone().begun(self.now()) else {
                return self.give_up(endpoint, was, GivenUp::Failed("no attempt came to an end")).await;
            };
            if !endpoint.table.replace_delivery(endpoint.id, was, &is).await? {
                return Ok(Tried::InVain);
            }
            begun = Some(is);
        }
        let was = begun.as_ref().unwrap_or(was);
        let (body, _share) = match self.body(endpoint, was).await? {
            Ok(body) => body,
            Err(given_up) => return self.give_up(endpoint, was, given_up).await,
        };
        let (attempt, retry_after) = self.post(target, was, body).await?;
        if attempt.error.as_deref() == Some(OUT_OF_RESOURCES) {
            return self.give_up(endpoint, was, GivenUp::Postponed).await;
        }
        let slow_from = (self.service.network.attempt / SLOW).as_millis();
        endpoint.note_attempt(&attempt, u64::try_from(slow_from).unwrap_or(u64::MAX));
        let (arrived, gone, now) = (attempt.succeeded(), attempt.status == Some(410), self.now());
        if !arrived {
            endpoint.disable_if_failing(gone, now).await?;
        }
        let retried_by = endpoint.retried_by();
        if !arrived && retried_by == SentBy::Tick {
            endpoint.note_deferral(now);
            endpoint.keep_health(now).await?;
        }
        self.keep(endpoint, was, was.clone().after(attempt, retry_after, retried_by, fastrand::f64(), now)).await?;
        Ok(if arrived { Tried::Arrived } else { Tried::InVain })
    }

    async fn give_up(&self, endpoint: &Endpoint, was: &Delivery, given_up: GivenUp) -> Result<Tried> {
        match given_up {
            GivenUp::Failed(reason) => self.keep(endpoint, was, was.clone().dead(reason, self.now())).await?,
            // The cancellation or the deletion has already changed the counts of the campaign.
            GivenUp::Stopped(reason) => {
                endpoint.table.replace_delivery(endpoint.id, was, &was.clone().dead(reason, self.now())).await?;
            }
            GivenUp::Paused(campaign) => {
                if endpoint.table.park_delivery(endpoint.id, was, campaign, self.now()).await? {
                    return Ok(Tried::Parked);
                }
                // The campaign was resumed meanwhile: nobody else looks for the delivery any more.
                self.defer(endpoint, was).await?;
            }
            GivenUp::Closed(opens) => {
                endpoint
                    .table
                    .replace_delivery(endpoint.id, was, &was.clone().waiting_until(opens, self.now()))
                    .await?;
            }
            GivenUp::Postponed if was.state == DeliveryState::Ready => self.defer(endpoint, was).await?,
            // It stays due, for the next tick.
            GivenUp::Postponed if was.is_suspect() => {
                endpoint.table.replace_delivery(endpoint.id, was, &was.clone().not_tried(self.now())).await?;
            }
            GivenUp::Postponed => {}
        }
        Ok(Tried::InVain)
    }

    /// Replaces the delivery. Where this is its end, its campaign's contact gets its final status in the same transaction.
    async fn keep(&self, endpoint: &Endpoint, was: &Delivery, is: Delivery) -> Result<()> {
        let outcome = match is.state {
            DeliveryState::Delivered => Some(ContactStatus::Sent),
            DeliveryState::Dead => Some(ContactStatus::Failed),
            DeliveryState::Ready | DeliveryState::Waiting => None,
        };
        let (table, id) = (&endpoint.table, endpoint.id);
        match outcome.zip(was.campaign_contact_id) {
            Some((outcome, contact)) => table.settle_delivery(id, was, &is, contact, outcome, self.now()).await?,
            None => table.replace_delivery(id, was, &is).await?,
        };
        Ok(())
    }

    async fn post(&self, target: &Target, was: &Delivery, body: String) -> Result<(Attempt, Option<i64>)> {
        let (at, id) = (self.now(), was.event_id.to_string());
        let headers = signature::headers(&target.secrets(at), &id, at.unix_seconds(), &body)?;
        let answer = self.sender.post(&target.url, headers.to_vec(), body, at).await;
        let attempt = Attempt {
            at,
            status: answer.status.map(u64::from),
            milliseconds: answer.milliseconds,
            error: answer.error.map(str::to_owned),
            answer: answer.status.map(|_| answer.answer),
        };
        let retry_after = answer.retry_after.map(|wait| i64::try_from(wait.as_secs()).unwrap_or(i64::MAX));
        Ok((attempt, retry_after))
    }

    /// What the campaign of a delivery said when it was made, which is read once for all its contacts; `None` where the campaign is gone.
    async fn campaign_text(&self, table: &Table, campaign: &Campaign, was: &Delivery) -> Result<Option<CampaignText>> {
        let of = (table.tenant.org(), TextOf { run: campaign.id.run(), version: was.text_version });
        let mut texts = self.texts.lock().await;
        if let Some(said) = texts.get(&of) {
            return Ok(Some(said.clone()));
        }
        let said = table.campaign_text(campaign, was.text_version).await?;
        let said = said.filter(|said| said.text.is_some() || was.message_id.is_none());
        texts.extend(said.clone().map(|said| (of, said)));
        Ok(said)
    }

    /// The body, with its share of the memory; or why nothing is sent. Nothing of it changes from one attempt to the next but the contact, which
    /// is read each time: a copy with every delivery would cost each contact of a campaign more writes.
    async fn body(
        &self,
        endpoint: &Endpoint,
        was: &Delivery,
    ) -> Result<Result<(String, Option<SemaphorePermit<'_>>), GivenUp>> {
        let (table, delivery) = (&endpoint.table, was);
        let mut share = None;
        let print = |data: EventData<'_>| {
            serde_json::to_string(&Event::of(delivery, data)).map_err(|error| Error::Internal(error.to_string()))
        };
        let body = match (delivery.event, delivery.conversation_id, delivery.campaign_contact_id) {
            (EventKind::WebhookTest, ..) => print(EventData::Test(TestData::of(WebhookId(endpoint.id.0)))),
            (EventKind::ConversationClosed, Some(id), _) => {
                // A closed conversation never changes, so the delivery needs no copy of it.
                let Some(conversation) = table.find::<Conversation>(id).await? else {
                    return Ok(Err(GivenUp::Failed("the conversation is gone")));
                };
                share = self.bounds.body(&conversation, patience(was)).await;
                if share.is_none() {
                    return Ok(Err(GivenUp::Postponed));
                }
                let transcript = table.transcript(id).await?;
                print(EventData::Conversation(ConversationData::of(&conversation, &transcript)))
            }
            (EventKind::CampaignMessage | EventKind::CampaignCall, _, Some(id)) => {
                let (campaign, member) =
                    futures_util::try_join!(table.campaign_of(was), table.find::<CampaignContact>(id))?;
                let Some((campaign, member)) = campaign.zip(member) else {
                    return Ok(Err(GivenUp::Stopped("deleted before it was sent")));
                };
                if member.clone().seen_in(&campaign).status != ContactStatus::Queued {
                    return Ok(Err(GivenUp::Stopped("cancelled before it was sent")));
                }
                if campaign.status == CampaignStatus::Paused {
                    return Ok(Err(GivenUp::Paused(campaign.id)));
                }
                let schedule = campaign.schedule().filter(|schedule| !schedule.is_open(self.now()));
                if let Some(opens) = schedule.and_then(|schedule| schedule.opens(self.now())) {
                    return Ok(Err(GivenUp::Closed(opens)));
                }
                let Some(contact) = table.find::<Contact>(member.contact_id).await? else {
                    return Ok(Err(GivenUp::Failed("the contact is gone")));
                };
                let Some(CampaignText { text, assistant_id, .. }) = self.campaign_text(table, &campaign, was).await?
                else {
                    return Ok(Err(GivenUp::Stopped("deleted before it was sent")));
                };
                let campaign = Campaign { message: text, assistant_id, ..campaign };
                print(EventData::Campaign(CampaignData::of(
                    &campaign,
                    WidgetId(endpoint.id.0),
                    &member,
                    &contact,
                    was.message_id,
                )))
            }
            (EventKind::MessageRequested | EventKind::CallRequested, Some(id), _) => {
                let (conversation, contact, message) = futures_util::try_join!(
                    table.find::<Conversation>(id),
                    contact_of(table, was),
                    message_of(table, was)
                )?;
                let Some(conversation) = conversation.filter(|_| message.is_some() == was.message_id.is_some()) else {
                    return Ok(Err(GivenUp::Failed("the conversation is gone")));
                };
                let Some(contact) = contact else {
                    return Ok(Err(GivenUp::Failed("the contact is gone")));
                };
                let widget = WidgetId(endpoint.id.0);
                print(EventData::Requested(RequestedData::of(
                    widget,
                    &conversation,
                    (contact, delivery.to.clone()),
                    message.as_ref(),
                )))
            }
            _ => Err(Error::Internal("a delivery of nothing".into())),
        };
        Ok(Ok((body?, share)))
    }
}

/// The contact that a single message or call is for.
async fn contact_of(table: &Table, delivery: &Delivery) -> Result<Option<Contact>, TableError> {
    match delivery.contact_id {
        Some(id) => table.find(id).await,
        None => Ok(None),
    }
}

/// The message that is delivered.
async fn message_of(table: &Table, delivery: &Delivery) -> Result<Option<Message>, TableError> {
    match delivery.conversation_id.zip(delivery.message_id) {
        Some((conversation, id)) => table.message(conversation, id).await,
        None => Ok(None),
    }
}
