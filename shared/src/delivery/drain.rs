//! Drains an endpoint: sends its deferred deliveries, first one as a probe, then twice as many as before whenever one
//! of them arrives.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use futures_util::future::{join_all, try_join_all};

use crate::delivery::attempt::AttemptEnd;
use crate::delivery::endpoint::Endpoint;
use crate::delivery::outbox::Outbox;
use crate::records::delivery::{self, Delivery, DeliveryOutcome};
use crate::request::error::Result;
use crate::table::Table;
use crate::values::id::EndpointId;
use crate::values::time::Timestamp;

/// The most concurrent attempts to an endpoint that is drained.
const WIDTH: usize = 32;
/// Ordinals that are read from the index at once, of deliveries that the stream will send.
const HANDED_OVER: i32 = 1000;
/// The number of these deliveries that are made ready at the same time.
const HANDED_OVER_AT_ONCE: usize = 32;
/// Ordinals that are read from the index at once: more than are sent, since the index may still show sent deliveries.
const LOOK_AHEAD: i32 = 128;
/// Milliseconds to wait for the index while it shows only sent deliveries.
const INDEX_WAIT: i64 = 200;
/// The most waits of this kind in one tick.
const INDEX_WAITS: u32 = 5;

/// An endpoint that is being drained.
struct Drain {
    table: Table,
    id: EndpointId,
    deadline: Timestamp,
    /// The number of deliveries to send next.
    width: usize,
    /// The ordinals that were read: the index still shows them for a moment.
    read: BTreeSet<u64>,
    /// The number of waits for the index.
    waits: u32,
    endpoint: Option<Arc<Endpoint>>,
}

/// The next step after the attempts of a batch.
enum DrainStep {
    /// The same number of deliveries again.
    Same,
    /// Twice as many deliveries, up to this number.
    Wider(usize),
    /// The stream sends the rest, together with new deliveries: the endpoint is as healthy as before.
    HandOver,
    /// The end of the drain in this tick.
    End,
}

impl Outbox<'_> {
    /// Sends the deferred deliveries of an endpoint until none arrives, or until `deadline`.
    pub(super) async fn drain(&self, table: Table, id: EndpointId, deadline: Timestamp) -> Result<()> {
        let (read, waits) = (BTreeSet::new(), 0);
        let mut drain = Drain { table, id, deadline, width: 1, read, waits, endpoint: None };
        loop {
            let batch = self.next_batch(&mut drain).await?;
            let Some(endpoint) = drain.endpoint.clone() else { return Ok(()) };
            let next = if batch.is_empty() {
                self.send_unindexed(&endpoint, deadline).await?;
                DrainStep::End
            } else {
                let ends = self.send_batch(&endpoint, &batch, deadline).await?;
                self.next(&endpoint, &ends, drain.width)
            };
            match next {
                DrainStep::Same => {}
                DrainStep::Wider(most) => drain.width = (drain.width * 2).min(most),
                DrainStep::HandOver => {
                    // What happens now must not wait in the stream for what is sent again.
                    if batch.iter().any(Delivery::is_recovered) {
                        continue;
                    }
                    self.hand_over(&endpoint, deadline).await?;
                    return Ok(endpoint.end_drain(self.now()).await?);
                }
                DrainStep::End => return Ok(endpoint.end_drain(self.now()).await?),
            }
        }
    }

    /// The next deferred deliveries that are due, without suspect ones; empty if there are none. Reads the endpoint
    /// with the first of them.
    async fn next_batch(&self, drain: &mut Drain) -> Result<Vec<Delivery>> {
        loop {
            let now = self.now();
            let Drain { table, id, .. } = &*drain;
            let ordinals =
                if now < drain.deadline { delivery::deferred(table, *id, now, LOOK_AHEAD).await? } else { Vec::new() };
            let new = ordinals.iter().copied().filter(|ordinal| !drain.read.contains(ordinal));
            let new: Vec<u64> = new.take(drain.width).collect();
            let mut deferred = delivery::all_at(table, *id, &new).await?;
            deferred.retain(|stored| stored.is_due(now));
            drain.read.extend(new);
            // The index is eventually consistent: for a moment it still shows deliveries that were just sent.
            if deferred.is_empty() && !ordinals.is_empty() && drain.waits < INDEX_WAITS {
                let shortly = Timestamp::from_unix_millis(now.unix_millis() + INDEX_WAIT);
                self.service.clock.sleep_until(shortly).await;
                drain.waits += 1;
                if drain.waits < INDEX_WAITS {
                    continue;
                }
            }
            let endpoint = drain.endpoint(deferred.first(), now).await?;
            let (suspects, others): (Vec<Delivery>, Vec<Delivery>) =
                deferred.into_iter().partition(Delivery::is_suspect);
            if suspects.is_empty() || !others.is_empty() {
                self.set_aside(&endpoint, suspects);
                return Ok(others);
            }
            self.set_aside(&endpoint, suspects);
        }
    }

    /// Leaves deliveries that may crash the process to the end of the tick.
    fn set_aside(&self, endpoint: &Arc<Endpoint>, suspects: Vec<Delivery>) {
        let mut all = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(suspects.into_iter().map(|suspect| (Arc::clone(endpoint), suspect)));
    }

    /// Sends deliveries at the same time, within the rate limit of a connector.
    async fn send_batch(
        &self,
        endpoint: &Endpoint,
        batch: &[Delivery],
        deadline: Timestamp,
    ) -> Result<Vec<AttemptEnd>> {
        let times = match endpoint.connector() {
            Some(widget) => self.reserve(&endpoint.table, widget, batch.len(), deadline).await?,
            None => vec![self.now(); batch.len()],
        };
        let sends = batch.iter().zip(times).map(async |(was, time)| {
            self.service.clock.sleep_until(time).await;
            self.attempt(endpoint, was).await
        });
        join_all(sends).await.into_iter().collect()
    }

    /// The next step after the attempts of a batch. Once many deliveries arrive at the same time, a webhook is healthy
    /// again; a connector has a rate limit.
    fn next(&self, endpoint: &Endpoint, ends: &[AttemptEnd], width: usize) -> DrainStep {
        if !ends.is_empty() && ends.iter().all(|end| *end == AttemptEnd::Parked) {
            // A paused campaign shows nothing about the endpoint.
            return DrainStep::Same;
        }
        // Without a target nothing can arrive: all deliveries are given up.
        if !endpoint.has_no_target() && !ends.contains(&AttemptEnd::Arrived) {
            return DrainStep::End;
        }
        let rate = endpoint.connector().map(|_| self.service.config.rate() as usize);
        // Only so many answers at once show that an endpoint that was slow within the hour is as quick as the stream
        // needs it.
        if ends.len() >= rate.map_or(WIDTH, |rate| rate.min(WIDTH))
            && ends.iter().all(|end| *end == AttemptEnd::Arrived)
        {
            endpoint.note_recovery();
        }
        if let Some(rate) = rate {
            DrainStep::Wider(rate)
        } else if width >= WIDTH && !endpoint.has_no_target() && !endpoint.circuit_is_open(self.now()) {
            DrainStep::HandOver
        } else {
            DrainStep::Wider(WIDTH)
        }
    }

    /// Sends deliveries that are missing in the index, if the last drain found the index empty.
    async fn send_unindexed(&self, endpoint: &Endpoint, deadline: Timestamp) -> Result<()> {
        let now = self.now();
        if !endpoint.index_was_empty() || now >= deadline {
            return Ok(());
        }
        for held in delivery::held(&endpoint.table, endpoint.id).await? {
            // The deferral keeps the endpoint on the list of the tick until this delivery has ended.
            endpoint.note_deferral(now);
            if held.is_due(now) && self.now() < deadline {
                self.attempt(endpoint, &held).await?;
            }
        }
        Ok(())
    }

    /// Makes the due deferred deliveries of an endpoint ready, so that the stream sends them.
    async fn hand_over(&self, endpoint: &Endpoint, deadline: Timestamp) -> Result<()> {
        let (table, id, mut seen) = (&endpoint.table, endpoint.id, BTreeSet::new());
        while self.now() < deadline {
            let now = self.now();
            let ordinals = delivery::deferred(table, id, now, HANDED_OVER).await?;
            let new: Vec<u64> = ordinals.into_iter().filter(|ordinal| seen.insert(*ordinal)).collect();
            // Any delivery that the index still shows was handed over just now.
            if new.is_empty() {
                break;
            }
            for some in new.chunks(HANDED_OVER_AT_ONCE) {
                let mut held = delivery::all_at(table, id, some).await?;
                held.retain(|was| was.is_held() && !was.is_recovered() && was.is_due(now) && !was.is_suspect());
                let ready = held
                    .iter()
                    .map(|was| table.replace((id, was.id), was, was.clone().decide(DeliveryOutcome::Released, now)));
                try_join_all(ready.collect::<Vec<_>>()).await?;
            }
        }
        Ok(())
    }
}

impl Drain {
    /// The endpoint, which is read once: from its first delivery, or from its health if there is none.
    async fn endpoint(&mut self, first: Option<&Delivery>, now: Timestamp) -> Result<Arc<Endpoint>> {
        if let Some(endpoint) = &self.endpoint {
            return Ok(Arc::clone(endpoint));
        }
        let (table, id) = (self.table.clone(), self.id);
        let endpoint = Arc::new(match first {
            Some(delivery) => Endpoint::of(table, id, delivery, now).await?,
            None => Endpoint::stored(table, id, now).await?,
        });
        self.endpoint = Some(Arc::clone(&endpoint));
        Ok(endpoint)
    }
}
