//! One attempt to send a delivery: makes the body, sends it, and saves the result.

use crate::delivery::event::{CampaignData, ConversationData, Event, EventData, TestData};
use crate::delivery::signature;
use crate::records::campaign::{CampaignContact, ContactStatus};
use crate::records::contact::Contact;
use crate::records::conversation::Conversation;
use crate::records::delivery::{Attempt, Delivery, DeliveryState, EventKind, SentBy};
use crate::request::error::{Error, Result};
use crate::values::id::WebhookId;

use crate::delivery::endpoint::{Endpoint, Target};
use crate::delivery::outbox::Outbox;

/// An answer is slow when it takes this part of the time limit of an attempt, or more: a fifth.
const SLOW: u32 = 5;

/// Why a delivery is given up without an attempt.
enum GivenUp {
    /// It cannot be sent.
    Failed(&'static str),
    /// It is no longer to be sent.
    Stopped(&'static str),
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

    /// Makes one attempt and saves its result. Returns whether the delivery has arrived.
    pub async fn attempt(&self, endpoint: &Endpoint, was: &Delivery) -> Result<bool> {
        let target = match &endpoint.target {
            Ok(target) => target,
            Err(reason) => return self.give_up(endpoint, was, GivenUp::Failed(reason)).await,
        };
        let body = match self.body(endpoint, was).await? {
            Ok(body) => body,
            Err(given_up) => return self.give_up(endpoint, was, given_up).await,
        };
        let (attempt, retry_after) = self.post(target, was, body).await?;
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
        Ok(arrived)
    }

    async fn give_up(&self, endpoint: &Endpoint, was: &Delivery, given_up: GivenUp) -> Result<bool> {
        match given_up {
            GivenUp::Failed(reason) => self.keep(endpoint, was, was.clone().dead(reason, self.now())).await?,
            // The cancellation or the deletion has already changed the counts of the campaign.
            GivenUp::Stopped(reason) => {
                endpoint.table.replace_delivery(endpoint.id, was, &was.clone().dead(reason, self.now())).await?;
            }
        }
        Ok(false)
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

    /// The body, which is the same on every attempt; or why nothing is sent.
    async fn body(&self, endpoint: &Endpoint, was: &Delivery) -> Result<Result<String, GivenUp>> {
        let (table, delivery) = (&endpoint.table, was);
        let print = |data: EventData<'_>| {
            serde_json::to_string(&Event::of(delivery, data)).map_err(|error| Error::Internal(error.to_string()))
        };
        match (delivery.event, delivery.conversation_id, delivery.campaign_contact_id) {
            (EventKind::WebhookTest, ..) => print(EventData::Test(TestData::of(WebhookId(endpoint.id.0)))).map(Ok),
            (EventKind::ConversationClosed, Some(id), _) => {
                // A closed conversation never changes, so the delivery needs no copy of it.
                let (conversation, transcript) =
                    futures_util::try_join!(table.find::<Conversation>(id), table.transcript(id))?;
                let Some(conversation) = conversation else {
                    return Ok(Err(GivenUp::Failed("the conversation is gone")));
                };
                print(EventData::Conversation(ConversationData::of(&conversation, &transcript))).map(Ok)
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
                let Some(contact) = table.find::<Contact>(member.contact_id).await? else {
                    return Ok(Err(GivenUp::Failed("the contact is gone")));
                };
                print(EventData::Campaign(CampaignData::of(&campaign, &member, &contact, was.message_id))).map(Ok)
            }
            _ => Err(Error::Internal("a delivery of nothing".into())),
        }
    }
}
