//! How deliveries are stored, and the index of due deliveries.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use uuid::Uuid;

use crate::bucket::kept::KEPT_DAYS;
use crate::records::assistant::Assistant;
use crate::records::conversation::Conversation;
use crate::records::delivery::{Delivery, DeliveryOutcome, DeliveryState, EndpointHealth, NewDelivery};
use crate::records::event::{self, Event, EventId, EventKind};
use crate::records::webhook::Webhook;
use crate::records::webhook::subscription::EventScope;
use crate::table::error::Cancelled;
use crate::table::item::{from_item, readable, target_id};
use crate::table::keys::{Key, list_row, made_by, row_of};
use crate::table::stored::{Listed as _, Stored as _};
use crate::table::transaction::Transaction;
use crate::table::{Table, TableError};
use crate::values::id::{AssistantId, DeliveryId, EndpointId, WebhookId, ordinal};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// The partition of the index for the deferred deliveries of one endpoint: other endpoints do not wait for them,
/// however many there are.
pub(super) fn deferred_partition(endpoint: EndpointId) -> String {
    format!("DEFERRED#{endpoint}")
}

/// The organisation, the endpoint, and the ordinal in the endpoint's list, from the key of a delivery.
pub fn delivery_of(key: &Key) -> Option<(Tenant, EndpointId, u64)> {
    let (tenant, list, ordinal) = row_of(key)?;
    let endpoint = EndpointId(list.strip_prefix("DELIVERY#")?.parse().ok()?);
    Some((tenant, endpoint, ordinal))
}

/// The organisation and the endpoint, from the key of an endpoint's health.
pub fn endpoint_of(key: &Key) -> Option<(Tenant, EndpointId)> {
    let tenant = Tenant::of_partition_key(&key.pk)?;
    let endpoint = EndpointId(key.pk.rsplit('#').next()?.parse().ok()?);
    (*key == EndpointHealth::key(&tenant, endpoint)).then_some((tenant, endpoint))
}

/// The number of deliveries of an endpoint that are read if the index may have missed one.
const NEWEST: u64 = 10_000;

/// Seconds for which the table remembers that an event has its delivery. A change that the stream gave up may be half a
/// day old when it is put into the bucket, and the bucket's rule may remove it a day or two late.
const REMEMBERED: i64 = (KEPT_DAYS + 5) * 86_400;

/// The most deliveries in one transaction: each takes one action for itself and one for the marker of its event.
const AT_ONCE: usize = 40;

impl<M> Transaction<'_, M> {
    /// Adds a delivery of `new` to `endpoint` at a reserved ordinal, on condition that the event has none yet. The
    /// condition is the first of the two actions; if it fails, the reason is `repeated`.
    ///
    /// # Errors
    /// [`TableError::Broken`] where the delivery cannot be an item.
    pub fn deliver(
        &mut self,
        endpoint: EndpointId,
        ordinal: u64,
        new: NewDelivery,
        repeated: M,
        now: Timestamp,
    ) -> Result<DeliveryId, TableError> {
        let id = new.id(ordinal);
        self.made_by_until(new.origin(endpoint), id.0, now.plus_seconds(REMEMBERED)).or(repeated);
        self.insert((endpoint, id), &Delivery::new(id, new, now))?;
        Ok(id)
    }
}

/// Adds deliveries to `endpoint`, except for events that have one already. Returns the ids of all.
///
/// # Errors
/// [`TableError`]: some may have been added.
pub async fn enqueue(
    table: &Table,
    endpoint: EndpointId,
    new: &[NewDelivery],
    now: Timestamp,
) -> Result<Vec<DeliveryId>, TableError> {
    let mut ids = Vec::new();
    for new in new.chunks(AT_ONCE) {
        let mut left = new.to_vec();
        while !left.is_empty() {
            let count = left.len() as u64;
            let reserved = table.reserve::<Delivery>(endpoint, count).await?;
            let mut transaction = Transaction::new(table);
            let deliver =
                |(new, ordinal): (&NewDelivery, u64)| transaction.deliver(endpoint, ordinal, new.clone(), (), now);
            let made = left.iter().zip(reserved.ordinals()).map(deliver).collect::<Result<Vec<_>, _>>()?;
            match transaction.commit_reserved([reserved]).await {
                Ok(()) => {
                    ids.extend(made);
                    break;
                }
                Err(Cancelled::Condition(..)) => {
                    // The change that caused them is processed again: most of its deliveries exist.
                    let markers: Vec<Key> =
                        left.iter().map(|new| made_by(&table.tenant, new.origin(endpoint))).collect();
                    let made = table.store.get_attributes(&markers, "pk, sk, id").await?;
                    for (index, key) in markers.iter().enumerate().rev() {
                        if let Some(marker) = made.get(key) {
                            left.remove(index);
                            ids.push(DeliveryId(target_id(marker)?));
                        }
                    }
                }
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
    }
    let lateness = new.iter().map(|new| now.unix_seconds() - new.at.unix_seconds()).max();
    table.note_lateness::<Delivery>(endpoint, lateness.unwrap_or_default()).await?;
    Ok(ids)
}

/// The delivery at `ordinal` of an endpoint's list.
///
/// # Errors
/// [`TableError`].
pub async fn at(table: &Table, endpoint: EndpointId, ordinal: u64) -> Result<Option<Delivery>, TableError> {
    let key = list_row(&table.tenant, &Delivery::list(endpoint), ordinal);
    table.store.get(&key).await?.map(from_item).transpose()
}

/// The deliveries at these ordinals of an endpoint's list, in their order; missing ones are left out.
///
/// # Errors
/// [`TableError`].
pub async fn all_at(table: &Table, endpoint: EndpointId, ordinals: &[u64]) -> Result<Vec<Delivery>, TableError> {
    let list = Delivery::list(endpoint);
    let keys: Vec<Key> = ordinals.iter().map(|ordinal| list_row(&table.tenant, &list, *ordinal)).collect();
    let mut deliveries: Vec<Delivery> = readable(table.store.get_all(&keys).await?);
    let place = |delivery: &Delivery| ordinals.iter().position(|one| *one == ordinal(delivery.id.0));
    deliveries.sort_by_key(place);
    Ok(deliveries)
}

/// Makes a delivery ready again for the request `by`, unless it is ready already.
///
/// # Errors
/// [`TableError::Missing`] where there is none.
pub async fn redeliver(
    table: &Table,
    endpoint: EndpointId,
    id: DeliveryId,
    by: Uuid,
    now: Timestamp,
) -> Result<Delivery, TableError> {
    let mut round = table.store.backoff();
    loop {
        let was: Delivery = table.get((endpoint, id)).await?;
        if was.asked_by == Some(by) || was.state == DeliveryState::Ready {
            return Ok(was);
        }
        let is = was.clone().decide(DeliveryOutcome::AskedAgain { by }, now);
        if let Some(is) = table.replace((endpoint, id), &was, is).await? {
            return Ok(is);
        }
        round.again("the delivery").await?;
    }
}

/// Deliveries to `endpoint` that the tick sends, now or later. They come from the newest ones of its list, so the index
/// does not matter.
///
/// # Errors
/// [`TableError`].
pub async fn held(table: &Table, endpoint: EndpointId) -> Result<Vec<Delivery>, TableError> {
    let newest: Vec<Delivery> = table.newest(endpoint, NEWEST).await?;
    Ok(newest.into_iter().filter(Delivery::is_held).collect())
}

/// The ordinals of the deferred deliveries of `endpoint` that are due by `now`, the earliest `limit` of them.
///
/// # Errors
/// [`TableError`].
pub async fn deferred(table: &Table, endpoint: EndpointId, now: Timestamp, limit: i32) -> Result<Vec<u64>, TableError> {
    let due = table.store.query_due(&deferred_partition(endpoint), &now.to_string(), limit).await?;
    let own = |key: &Key| delivery_of(key).filter(|(tenant, of, _)| *tenant == table.tenant && *of == endpoint);
    Ok(due.iter().filter_map(own).map(|(_, _, ordinal)| ordinal).collect())
}

/// The webhooks that these assistants name.
///
/// # Errors
/// [`TableError`].
pub async fn named_webhooks(
    table: &Table,
    assistants: &BTreeSet<AssistantId>,
) -> Result<BTreeMap<AssistantId, WebhookId>, TableError> {
    let assistants = table.get_each::<Assistant>(assistants).await?;
    Ok(assistants.into_iter().filter_map(|assistant| Some((assistant.id, assistant.webhook_id?))).collect())
}

/// The events among `events` that `endpoint` got before, each with its delivery; `None` where that has expired.
///
/// # Errors
/// [`TableError`].
pub async fn existing(
    table: &Table,
    endpoint: EndpointId,
    events: &[(EventId, EventKind)],
) -> Result<BTreeMap<EventId, Option<Delivery>>, TableError> {
    let marker = |origin| made_by(&table.tenant, origin);
    let of_log: HashMap<Key, EventId> =
        events.iter().map(|(id, _)| (marker(NewDelivery::origin_of_logged(*id, endpoint)), *id)).collect();
    // The webhook that an assistant names gets the close without the log.
    let closed = events.iter().filter(|(_, kind)| *kind == EventKind::CONVERSATION_CLOSED);
    let keys: Vec<Key> = of_log.keys().cloned().chain(closed.map(|(id, _)| marker(id.0))).collect();
    let (mut found, mut ordinals) = (BTreeMap::new(), Vec::new());
    for (key, marker) in table.store.get_attributes(&keys, "pk, sk, id").await? {
        ordinals.push(ordinal(target_id(&marker)?));
        found.extend(of_log.get(&key).map(|id| (*id, None)));
    }
    let made = all_at(table, endpoint, &ordinals).await?;
    let of_these = made.into_iter().filter(|made| events.iter().any(|(id, _)| *id == made.event_id));
    found.extend(of_these.map(|made| (made.event_id, Some(made))));
    Ok(found)
}

/// Lets the tick send a delivery that was given up, for the recovery `by`. Returns whether this recovery sends it.
///
/// # Errors
/// [`TableError`].
pub async fn revive(
    table: &Table,
    endpoint: EndpointId,
    was: &Delivery,
    by: Uuid,
    now: Timestamp,
) -> Result<bool, TableError> {
    if was.asked_by == Some(by) {
        return Ok(true);
    }
    if was.state != DeliveryState::Dead {
        return Ok(false);
    }
    let is = was.clone().decide(DeliveryOutcome::Recovered { by }, now);
    if table.replace((endpoint, was.id), was, is).await?.is_some() {
        return Ok(true);
    }
    // An attempt whose answer was lost may have done it.
    let now_stored = at(table, endpoint, ordinal(was.id.0)).await?;
    Ok(now_stored.is_some_and(|delivery| delivery.asked_by == Some(by)))
}

/// What subscriptions to events of `conversation` are narrowed by.
pub const fn scope_of(conversation: &Conversation) -> EventScope {
    EventScope { assistant_id: Some(conversation.assistant_id), widget_id: conversation.widget_id }
}

/// The event of the log that `conversation` was closed.
fn logged_close(conversation: &Conversation) -> Option<Event> {
    let of = (conversation.updated_at, conversation.version.number() + 1);
    let kind = EventKind::CONVERSATION_CLOSED;
    let event = Event::new(kind, EventId(conversation.id.0), of, JsonObject::of(conversation)?);
    Some(Event { conversation: Some(conversation.id), ..event }.within(scope_of(conversation)))
}

/// Adds a delivery for each of these closed conversations whose assistant names a webhook. If nothing is sent to that
/// webhook now, the log of events has the close, so that it can be read and recovered. A repeat adds nothing.
///
/// # Errors
/// [`TableError`]: some may have been added.
pub async fn announce_closed(table: &Table, conversations: &[Conversation], now: Timestamp) -> Result<(), TableError> {
    let assistants = conversations.iter().map(|conversation| conversation.assistant_id);
    let webhook_of = named_webhooks(table, &assistants.collect()).await?;
    let webhooks = table.get_each::<Webhook>(&webhook_of.values().copied().collect()).await?;
    for webhook in webhooks {
        let to_it = |conversation: &&Conversation| webhook_of.get(&conversation.assistant_id) == Some(&webhook.id);
        let closed = conversations.iter().filter(to_it);
        if webhook.gets_deliveries() {
            let new: Vec<_> = closed.map(NewDelivery::closed).collect();
            enqueue(table, webhook.id.into(), &new, now).await?;
        } else {
            event::append(table, &closed.filter_map(logged_close).collect::<Vec<_>>(), None, now).await?;
        }
    }
    Ok(())
}
