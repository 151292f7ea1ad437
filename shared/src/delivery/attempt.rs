//! One attempt: the event as it is sent, its way to the endpoint, and what is kept of it.

use crate::delivery::event::{CampaignData, ConversationData, Event, EventData, TestData};
use crate::delivery::signature;
use crate::records::campaign::{CampaignContact, ContactStatus};
use crate::records::contact::Contact;
use crate::records::conversation::Conversation;
use crate::records::delivery::{Attempt, Delivery, DeliveryState, EventKind, Lane};
use crate::request::error::{Error, Result};
use crate::values::id::WebhookId;

use crate::delivery::endpoint::{Endpoint, Target};
use crate::delivery::outbox::Outbox;

/// An answer is slow that takes more than this part of what an attempt may take.
const SLOW: u32 = 5;

/// Why nothing is sent, and nothing will be.
enum GivenUp {
    /// It cannot be.
    Failed(&'static str),
    /// It is no longer wanted.
    Stopped(&'static str),
}

impl Outbox<'_> {
    /// Holds a delivery back.
    pub async fn hold(&self, endpoint: &Endpoint, was: &Delivery) -> Result<()> {
        let now = self.now();
        endpoint.note_held(now);
        // First the note that leads to it: a delivery that nobody looks for would be lost.
        endpoint.keep_health(now).await?;
        endpoint.table.replace_delivery(endpoint.id, was, &was.clone().held(now)).await?;
        Ok(())
    }

    /// Tries a delivery, once, and keeps what came of it; whether it arrived.
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
        endpoint.note(&attempt, u64::try_from(slow_from).unwrap_or(u64::MAX));
        let (arrived, gone, now) = (attempt.succeeded(), attempt.status == Some(410), self.now());
        if !arrived {
            endpoint.disable_where_hopeless(gone, now).await?;
        }
        let lane = endpoint.lane();
        if !arrived && lane == Lane::Held {
            endpoint.note_held(now);
            endpoint.keep_health(now).await?;
        }
        self.keep(endpoint, was, was.clone().after(attempt, retry_after, lane, fastrand::f64(), now)).await?;
        Ok(arrived)
    }

    async fn give_up(&self, endpoint: &Endpoint, was: &Delivery, given_up: GivenUp) -> Result<bool> {
        match given_up {
            GivenUp::Failed(reason) => self.keep(endpoint, was, was.clone().dead(reason, self.now())).await?,
            // Whoever stopped it has noted that with its campaign.
            GivenUp::Stopped(reason) => {
                endpoint.table.replace_delivery(endpoint.id, was, &was.clone().dead(reason, self.now())).await?;
            }
        }
        Ok(false)
    }

    /// Replaces the delivery, and tells its campaign of the end, where it has one and this is the end.
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

    /// What is sent, which is the same on every attempt; or why nothing is.
    async fn body(&self, endpoint: &Endpoint, was: &Delivery) -> Result<Result<String, GivenUp>> {
        let (table, delivery) = (&endpoint.table, was);
        let print = |data: EventData<'_>| {
            serde_json::to_string(&Event::of(delivery, data)).map_err(|error| Error::Internal(error.to_string()))
        };
        match (delivery.event, delivery.conversation_id, delivery.campaign_contact_id) {
            (EventKind::WebhookTest, ..) => print(EventData::Test(TestData::of(WebhookId(endpoint.id.0)))).map(Ok),
            (EventKind::ConversationClosed, Some(id), _) => {
                // A closed conversation changes no more, so it need not be kept a second time.
                let (conversation, transcript) =
                    futures_util::try_join!(table.find::<Conversation>(id), table.transcript(id))?;
                let Some(conversation) = conversation else {
                    return Ok(Err(GivenUp::Failed("the conversation is gone")));
                };
                print(EventData::Conversation(ConversationData::of(&conversation, &transcript))).map(Ok)
            }
            (EventKind::CampaignMessage | EventKind::CampaignCall, _, Some(id)) => {
                let (campaign, place) =
                    futures_util::try_join!(table.campaign_of(was), table.find::<CampaignContact>(id))?;
                let Some((campaign, place)) = campaign.zip(place) else {
                    return Ok(Err(GivenUp::Stopped("deleted before it was sent")));
                };
                if place.clone().seen_in(&campaign).status != ContactStatus::Queued {
                    return Ok(Err(GivenUp::Stopped("cancelled before it was sent")));
                }
                let Some(contact) = table.find::<Contact>(place.contact_id).await? else {
                    return Ok(Err(GivenUp::Failed("the contact is gone")));
                };
                print(EventData::Campaign(CampaignData::of(&campaign, &place, &contact, was.message_id))).map(Ok)
            }
            _ => Err(Error::Internal("a delivery of nothing".into())),
        }
    }
}
