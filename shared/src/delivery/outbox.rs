//! The outbox: sends ready deliveries, defers them if the circuit of their endpoint is open, and drains deferred ones.
//!
//! The stream sends a delivery, and sends it again for each retry. A batch of the stream takes as long as its slowest
//! attempt, so an endpoint that fails or is slow would delay the others. A circuit breaker prevents this: while the
//! circuit of an endpoint is open, its deliveries are deferred, and the tick of every minute drains them. It sends one
//! delivery as a probe, and doubles the number as long as one of them arrives. A connector has a rate limit; a delivery
//! that must wait longer than a second is deferred too.
//!
//! An organisation may have any number of endpoints. So it has only a share of the attempts of a batch and of a tick,
//! and once it has made a lane of the stream wait for a quarter of a minute, its deliveries start in the tick.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::lock::Mutex as AsyncMutex;

use crate::delivery::bounds::Bounds;
use crate::delivery::endpoint::Endpoint;
use crate::delivery::sender::Sender;
use crate::records::campaign::rate_limit::{self, Limited};
use crate::records::campaign::{CampaignText, TextOf};
use crate::records::delivery::storage::{delivery_of, endpoint_of};
use crate::records::delivery::{Delivery, DeliveryState, UNSENT};
use crate::records::due::Due;
use crate::request::context::Service;
use crate::request::error::Result;
use crate::request::event::{EventContext, Handled, Unhandled};
use crate::table::Table;
use crate::table::cascade;
use crate::table::change::Change;
use crate::values::id::{EndpointId, OrgId, WidgetId};
use crate::values::time::Timestamp;

pub use super::release::release;

/// Seconds for which a tick works. The next one begins after sixty.
const BUDGET: i64 = 40;
/// The most endpoints that one tick drains, from each partition of the index.
const ENDPOINTS: i32 = 200;
/// Milliseconds after which a single change may come from a larger batch that crashed the process.
const LATE: i64 = 5000;
/// The most milliseconds for which a batch of the stream waits for a rate limit.
const LONGEST_WAIT: i64 = 1000;

/// The resources for sending: the process and its HTTP client.
pub struct Outbox<'a> {
    /// The service of this process.
    pub(super) service: &'a Service,
    /// The HTTP client.
    pub(super) sender: Sender,
    /// The limits on concurrent use of resources.
    pub(super) bounds: Bounds,
    /// When a tick begins no more attempts; `None` in the stream.
    deadline: Option<Timestamp>,
    /// For each organisation, how long its slowest attempt has made this batch wait, if it was slow.
    waits: Mutex<BTreeMap<OrgId, Duration>>,
    /// Whether every attempt is counted before it is made.
    pub(super) counts_first: bool,
    /// Deliveries of which an attempt may have crashed the process: they are attempted one by one, while nothing else
    /// runs.
    pub(super) suspects: Mutex<Vec<(Arc<Endpoint>, Delivery)>>,
    /// The texts of the campaigns whose deliveries it has sent.
    pub(super) texts: AsyncMutex<BTreeMap<(OrgId, TextOf), CampaignText>>,
}

impl<'a> Outbox<'a> {
    /// The outbox of this process.
    ///
    /// # Errors
    /// [`Error::Internal`](crate::request::error::Error::Internal) where there is no HTTP client.
    pub fn new(cx: &EventContext<'a>) -> Result<Self> {
        let sender = Sender::of(&cx.service.network)?;
        Ok(Self {
            service: cx.service,
            sender,
            bounds: Bounds::of_batch(),
            deadline: None,
            waits: Mutex::default(),
            counts_first: false,
            suspects: Mutex::default(),
            texts: AsyncMutex::default(),
        })
    }

    /// Sends all deliveries of `batch` that are ready, at the same time.
    ///
    /// Lambda splits a batch that crashed the process, until the delivery that does so comes alone. Counting the
    /// attempts of all others first would cost a write each.
    ///
    /// # Errors
    /// The first change whose delivery could neither be sent nor given up.
    pub async fn send(&mut self, cx: &EventContext<'_>, batch: &[Change]) -> Handled {
        let mut groups: BTreeMap<_, (Table, Vec<(usize, Delivery)>)> = BTreeMap::new();
        let mut stopped = Vec::new();
        self.counts_first = matches!(batch, [alone] if alone.age(self.now()) >= LATE);
        for (at, change) in batch.iter().enumerate() {
            let Some((tenant, endpoint, _)) = delivery_of(&change.key()) else { continue };
            let record = change.record::<Delivery>().unwrap_or_else(|error| {
                stopped.push(Unhandled::at(at, error));
                None
            });
            let Some(mut ready) = record.filter(|stored| stored.state == DeliveryState::Ready) else { continue };
            // A stream that is so late is the reason why the delivery was released before.
            if change.age(self.now()) >= UNSENT * 1000 {
                ready.releases = 0;
            }
            let group = groups.entry((tenant.org(), endpoint)).or_insert((cx.table(tenant), Vec::new()));
            // If a delivery has several releases in the batch, only the first one sends it.
            if !group.1.iter().any(|(_, earlier)| ready.id == earlier.id && ready.is_still(earlier)) {
                group.1.push((at, ready));
            }
        }
        let sends = groups.into_iter().map(|((_, endpoint), (table, ready))| self.send_to(table, endpoint, ready));
        // Every delivery is attempted, even if one fails. The stream repeats the batch from the first failure.
        stopped.extend(join_all(sends).await.into_iter().filter_map(Result::err));
        for (org, time) in std::mem::take(&mut *self.waits()) {
            self.service.lanes.add(org, time, self.now());
        }
        Unhandled::first(stopped)
    }

    /// Drains every endpoint that has deferred deliveries.
    ///
    /// # Errors
    /// The first error of an endpoint; the others are drained all the same.
    pub async fn send_deferred(&mut self, cx: &EventContext<'_>) -> Result<()> {
        let now = self.now();
        let deadline = now.plus_seconds(BUDGET);
        (self.bounds, self.deadline) = (Bounds::of_tick(), Some(deadline));
        let due = self.service.store.due(Due::Endpoint, now, ENDPOINTS).await?;
        let drains = due.iter().filter_map(endpoint_of).map(|(tenant, id)| self.drain(cx.table(tenant), id, deadline));
        let drained = join_all(drains).await;
        let mut suspects = std::mem::take(&mut *self.suspects.lock().unwrap_or_else(PoisonError::into_inner));
        // The drains may use the whole budget of every tick. The function's timeout leaves time for one more attempt:
        // each tick attempts at least one suspect.
        fastrand::shuffle(&mut suspects);
        for (number, (endpoint, was)) in suspects.into_iter().enumerate() {
            if number == 0 || self.now() < deadline {
                self.attempt(&endpoint, &was).await?;
                endpoint.keep_health(self.now()).await?;
            }
        }
        drained.into_iter().collect()
    }

    /// Records that the lane has waited for a slow attempt of `org`.
    pub(super) fn note_wait(&self, org: OrgId, time: Duration) {
        let mut waits = self.waits();
        let longest = waits.entry(org).or_default();
        *longest = time.max(*longest);
    }

    fn waits(&self) -> MutexGuard<'_, BTreeMap<OrgId, Duration>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time until the deadline of a tick; `None` in the stream.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let millis = self.deadline?.unix_millis() - self.now().unix_millis();
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or_default()))
    }

    /// Whether the tick makes the first attempt of a delivery: the circuit of its endpoint is open, or its organisation
    /// has made the stream wait for as long as an attempt of the tick may take, within a minute.
    fn starts_in_tick(&self, endpoint: &Endpoint) -> bool {
        let (now, org) = (self.now(), endpoint.table.tenant.org());
        endpoint.circuit_is_open(now) || self.service.lanes.of(org, now) >= self.service.network.attempt
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.service.clock.now()
    }

    /// Sends the ready deliveries of an endpoint, or defers them.
    async fn send_to(&self, table: Table, id: EndpointId, ready: Vec<(usize, Delivery)>) -> Handled {
        let first = ready.first().map_or(0, |(at, _)| *at);
        let Some((_, any)) = ready.first() else { return Ok(()) };
        let endpoint = Endpoint::of(table, id, any, self.now()).await.map_err(|error| Unhandled::at(first, error))?;
        // The cascade of the endpoint may have ended. It runs once more, so that these deliveries are removed too.
        if let Some(record) = endpoint.deleted() {
            let left = cascade::leave(&endpoint.table, record, id.0).await;
            left.map_err(|error| Unhandled::at(first, error))?;
        }
        let times = self.send_times(&endpoint, ready.len()).await.map_err(|error| Unhandled::at(first, error))?;
        let time_of = |number: usize| times.as_ref().and_then(|times| times.get(number)).copied();
        let send = async |(at, seen): &(usize, Delivery), time: Option<Timestamp>| {
            self.send_one(&endpoint, seen, time).await.map_err(|error| Unhandled::at(*at, error))
        };
        let (suspects, others): (Vec<_>, Vec<_>) =
            ready.iter().enumerate().partition(|(_, (_, seen))| seen.is_suspect());
        let mut results = join_all(others.into_iter().map(|(number, one)| send(one, time_of(number)))).await;
        for (number, one) in suspects {
            // The delivery before it may have opened the circuit.
            let time = if self.starts_in_tick(&endpoint) { None } else { time_of(number) };
            results.push(send(one, time).await);
        }
        endpoint.keep_health(self.now()).await.map_err(|error| Unhandled::at(first, error))?;
        Unhandled::first(results.into_iter().filter_map(Result::err))
    }

    /// The times at which `count` deliveries may be sent, or as many as the rate limit allows; `None` if they start in
    /// the tick.
    async fn send_times(&self, endpoint: &Endpoint, count: usize) -> Result<Option<Vec<Timestamp>>> {
        if self.starts_in_tick(endpoint) {
            return Ok(None);
        }
        let now = self.now();
        let Some(widget) = endpoint.connector() else { return Ok(Some(vec![now; count])) };
        // The stream waits at most a second: other deliveries wait for these.
        let soon = count.min(self.service.config.rate() as usize);
        let latest = Timestamp::from_unix_millis(now.unix_millis() + LONGEST_WAIT);
        Ok(Some(self.reserve(&endpoint.table, widget, soon, latest).await?))
    }

    /// Reserves times for `count` deliveries to a connector, none of them after `latest`.
    pub(super) async fn reserve(
        &self,
        table: &Table,
        widget: WidgetId,
        count: usize,
        latest: Timestamp,
    ) -> Result<Vec<Timestamp>> {
        let (rate, count) = (self.service.config.rate(), u32::try_from(count).unwrap_or(u32::MAX));
        Ok(rate_limit::reserve(table, (widget, Limited::Send), count, rate, self.now(), latest).await?)
    }

    async fn send_one(&self, endpoint: &Endpoint, seen: &Delivery, time: Option<Timestamp>) -> Result<()> {
        // A delivery that has changed since then has a later record in the stream, or was sent when this record came
        // the first time. One that was only released since then must not wait longer: this record was late, which is
        // the reason for its releases.
        let existing = endpoint.table.find::<Delivery>((endpoint.id, seen.id)).await?;
        let Some(existing) = existing.filter(|existing| existing.is_still(seen)) else { return Ok(()) };
        let was = if existing == *seen { existing } else { Delivery { releases: 0, ..existing } };
        let Some(time) = time.or(endpoint.has_no_target().then(|| self.now())) else {
            return self.defer(endpoint, &was).await;
        };
        self.service.clock.sleep_until(time).await;
        self.attempt(endpoint, &was).await.map(drop)
    }
}
