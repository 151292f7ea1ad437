//! The outbox at work: sends what is ready, holds back what would keep others waiting, and makes ready what has become due.
//!
//! A delivery that fails waits for its time, and is then sent with everybody else's. Not so where its endpoint keeps failing, or is
//! slow: a batch takes as long as its slowest attempt. What is for such an endpoint is held back, and sent by the tick of every minute:
//! one delivery first, twice as many as long as one of them arrives. A connector has a rate; what cannot be sent within a second is held
//! back too.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{join_all, try_join_all};

use crate::delivery::endpoint::Endpoint;
use crate::delivery::sender::Sender;
use crate::records::campaign::rate_limit::Limited;
use crate::records::delivery::storage::{Due, delivery_of, endpoint_of};
use crate::records::delivery::{Delivery, DeliveryState};
use crate::request::context::Service;
use crate::request::error::Result;
use crate::runtime::schedule::EventContext;
use crate::runtime::stream::{Change, Handled, Unhandled};
use crate::table::Table;
use crate::values::id::{EndpointId, WidgetId};
use crate::values::time::Timestamp;

pub use super::release::release;

/// Seconds that a tick works for: the next one comes after sixty.
const BUDGET: i64 = 40;
/// Endpoints looked after in one tick, of each partition of the index.
const ENDPOINTS: i32 = 200;
/// The most attempts at once to one endpoint that was held back from.
const WIDTH: usize = 32;
/// Places that are read ahead from the index, which may show some that have been sent.
const LOOK_AHEAD: i32 = 128;
/// Milliseconds that the index is given to catch up, and how often.
const CATCHING_UP: i64 = 200;
const MOST_STALE: u32 = 5;
/// Milliseconds that a delivery may wait, with its batch, for its turn under a rate.
const PATIENCE: i64 = 1000;

/// What sending takes.
pub struct Outbox<'a> {
    /// The process's own.
    pub(super) service: &'a Service,
    /// The HTTP client.
    pub(super) sender: Sender,
}

impl<'a> Outbox<'a> {
    /// The outbox of this process.
    ///
    /// # Errors
    /// Where there is no HTTP client to be had.
    pub fn new(cx: &EventContext<'a>) -> Result<Self> {
        Ok(Self { service: cx.service, sender: Sender::of(&cx.service.network)? })
    }

    /// Sends all deliveries of `batch` that are ready, all at once.
    ///
    /// # Errors
    /// The first that could neither be sent nor be given up.
    pub async fn send(&self, cx: &EventContext<'_>, batch: &[Change]) -> Handled {
        let mut groups: BTreeMap<_, (Table, Vec<(usize, Delivery)>)> = BTreeMap::new();
        let mut stopped = Vec::new();
        for (at, change) in batch.iter().enumerate() {
            let Some((tenant, endpoint, _)) = delivery_of(&change.key()) else { continue };
            let record = change.record::<Delivery>().unwrap_or_else(|error| {
                stopped.push(Unhandled::at(at, error));
                None
            });
            let Some(ready) = record.filter(|stored| stored.state == DeliveryState::Ready) else { continue };
            let group = groups.entry((tenant.org(), endpoint)).or_insert((cx.table(tenant), Vec::new()));
            group.1.push((at, ready));
        }
        let sends = groups.into_iter().map(|((_, endpoint), (table, ready))| self.send_to(table, endpoint, ready));
        // All of them come to their end, whatever becomes of one; the first that has to come again tells where the batch stopped.
        stopped.extend(join_all(sends).await.into_iter().filter_map(Result::err));
        Unhandled::first(stopped)
    }

    /// Sends what was held back, from every endpoint that something was held back from.
    ///
    /// # Errors
    /// Whatever kept it from one of them; the others are looked after all the same.
    pub async fn send_held(&self, cx: &EventContext<'_>) -> Result<()> {
        let now = self.now();
        let due = self.service.store.due(Due::Endpoint, now, ENDPOINTS).await?;
        let endpoints = due.iter().filter_map(endpoint_of);
        let turns = endpoints.map(|(tenant, id)| self.look_after(cx.table(tenant), id, now.plus_seconds(BUDGET)));
        join_all(turns).await.into_iter().collect()
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.service.clock.now()
    }

    /// Sends what is ready for an endpoint, unless that fares badly: then it is held back.
    async fn send_to(&self, table: Table, id: EndpointId, ready: Vec<(usize, Delivery)>) -> Handled {
        let first = ready.first().map_or(0, |(at, _)| *at);
        let Some((_, any)) = ready.first() else { return Ok(()) };
        let endpoint = Endpoint::of(table, id, any).await.map_err(|error| Unhandled::at(first, error))?;
        let turns = self.turns(&endpoint, ready.len()).await.map_err(|error| Unhandled::at(first, error))?;
        let sends = ready.iter().enumerate().map(|(number, (at, seen))| {
            let (endpoint, turn) = (&endpoint, turns.as_ref().and_then(|turns| turns.get(number)));
            async move { self.send_one(endpoint, seen, turn.copied()).await.map_err(|error| Unhandled::at(*at, error)) }
        });
        let results = join_all(sends).await;
        endpoint.keep_health(self.now()).await.map_err(|error| Unhandled::at(first, error))?;
        Unhandled::first(results.into_iter().filter_map(Result::err))
    }

    /// When each of `count` deliveries may be sent; `None` where the endpoint's are held back.
    async fn turns(&self, endpoint: &Endpoint, count: usize) -> Result<Option<Vec<Timestamp>>> {
        if endpoint.is_held() {
            return Ok(None);
        }
        let now = self.now();
        let Some(widget) = endpoint.connector() else { return Ok(Some(vec![now; count])) };
        // What cannot be sent within a second is not waited for in the stream, where others stand behind it.
        let soon = count.min(self.service.config.rate() as usize);
        let latest = Timestamp::from_unix_millis(now.unix_millis() + PATIENCE);
        Ok(Some(self.slots(&endpoint.table, widget, soon, latest).await?))
    }

    /// When a connector may be sent `count` deliveries; never where it would be after `latest`.
    async fn slots(&self, table: &Table, widget: WidgetId, count: usize, latest: Timestamp) -> Result<Vec<Timestamp>> {
        let (rate, count) = (self.service.config.rate(), u32::try_from(count).unwrap_or(u32::MAX));
        Ok(table.reserve((widget, Limited::Send), count, rate, self.now(), latest).await?)
    }

    async fn send_one(&self, endpoint: &Endpoint, seen: &Delivery, turn: Option<Timestamp>) -> Result<()> {
        // What has changed since is told by a change of its own, or was sent when this one came before.
        let stands = endpoint.table.find::<Delivery>((endpoint.id, seen.id)).await?;
        let Some(was) = stands.filter(|stands| stands == seen) else { return Ok(()) };
        let Some(turn) = turn.or(endpoint.is_dead().then(|| self.now())) else {
            return self.hold(endpoint, &was).await;
        };
        self.service.clock.sleep_until(turn).await;
        self.attempt(endpoint, &was).await.map(drop)
    }

    /// Sends what was held back from an endpoint: one at first, twice as many each time one of them arrives, and none any more once
    /// none does.
    async fn look_after(&self, table: Table, id: EndpointId, deadline: Timestamp) -> Result<()> {
        let (mut width, mut tried, mut stale) = (1, BTreeSet::new(), 0);
        let mut endpoint: Option<Endpoint> = None;
        loop {
            let now = self.now();
            let places = if now < deadline { table.held_back(id, now, LOOK_AHEAD).await? } else { Vec::new() };
            let mut held = Vec::new();
            // The index goes on for a moment showing what has just been sent.
            let next: Vec<u32> = places.iter().copied().filter(|place| !tried.contains(place)).take(width).collect();
            for found in try_join_all(next.iter().map(|place| table.delivery_at(id, *place))).await? {
                held.extend(found.filter(|stored| stored.due_at.is_some_and(|due| due <= now)));
            }
            tried.extend(next);
            if held.is_empty() && !places.is_empty() && now < deadline {
                let shortly = Timestamp::from_unix_millis(now.unix_millis() + CATCHING_UP);
                self.service.clock.sleep_until(shortly).await;
                stale += 1;
                if stale < MOST_STALE {
                    continue;
                }
            }
            if endpoint.is_none() {
                endpoint = Some(match held.first() {
                    Some(delivery) => Endpoint::of(table.clone(), id, delivery).await?,
                    None => Endpoint::known(table.clone(), id).await?,
                });
            }
            let Some(endpoint) = &endpoint else { return Ok(()) };
            if held.is_empty() {
                return Ok(endpoint.look_after_again(self.now()).await?);
            }
            let turns = match endpoint.connector() {
                Some(widget) => self.slots(&table, widget, held.len(), deadline).await?,
                None => vec![now; held.len()],
            };
            let sends = held.iter().zip(turns).map(async |(was, turn)| {
                self.service.clock.sleep_until(turn).await;
                self.attempt(endpoint, was).await
            });
            // Where nothing can be sent at all, nobody waits for one that arrives.
            let mut arrived = endpoint.is_dead();
            for attempted in join_all(sends).await {
                arrived |= attempted?;
            }
            if !arrived {
                return Ok(endpoint.look_after_again(self.now()).await?);
            }
            let widest = if endpoint.connector().is_some() { self.service.config.rate() as usize } else { WIDTH };
            width = (width * 2).min(widest);
        }
    }
}
