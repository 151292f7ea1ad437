//! One attempt to send a delivery: makes the body, sends it, and saves the result.

use std::borrow::Cow;
use std::time::Duration;

use crate::delivery::body::{Body, Unsent};
use crate::delivery::endpoint::{Endpoint, EndpointTarget, Target};
use crate::delivery::outbox::Outbox;
use crate::delivery::sender::{OUT_OF_RESOURCES, TIMEOUT};
use crate::delivery::signature;
use crate::records::campaign::{self, ContactStatus};
use crate::records::delivery::{Attempt, Delivery, DeliveryOutcome, DeliveryStage, DeliveryState, Observed, SentBy};
use crate::request::error::Result;

/// An answer is slow if it takes at least this part of the time limit of an attempt: a fifth.
const SLOW: u32 = 5;
/// The part of the time limit that an attempt of the stream has: a third. Other deliveries wait for it.
const IN_STREAM: u32 = 3;
/// How long a delivery waits for its share of the process's resources, in the stream and in a tick.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// The result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The delivery has arrived.
    Arrived,
    /// The delivery has not arrived.
    NotDelivered,
    /// Nothing was sent: its campaign is paused.
    Parked,
}

impl Outbox<'_> {
    /// Defers a delivery: the tick will send it.
    pub async fn defer(&self, endpoint: &Endpoint, was: &Delivery) -> Result<()> {
        let now = self.now();
        endpoint.note_deferral(now);
        // The health comes first, because the tick finds the endpoint by it: without it the delivery would be lost.
        endpoint.keep_health(now).await?;
        self.replace(endpoint, was, DeliveryOutcome::Deferred).await.map(drop)
    }

    /// Makes one attempt and saves its result.
    pub async fn attempt(&self, endpoint: &Endpoint, was: &Delivery) -> Result<AttemptEnd> {
        let target = match &endpoint.target {
            EndpointTarget::Known(target) => target,
            EndpointTarget::Nowhere(reason) => return self.leave(endpoint, was, Unsent::Impossible(reason)).await,
            EndpointTarget::Later => return self.leave(endpoint, was, Unsent::Postponed).await,
        };
        let Some(_share) = self.bounds.attempt(endpoint.table.tenant.org(), self.patience(was)).await else {
            return self.leave(endpoint, was, Unsent::Postponed).await;
        };
        let Some(was) = self.begin(endpoint, was).await? else { return Ok(AttemptEnd::NotDelivered) };
        match self.send_body(endpoint, target, &was).await {
            Ok((attempt, retry_after)) => self.keep_attempt(endpoint, &was, attempt, retry_after).await,
            Err(unsent) => self.leave(endpoint, &was, unsent).await,
        }
    }

    /// Counts the attempt before it starts, if an earlier one may have crashed the process. The tick always does so,
    /// because otherwise a crash would leave no trace. Returns the delivery; `None` if it must not be attempted.
    async fn begin<'d>(&self, endpoint: &Endpoint, was: &'d Delivery) -> Result<Option<Cow<'d, Delivery>>> {
        if !(self.counts_first || was.is_suspect() || was.state == DeliveryState::Waiting) {
            return Ok(Some(Cow::Borrowed(was)));
        }
        let is = was.clone().decide(DeliveryOutcome::Begun, self.now());
        if is.stage() == DeliveryStage::Dead {
            self.keep(endpoint, was, is).await?;
            return Ok(None);
        }
        Ok(endpoint.table.replace((endpoint.id, was.id), was, is).await?.map(Cow::Owned))
    }

    async fn send_body(
        &self,
        endpoint: &Endpoint,
        target: &Target,
        was: &Delivery,
    ) -> Result<(Attempt, Option<i64>), Unsent> {
        let Body { text, share: _share } = self.body(endpoint, was).await?;
        let (attempt, retry_after) = self.post(target, was, text).await?;
        if attempt.error.as_deref() == Some(OUT_OF_RESOURCES) {
            return Err(Unsent::Postponed);
        }
        Ok((attempt, retry_after))
    }

    /// Saves the result of an attempt, and its effect on the health of the endpoint.
    async fn keep_attempt(
        &self,
        endpoint: &Endpoint,
        was: &Delivery,
        attempt: Attempt,
        retry_after: Option<i64>,
    ) -> Result<AttemptEnd> {
        let (time, slow_from) = (Duration::from_millis(attempt.milliseconds), self.service.network.attempt / SLOW);
        if is_of_stream(was) && time >= slow_from {
            self.note_wait(endpoint.table.tenant.org(), time);
        }
        // The stream did not wait for an answer. The tick does, and only its attempt shows whether the endpoint fails.
        let cut_short = is_of_stream(was) && attempt.status.is_none() && attempt.error.as_deref() == Some(TIMEOUT);
        let slow_from = u64::try_from(slow_from.as_millis()).unwrap_or(u64::MAX);
        endpoint.observe(if cut_short { Observed::cut_short(attempt.at) } else { Observed::of(&attempt, slow_from) });
        let (arrived, gone, now) = (attempt.succeeded(), attempt.status == Some(410), self.now());
        if !arrived {
            endpoint.disable_if_failing(gone, now).await?;
        }
        let retried_by = endpoint.retried_by(now);
        if !arrived && retried_by == SentBy::Tick {
            endpoint.note_deferral(now);
            endpoint.keep_health(now).await?;
        }
        let outcome = if cut_short {
            DeliveryOutcome::CutShort { attempt }
        } else {
            DeliveryOutcome::Attempted { attempt, retry_after, retried_by, jitter: fastrand::f64() }
        };
        self.keep(endpoint, was, was.clone().decide(outcome, now)).await?;
        Ok(if arrived { AttemptEnd::Arrived } else { AttemptEnd::NotDelivered })
    }

    /// How long a delivery waits for its share of the process's resources: others wait for it in the stream, and a tick
    /// has time until its deadline.
    pub(super) fn patience(&self, was: &Delivery) -> Duration {
        let (in_stream, in_tick) = PATIENCE;
        if is_of_stream(was) { in_stream } else { self.time_left().map_or(in_tick, |left| left.min(in_tick)) }
    }

    /// Saves why a delivery was not sent.
    async fn leave(&self, endpoint: &Endpoint, was: &Delivery, unsent: Unsent) -> Result<AttemptEnd> {
        let given_up = |reason: &str| DeliveryOutcome::GivenUp { reason: reason.to_owned() };
        match unsent {
            Unsent::Failed(error) => return Err(error),
            Unsent::Impossible(reason) => {
                self.keep(endpoint, was, was.clone().decide(given_up(reason), self.now())).await?;
            }
            // The cancellation or the deletion has already changed the counts of the campaign.
            Unsent::Stopped(reason) => self.replace(endpoint, was, given_up(reason)).await?,
            Unsent::Paused(campaign) => {
                if campaign::park_delivery(&endpoint.table, endpoint.id, was, campaign, self.now()).await? {
                    return Ok(AttemptEnd::Parked);
                }
                // The campaign was resumed in the meantime: nothing else looks for the delivery any more.
                self.defer(endpoint, was).await?;
            }
            Unsent::WindowClosed(opens) => self.replace(endpoint, was, DeliveryOutcome::WindowClosed { opens }).await?,
            Unsent::Postponed if was.state == DeliveryState::Ready => self.defer(endpoint, was).await?,
            // The delivery stays due for the next tick.
            Unsent::Postponed if was.is_suspect() => self.replace(endpoint, was, DeliveryOutcome::NotAttempted).await?,
            Unsent::Postponed => {}
        }
        Ok(AttemptEnd::NotDelivered)
    }

    /// Replaces a delivery with the result of `outcome`, unless it has changed.
    async fn replace(&self, endpoint: &Endpoint, was: &Delivery, outcome: DeliveryOutcome) -> Result<()> {
        let is = was.clone().decide(outcome, self.now());
        Ok(endpoint.table.replace((endpoint.id, was.id), was, is).await.map(drop)?)
    }

    /// Replaces the delivery. If it ends, the same transaction gives its campaign's contact the final status.
    async fn keep(&self, endpoint: &Endpoint, was: &Delivery, is: Delivery) -> Result<()> {
        let status = match is.stage() {
            DeliveryStage::Delivered => Some(ContactStatus::Sent),
            DeliveryStage::Dead => Some(ContactStatus::Failed),
            DeliveryStage::Ready { .. } | DeliveryStage::Waiting { .. } | DeliveryStage::Parked => None,
        };
        let (table, id) = (&endpoint.table, endpoint.id);
        match status.zip(was.campaign_contact_id) {
            Some((status, contact)) => {
                campaign::settle_delivery(table, id, (was, is), (contact, status), self.now()).await?;
            }
            None => drop(table.replace((id, was.id), was, is).await?),
        }
        Ok(())
    }

    async fn post(&self, target: &Target, was: &Delivery, body: String) -> Result<(Attempt, Option<i64>)> {
        let (at, id) = (self.now(), was.event_id.to_string());
        let headers = signature::headers(&target.secrets(at), &id, at.unix_seconds(), &body)?;
        let limit = self.service.network.attempt / if is_of_stream(was) { IN_STREAM } else { 1 };
        let answer = self.sender.post(&target.url, headers.to_vec(), body, at, limit).await;
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
}

/// Whether the stream sends it. What the tick sends waits for the tick.
fn is_of_stream(was: &Delivery) -> bool {
    was.state == DeliveryState::Ready
}
