//! Recovery: a webhook gets again what did not arrive.
//!
//! The log of events says what the webhook should have got, and its deliveries say what it got. What is missing gets a
//! delivery, and what was given up gets further attempts. Only the tick sends both, so that events of now do not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::input::bounded::UpTo;
use crate::input::{Issues, Location};
use crate::records::captured_form::FormWebhooks;
use crate::records::delivery::{self, Delivery, DeliveryState, NewDelivery, Observed, health};
use crate::records::event::{self, EVENT_DAYS, Event, EventId, EventKind, FoundEvents, LogStretch, unknown_after};
use crate::records::webhook::Webhook;
use crate::records::webhook::subscription::{EventPattern, Subscriptions};
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::page::{Order, PageQuery};
use crate::table::{Table, TableError};
use crate::values::id::{AssistantId, DeliveryId, EndpointId, WebhookId};
use crate::values::time::Timestamp;

/// The most events that one request compares with the deliveries.
const MOST: usize = 1000;
/// The events of the log that are compared at once: each has at most two markers.
const AT_ONCE: usize = 40;
/// The deliveries that are changed at the same time.
const CONCURRENT: usize = 16;
/// The pages of the webhook's newest deliveries that are read, and the deliveries on each.
const NEWEST: (i64, i64) = (50, 100);

crate::input! {
    /// What is sent again.
    pub struct Recovery {
        /// Events from this time on. The log has those of the last 30 days.
        pub since: Timestamp,
        /// Events up to this time; without it, all since then.
        pub until: Option<Timestamp> = None,
        /// Only these events: types as in a webhook's `events`. Empty: all to which the webhook subscribes.
        pub events: UpTo<100, EventPattern> = UpTo::default(),
        /// The `next` of the answer before. Without it, the recovery begins with the first event since then.
        pub after: Option<EventId> = None,
    }
}

crate::object! {
    /// How much is sent again.
    pub struct RecoveredEvents {
        /// How many events this request has found that are sent again.
        pub recovered: u64,
        /// The value of `after` with which the recovery goes on; null if there is nothing more to look at.
        pub next: Option<EventId>,
    }
}

impl Recovery {
    /// Checks the times.
    fn check(&self) -> Result<()> {
        if self.until.is_none_or(|until| self.since <= until) {
            return Ok(());
        }
        let at = Location::body().name("until");
        Err(Error::Invalid(Issues::from([at.issue("value_error", "Input should not be before 'since'")])))
    }

    fn includes(&self, kind: EventKind) -> bool {
        self.events.0.is_empty() || self.events.0.iter().any(|pattern| pattern.includes(kind))
    }

    fn is_within(&self, at: Timestamp) -> bool {
        self.since <= at && self.until.is_none_or(|until| at <= until)
    }
}

/// Sends again what did not arrive at the webhook `id`, for the request `by`. A repeat of the request adds nothing.
///
/// # Errors
/// [`Error::Invalid`] for wrong times, 404 without the webhook, [`Error::Conflict`] if nothing is sent to it.
pub async fn recover(
    table: &Table,
    id: WebhookId,
    recovery: &Recovery,
    (by, now): (Uuid, Timestamp),
) -> Result<RecoveredEvents> {
    recovery.check()?;
    let webhook = table.get::<Webhook>(id).await.on_missing("webhook_id")?;
    webhook.require_deliveries()?;
    let Recovery { since, until, after, .. } = *recovery;
    let since = since.max(now.plus_seconds(-EVENT_DAYS * 86_400));
    // The webhook that an assistant or a form names gets some events also without a subscription.
    let may_be_its_own = |kind: EventKind| kind == EventKind::CONVERSATION_CLOSED || FormWebhooks::get(kind);
    let is_wanted = |kind: EventKind| recovery.includes(kind) && (webhook.includes(kind) || may_be_its_own(kind));
    let found = event::find(table, &LogStretch { after, since, until, most: MOST }, is_wanted, now).await;
    let FoundEvents { wanted, next } = found.map_err(|error| unknown_after(error, &Location::body()))?;
    let subscriptions = Subscriptions::of(Arc::new(vec![webhook]));
    let recovered = BTreeSet::new();
    let mut recovering = Recovering { table, id, subscriptions, by, now, is_noted: false, recovered };
    for some in wanted.chunks(AT_ONCE) {
        recovering.compare(some).await?;
    }
    if after.is_none() {
        recovering.unlogged(recovery).await?;
    }
    Ok(RecoveredEvents { recovered: recovering.recovered.len() as u64, next })
}

/// A recovery under way.
struct Recovering<'a> {
    table: &'a Table,
    id: WebhookId,
    subscriptions: Subscriptions,
    by: Uuid,
    now: Timestamp,
    /// Whether the tick looks for deliveries to this endpoint.
    is_noted: bool,
    /// The deliveries that are sent again, also those that an earlier attempt of the request has found.
    recovered: BTreeSet<DeliveryId>,
}

impl Recovering<'_> {
    /// Compares events of the log with the deliveries.
    async fn compare(&mut self, events: &[(EventId, EventKind)]) -> Result<()> {
        let endpoint = EndpointId::from(self.id);
        let existing = delivery::existing(self.table, endpoint, events).await?;
        let missing = events.iter().map(|(id, _)| *id).filter(|id| !existing.contains_key(id));
        let missing = event::read(self.table, &missing.collect::<Vec<_>>()).await?;
        let named = self.named(&missing).await?;
        let of_forms = FormWebhooks::of(self.table, &missing).await?;
        let is_of_form = |event: &Event| of_forms.named(event) == Some(self.id);
        let delivery = |event: &Event| self.new_delivery(event, &named, is_of_form(event));
        let new: Vec<NewDelivery> = missing.iter().filter_map(delivery).collect();
        if !new.is_empty() {
            self.note().await?;
            self.recovered.extend(delivery::enqueue(self.table, endpoint, &new, self.now).await?);
        }
        self.revive(existing.into_values().flatten()).await
    }

    /// The webhooks that the assistants of these events name, as far as it matters who gets them.
    async fn named(&self, events: &[Event]) -> Result<BTreeMap<AssistantId, WebhookId>, TableError> {
        let by_default = events.iter().filter(|event| Subscriptions::is_default(event.event));
        let assistants: BTreeSet<AssistantId> = by_default.filter_map(|event| event.of_assistant).collect();
        delivery::named_webhooks(self.table, &assistants).await
    }

    /// The delivery of an event that the webhook did not get; `None` if it does not get such events.
    fn new_delivery(
        &self,
        event: &Event,
        named: &BTreeMap<AssistantId, WebhookId>,
        is_of_form: bool,
    ) -> Option<NewDelivery> {
        let of_assistant = event.of_assistant.and_then(|assistant| named.get(&assistant).copied());
        let is_its_own = event.event == EventKind::CONVERSATION_CLOSED && of_assistant == Some(self.id);
        let is_about_it = event.event == EventKind::WEBHOOK_DISABLED && event.is_about(self.id.0);
        let subscribes = self.subscriptions.to(event.event, event.scope(), named).next().is_some();
        let has_expired = event.ttl <= self.now.unix_seconds();
        let gets_it = is_its_own || is_of_form || (subscribes && !is_about_it);
        let new = NewDelivery { recovered_by: Some(self.by), logged: !is_its_own, ..NewDelivery::logged(event) };
        (gets_it && !has_expired).then_some(new)
    }

    /// Looks among the newest deliveries for conversations whose close is in no log, because only the webhook of the
    /// assistant got it.
    async fn unlogged(&mut self, recovery: &Recovery) -> Result<()> {
        if !recovery.includes(EventKind::CONVERSATION_CLOSED) {
            return Ok(());
        }
        for number in 1..=NEWEST.0 {
            let query = PageQuery { order: Order::Descending, ..PageQuery::oldest_first(number, NEWEST.1) };
            let page = self.table.page::<Delivery>(self.id.into(), &query).await?;
            let is_last = page.next_page.is_none() || page.items.iter().all(|made| made.created_at < recovery.since);
            let closed = page.items.into_iter().filter(|made| {
                made.event == EventKind::CONVERSATION_CLOSED && !made.logged && recovery.is_within(made.created_at)
            });
            self.revive(closed).await?;
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// Lets the tick send the deliveries that were given up.
    async fn revive(&mut self, deliveries: impl Iterator<Item = Delivery>) -> Result<()> {
        let is_of_this = |made: &Delivery| made.state == DeliveryState::Dead || made.asked_by == Some(self.by);
        let wanted: Vec<Delivery> = deliveries.filter(is_of_this).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        self.note().await?;
        let (table, endpoint, by, now) = (self.table, self.id.into(), self.by, self.now);
        let revive: Vec<_> = wanted.iter().map(|was| delivery::revive(table, endpoint, was, by, now)).collect();
        let revived: Vec<bool> = stream::iter(revive).buffered(CONCURRENT).try_collect().await?;
        self.recovered.extend(wanted.iter().zip(revived).filter(|(_, revived)| *revived).map(|(was, _)| was.id));
        Ok(())
    }

    /// Lets the tick look for deliveries to this endpoint: this comes before the first of them, which would be lost
    /// otherwise.
    async fn note(&mut self) -> Result<(), TableError> {
        if !self.is_noted {
            let seen = health::of(self.table, self.id.into()).await?;
            // An earlier attempt of the request may have noted it, and the tick still looks.
            if seen.due_at.is_none() || seen.looked || !seen.has_noted_deferral(self.now) {
                let deferred = Observed { deferred_at: Some(self.now), ..Observed::default() };
                health::keep(self.table, &seen, &deferred, self.now, self.now).await?;
            }
            self.is_noted = true;
        }
        Ok(())
    }
}
