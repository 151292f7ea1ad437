//! The outbox: sends the deliveries that are ready, defers them where the circuit of their endpoint is open, and drains what is deferred.
//!
//! The stream sends a delivery, and sends it again for each retry. A batch of the stream takes as long as its slowest attempt, so an
//! endpoint that fails or is slow would make the others wait. A circuit breaker prevents this: while the circuit of an endpoint is open,
//! its deliveries are deferred, and the tick of every minute drains them. It sends one delivery as a probe, and doubles the number as
//! long as one of them arrives. A connector has a rate limit; what cannot be sent within a second is deferred too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{join_all, try_join_all};
use futures_util::lock::Mutex as AsyncMutex;

use crate::delivery::attempt::Tried;
use crate::delivery::bounds::Bounds;
use crate::delivery::endpoint::Endpoint;
use crate::delivery::sender::Sender;
use crate::records::campaign::rate_limit::Limited;
use crate::records::campaign::{CampaignText, TextOf};
use crate::records::delivery::storage::{delivery_of, endpoint_of};
use crate::records::delivery::{Delivery, DeliveryState, UNSENT};
use crate::records::due::Due;
use crate::request::context::Service;
use crate::request::error::Result;
use crate::request::event::{EventContext, Handled, Unhandled};
use crate::table::Table;
use crate::table::change::Change;
use crate::values::id::{EndpointId, OrgId, WidgetId};
use crate::values::time::Timestamp;

pub use super::release::release;

/// Seconds for which a tick works. The next one begins after sixty.
const BUDGET: i64 = 40;
/// The most endpoints that one tick drains, from each partition of the index.
const ENDPOINTS: i32 = 200;
/// The most attempts at the same time to one endpoint that is drained.
const WIDTH: usize = 32;
/// Ordinals read from the index at once, of deliveries that the stream is to send.
const HANDED_OVER: i32 = 1000;
/// So many of them are made ready at the same time.
const HANDED_OVER_AT_ONCE: usize = 32;
/// Ordinals read from the index at once: more than are sent, for it may still show deliveries that have been sent.
const LOOK_AHEAD: i32 = 128;
/// Milliseconds to wait for the index while it shows only what has been sent.
const INDEX_WAIT: i64 = 200;
/// The most waits of this kind in one tick.
const INDEX_WAITS: u32 = 5;
/// Milliseconds after which a change that comes alone has perhaps ended the process of a larger batch.
const LATE: i64 = 5000;
/// The most milliseconds for which a batch of the stream waits for a rate limit.
const LONGEST_WAIT: i64 = 1000;

/// What it takes to send: the process and its HTTP client.
pub struct Outbox<'a> {
    /// The service of this process.
    pub(super) service: &'a Service,
    /// The HTTP client.
    pub(super) sender: Sender,
    /// What the process may use at the same time.
    pub(super) bounds: Bounds,
    /// Whether every try is counted before it is made.
    pub(super) counts_first: bool,
    /// Deliveries of which a try may have ended its process: they are tried one by one, when nothing else is under way.
    suspects: Mutex<Vec<(Arc<Endpoint>, Delivery)>>,
    /// What the campaigns said whose deliveries it has sent.
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
            bounds: Bounds::default(),
            counts_first: false,
            suspects: Mutex::default(),
            texts: AsyncMutex::default(),
        })
    }

    /// Sends all deliveries of `batch` that are ready, at the same time.
    ///
    /// Lambda splits a batch that ended its process, until the delivery that does so comes alone. Counting the tries of all others would
    /// cost a write each.
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
            // A stream that is so late explains that the delivery was released before.
            if change.age(self.now()) >= UNSENT * 1000 {
                ready.releases = 0;
            }
            let group = groups.entry((tenant.org(), endpoint)).or_insert((cx.table(tenant), Vec::new()));
            // Of several releases of one delivery the first one sends it.
            if !group.1.iter().any(|(_, earlier)| ready.id == earlier.id && ready.is_still(earlier)) {
                group.1.push((at, ready));
            }
        }
        let sends = groups.into_iter().map(|((_, endpoint), (table, ready))| self.send_to(table, endpoint, ready));
        // Every delivery is tried, also where one fails. The first failure tells from where the stream repeats the batch.
        stopped.extend(join_all(sends).await.into_iter().filter_map(Result::err));
        Unhandled::first(stopped)
    }

    /// Drains every endpoint that has deferred deliveries.
    ///
    /// # Errors
    /// The first error of an endpoint; the others are drained nevertheless.
    pub async fn send_deferred(&self, cx: &EventContext<'_>) -> Result<()> {
        let now = self.now();
        let due = self.service.store.due(Due::Endpoint, now, ENDPOINTS).await?;
        let (endpoints, deadline) = (due.iter().filter_map(endpoint_of), now.plus_seconds(BUDGET));
        let drains = endpoints.map(|(tenant, id)| self.drain(cx.table(tenant), id, deadline));
        let drained = join_all(drains).await;
        let mut suspects = std::mem::take(&mut *self.suspects.lock().unwrap_or_else(PoisonError::into_inner));
        // The drains may use the whole budget of every tick. The function's timeout leaves time for one more attempt: each tick tries one suspect at least.
        fastrand::shuffle(&mut suspects);
        for (number, (endpoint, was)) in suspects.into_iter().enumerate() {
            if number == 0 || self.now() < deadline {
                self.attempt(&endpoint, &was).await?;
                endpoint.keep_health(self.now()).await?;
            }
        }
        drained.into_iter().collect()
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.service.clock.now()
    }

    /// Sends what is ready for an endpoint, or defers it where the circuit is open.
    async fn send_to(&self, table: Table, id: EndpointId, ready: Vec<(usize, Delivery)>) -> Handled {
        let first = ready.first().map_or(0, |(at, _)| *at);
        let Some((_, any)) = ready.first() else { return Ok(()) };
        let endpoint = Endpoint::of(table, id, any, self.now()).await.map_err(|error| Unhandled::at(first, error))?;
        // The cascade of the endpoint may be over. It runs once more, so that these deliveries are removed too.
        if let Some(record) = endpoint.deleted() {
            let left = endpoint.table.leave_cascade(record, id.0).await;
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
            // The one before it may have opened the circuit.
            let time = if endpoint.circuit_is_open() { None } else { time_of(number) };
            results.push(send(one, time).await);
        }
        endpoint.keep_health(self.now()).await.map_err(|error| Unhandled::at(first, error))?;
        Unhandled::first(results.into_iter().filter_map(Result::err))
    }

    /// The times at which `count` deliveries may be sent, or as many as the rate limit allows; `None` where the circuit is open.
    async fn send_times(&self, endpoint: &Endpoint, count: usize) -> Result<Option<Vec<Timestamp>>> {
        if endpoint.circuit_is_open() {
            return Ok(None);
        }
        let now = self.now();
        let Some(widget) = endpoint.connector() else { return Ok(Some(vec![now; count])) };
        // The stream waits a second at most: other deliveries are behind these.
        let soon = count.min(self.service.config.rate() as usize);
        let latest = Timestamp::from_unix_millis(now.unix_millis() + LONGEST_WAIT);
        Ok(Some(self.reserve(&endpoint.table, widget, soon, latest).await?))
    }

    /// Reserves times for `count` deliveries to a connector, none of them after `latest`.
    async fn reserve(
        &self,
        table: &Table,
        widget: WidgetId,
        count: usize,
        latest: Timestamp,
    ) -> Result<Vec<Timestamp>> {
        let (rate, count) = (self.service.config.rate(), u32::try_from(count).unwrap_or(u32::MAX));
        Ok(table.reserve_sends((widget, Limited::Send), count, rate, self.now(), latest).await?)
    }

    async fn send_one(&self, endpoint: &Endpoint, seen: &Delivery, time: Option<Timestamp>) -> Result<()> {
        // A delivery that has changed since has a later record in the stream, or was sent when this record came the first time. One that was
        // only released since waits no longer: this record was late, and that explains its releases.
        let stands = endpoint.table.find::<Delivery>((endpoint.id, seen.id)).await?;
        let Some(stands) = stands.filter(|stands| stands.is_still(seen)) else { return Ok(()) };
        let was = if stands == *seen { stands } else { Delivery { releases: 0, ..stands } };
        let Some(time) = time.or(endpoint.has_no_target().then(|| self.now())) else {
            return self.defer(endpoint, &was).await;
        };
        self.service.clock.sleep_until(time).await;
        self.attempt(endpoint, &was).await.map(drop)
    }

    /// Makes the deferred deliveries of an endpoint ready that are due: the stream sends them.
    async fn hand_over(&self, table: &Table, id: EndpointId, deadline: Timestamp) -> Result<()> {
        let mut seen = BTreeSet::new();
        while self.now() < deadline {
            let now = self.now();
            let ordinals = table.deferred_deliveries(id, now, HANDED_OVER).await?;
            let new: Vec<u64> = ordinals.into_iter().filter(|ordinal| seen.insert(*ordinal)).collect();
            // What the index still shows was handed over just now.
            if new.is_empty() {
                break;
            }
            for some in new.chunks(HANDED_OVER_AT_ONCE) {
                let mut held = table.deliveries_at(id, some).await?;
                held.retain(|was| was.is_held() && was.is_due(now) && !was.is_suspect());
                let ready =
                    held.iter().map(async |was| table.replace_delivery(id, was, &was.clone().released(now)).await);
                try_join_all(ready.collect::<Vec<_>>()).await?;
            }
        }
        Ok(())
    }

    /// Sends the deferred deliveries of an endpoint: first one as a probe, then twice as many each time one of them arrives. Stops when
    /// none arrives. Once many arrive at the same time, a webhook is healthy again, and the stream sends the rest; a connector has a rate limit.
    async fn drain(&self, table: Table, id: EndpointId, deadline: Timestamp) -> Result<()> {
        let (mut width, mut tried, mut stale) = (1, BTreeSet::new(), 0);
        let mut endpoint: Option<Arc<Endpoint>> = None;
        loop {
            let now = self.now();
            let ordinals =
                if now < deadline { table.deferred_deliveries(id, now, LOOK_AHEAD).await? } else { Vec::new() };
            let mut deferred = Vec::new();
            // The index is eventually consistent: for a moment it still shows what has just been sent.
            let next: Vec<u64> =
                ordinals.iter().copied().filter(|ordinal| !tried.contains(ordinal)).take(width).collect();
            deferred.extend(table.deliveries_at(id, &next).await?.into_iter().filter(|stored| stored.is_due(now)));
            tried.extend(next);
            if deferred.is_empty() && !ordinals.is_empty() && now < deadline {
                let shortly = Timestamp::from_unix_millis(now.unix_millis() + INDEX_WAIT);
                self.service.clock.sleep_until(shortly).await;
                stale += 1;
                if stale < INDEX_WAITS {
                    continue;
                }
            }
            if endpoint.is_none() {
                endpoint = Some(Arc::new(match deferred.first() {
                    Some(delivery) => Endpoint::of(table.clone(), id, delivery, now).await?,
                    None => Endpoint::stored(table.clone(), id, now).await?,
                }));
            }
            let Some(endpoint) = &endpoint else { return Ok(()) };
            let (suspects, deferred): (Vec<Delivery>, Vec<Delivery>) =
                deferred.into_iter().partition(Delivery::is_suspect);
            if !suspects.is_empty() {
                let mut all = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
                all.extend(suspects.into_iter().map(|suspect| (Arc::clone(endpoint), suspect)));
                if deferred.is_empty() {
                    continue;
                }
            }
            if deferred.is_empty() {
                if endpoint.is_looked_at_again() && now < deadline {
                    for held in table.held_deliveries(id).await? {
                        // One that the index does not show keeps the endpoint among those that are drained, until it has ended.
                        endpoint.note_deferral(now);
                        if held.is_due(now) && self.now() < deadline {
                            self.attempt(endpoint, &held).await?;
                        }
                    }
                }
                return Ok(endpoint.end_drain(self.now()).await?);
            }
            let times = match endpoint.connector() {
                Some(widget) => self.reserve(&table, widget, deferred.len(), deadline).await?,
                None => vec![now; deferred.len()],
            };
            let sends = deferred.iter().zip(times).map(async |(was, time)| {
                self.service.clock.sleep_until(time).await;
                self.attempt(endpoint, was).await
            });
            let tried: Vec<Tried> = join_all(sends).await.into_iter().collect::<Result<_>>()?;
            if !tried.is_empty() && tried.iter().all(|tried| *tried == Tried::Parked) {
                // That tells nothing of the endpoint.
                continue;
            }
            // Without a target nothing can arrive: all of them are given up.
            if !endpoint.has_no_target() && !tried.contains(&Tried::Arrived) {
                return Ok(endpoint.end_drain(self.now()).await?);
            }
            if endpoint.connector().is_some() {
                width = (width * 2).min(self.service.config.rate() as usize);
            } else if width >= WIDTH && !endpoint.has_no_target() && !endpoint.circuit_is_open() {
                // It is as healthy as it was before, so the stream sends the rest, beside what is new.
                self.hand_over(&table, id, deadline).await?;
                return Ok(endpoint.end_drain(self.now()).await?);
            } else {
                width = (width * 2).min(WIDTH);
            }
        }
    }
}
