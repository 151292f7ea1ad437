//! How deliveries and the health of endpoints are stored, and the index of what becomes due.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::bucket::kept::KEPT_DAYS;
use crate::records::assistant::Assistant;
use crate::records::conversation::Conversation;
use crate::records::delivery::{Delivery, DeliveryState, EndpointHealth, NewDelivery, Observed};
use crate::records::due::Due;
use crate::records::webhook::Webhook;
use crate::table::error::Cancelled;
use crate::table::item::{Item, from_item, made_id, number, readable, text, values};
use crate::table::keys::{Key, list_row, made_by, row_of};
use crate::table::page::{Page, PageQuery};
use crate::table::stored::{Listed as _, Stored as _};
use crate::table::transaction::{Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::id::{AssistantId, DeliveryId, EndpointId, WebhookId, ordinal};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// The partition of the index for the deferred deliveries of one endpoint: however many there are, other endpoints do not wait behind
/// them.
pub(super) fn deferred_partition(endpoint: EndpointId) -> String {
    format!("DEFERRED#{endpoint}")
}

/// What the key of a delivery says: its organisation, its endpoint, and its ordinal in the endpoint's list.
pub fn delivery_of(key: &Key) -> Option<(Tenant, EndpointId, u64)> {
    let (tenant, list, ordinal) = row_of(key)?;
    let endpoint = EndpointId(list.strip_prefix("DELIVERY#")?.parse().ok()?);
    Some((tenant, endpoint, ordinal))
}

/// What the key of an endpoint's health says: its organisation and the endpoint.
pub fn endpoint_of(key: &Key) -> Option<(Tenant, EndpointId)> {
    let tenant = Tenant::of_partition_key(&key.pk)?;
    let endpoint = EndpointId(key.pk.rsplit('#').next()?.parse().ok()?);
    (*key == EndpointHealth::key(&tenant, endpoint)).then_some((tenant, endpoint))
}

/// Who added to the health of an endpoint last: another name each time.
const ADDED_BY: &str = "added_by";
/// This was not added yet.
const NOT_ADDED: &str = "(attribute_not_exists(added_by) OR added_by <> :added_by)";

/// Whether an observation counts.
#[derive(Clone, Copy)]
enum Counting {
    /// In any case.
    Always,
    /// Unless the health was reset after this time: it was then made of another address.
    UnlessResetSince(Timestamp),
    /// In any case, and what was observed before it no longer does.
    AsReset,
}

/// How many deliveries of an endpoint are looked at where the index may have missed one.
const NEWEST: u64 = 10_000;

/// Seconds for which it is remembered that an event has its delivery. A change that the stream gave up may be half a day old when it is put into the
/// bucket, and the rule of the bucket may remove it a day or two late.
const REMEMBERED: i64 = (KEPT_DAYS + 5) * 86_400;

/// The most deliveries in one transaction: each takes one action for itself and one for the marker of its event.
const AT_ONCE: usize = 40;

impl Transaction<'_> {
    /// Adds a delivery of `new` to `endpoint` at a reserved ordinal, on condition that the event has none yet. The condition is the first
    /// of its two actions.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn deliver(
        &mut self,
        endpoint: EndpointId,
        ordinal: u64,
        new: NewDelivery,
        now: Timestamp,
    ) -> Result<DeliveryId, TableError> {
        let id = new.id(ordinal);
        self.made_by_until(new.event_id.0, id.0, now.plus_seconds(REMEMBERED));
        self.insert((endpoint, id), &Delivery::new(id, new, now))?;
        Ok(id)
    }
}

impl Table {
    /// Adds deliveries to `endpoint`, except for events that have one already. Returns the ids of all.
    ///
    /// # Errors
    /// [`TableError`]: some may have been added.
    pub async fn enqueue(
        &self,
        endpoint: EndpointId,
        new: &[NewDelivery],
        now: Timestamp,
    ) -> Result<Vec<DeliveryId>, TableError> {
        let mut ids = Vec::new();
        for new in new.chunks(AT_ONCE) {
            let mut left = new.to_vec();
            while !left.is_empty() {
                let count = left.len() as u64;
                let reserved = self.reserve::<Delivery>(endpoint, count).await?;
                let mut transaction = Transaction::new(self);
                let deliver =
                    |(new, ordinal): (&NewDelivery, u64)| transaction.deliver(endpoint, ordinal, new.clone(), now);
                let made = left.iter().zip(reserved.ordinals()).map(deliver).collect::<Result<Vec<_>, _>>()?;
                match self.commit(transaction, [reserved]).await {
                    Ok(()) => {
                        ids.extend(made);
                        break;
                    }
                    Err(Cancelled::Condition(..)) => {
                        // The change that they tell of comes again: most of its deliveries are there.
                        let markers: Vec<Key> = left.iter().map(|new| made_by(&self.tenant, new.event_id.0)).collect();
                        let made = self.store.get_attributes(&markers, "pk, sk, id").await?;
                        for (index, key) in markers.iter().enumerate().rev() {
                            if let Some(marker) = made.get(key) {
                                left.remove(index);
                                ids.push(DeliveryId(made_id(marker)?));
                            }
                        }
                    }
                    Err(cancelled) => return Err(cancelled.into()),
                }
            }
        }
        Ok(ids)
    }

    /// The delivery at `ordinal` of an endpoint's list.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn delivery_at(&self, endpoint: EndpointId, ordinal: u64) -> Result<Option<Delivery>, TableError> {
        let key = list_row(&self.tenant, &Delivery::list(endpoint), ordinal);
        self.store.get(&key).await?.map(from_item).transpose()
    }

    /// The deliveries at these ordinals of an endpoint's list, in their order; those that are not there are left out.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn deliveries_at(&self, endpoint: EndpointId, ordinals: &[u64]) -> Result<Vec<Delivery>, TableError> {
        let list = Delivery::list(endpoint);
        let keys: Vec<Key> = ordinals.iter().map(|ordinal| list_row(&self.tenant, &list, *ordinal)).collect();
        let mut deliveries: Vec<Delivery> = readable(self.store.get_all(&keys).await?);
        let place = |delivery: &Delivery| ordinals.iter().position(|one| *one == ordinal(delivery.id.0));
        deliveries.sort_by_key(place);
        Ok(deliveries)
    }

    /// A page of the deliveries of a webhook.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such webhook.
    pub async fn deliveries_of(&self, id: WebhookId, query: &PageQuery) -> Result<Page<Delivery>, TableError> {
        // Not `try_join!`: the cost must not depend on whether the webhook exists.
        let page = Box::pin(self.page::<Delivery>(id.into(), query));
        let (webhook, page) = futures_util::join!(self.get::<Webhook>(id), page);
        webhook.and(page)
    }

    /// Makes a delivery ready once more, for the request `by`, unless it is ready already.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn redeliver(
        &self,
        endpoint: EndpointId,
        id: DeliveryId,
        by: Uuid,
        now: Timestamp,
    ) -> Result<Delivery, TableError> {
        let mut round = self.store.backoff();
        loop {
            let was: Delivery = self.get((endpoint, id)).await?;
            if was.asked_by == Some(by) || was.state == DeliveryState::Ready {
                return Ok(was);
            }
            let is = was.clone().again(by, now);
            if self.replace_delivery(endpoint, &was, &is).await? {
                return Ok(is);
            }
            if !round.wait().await {
                return Err(TableError::Unavailable("the delivery kept changing".into()));
            }
        }
    }

    /// Replaces a delivery, unless it has changed since it was read. Returns whether it was replaced.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn replace_delivery(
        &self,
        endpoint: EndpointId,
        was: &Delivery,
        is: &Delivery,
    ) -> Result<bool, TableError> {
        let (item, values) = self.replacement(endpoint, was, is)?;
        match self.store.put_if(&item, UNCHANGED, &values).await {
            Ok(()) => Ok(true),
            Err(Cancelled::Condition(..)) => Ok(false),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// The action of a transaction that replaces a delivery, unless it has changed since it was read.
    pub(crate) fn replacing_delivery(
        &self,
        endpoint: EndpointId,
        was: &Delivery,
        is: &Delivery,
    ) -> Result<Write, TableError> {
        let (item, values) = self.replacement(endpoint, was, is)?;
        Ok(Write::Put { item, condition: Some(UNCHANGED), values })
    }

    fn replacement(&self, endpoint: EndpointId, was: &Delivery, is: &Delivery) -> Result<(Item, Item), TableError> {
        let item = self.item((endpoint, is.id), is)?;
        let values = values([
            (":id", text(was.id)),
            (":state", text(was.state.as_str())),
            (":attempts", number(was.attempts)),
            (":updated_at", text(was.updated_at)),
        ]);
        Ok((item, values))
    }

    /// The health of `endpoint`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn endpoint_health(&self, endpoint: EndpointId) -> Result<EndpointHealth, TableError> {
        Ok(self.find(endpoint).await?.unwrap_or_else(|| EndpointHealth::healthy(endpoint)))
    }

    /// Adds what was `observed` to the health of an endpoint, and makes the tick drain it. Returns the sum of all observations. Where the
    /// health was reset after `read_at`, when the observer read the endpoint's address, only a deferral counts.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn keep_endpoint_health(
        &self,
        endpoint: (EndpointId, bool),
        observed: &Observed,
        read_at: Timestamp,
        now: Timestamp,
    ) -> Result<EndpointHealth, TableError> {
        let added = self.add_to_health(endpoint, observed, Counting::UnlessResetSince(read_at), now).await;
        let Err(Cancelled::Condition(..)) = added else { return from_item(added?) };
        let deferral = Observed { deferred_at: observed.deferred_at, ..Observed::default() };
        from_item(self.add_to_health(endpoint, &deferral, Counting::Always, now).await?)
    }

    /// Closes the circuit of an endpoint, whose owner says that it works again or gives it another address.
    pub fn resetting_endpoint_health(&self, endpoint: (EndpointId, bool), now: Timestamp) -> Write {
        let (key, expression, _, values) = self.health_update(endpoint, &Observed::reset(), Counting::AsReset, now);
        Write::Update { key, expression: expression.into(), condition: None, values }
    }

    async fn add_to_health(
        &self,
        endpoint: (EndpointId, bool),
        observed: &Observed,
        counts: Counting,
        now: Timestamp,
    ) -> Result<Item, Cancelled> {
        let (key, expression, condition, values) = self.health_update(endpoint, observed, counts, now);
        match self.store.update(&key, &expression, condition.as_deref(), &values).await {
            // An attempt whose answer was lost has added it: once more would be twice.
            Err(Cancelled::Condition(_, Some(stands))) if stands.get(ADDED_BY) == values.get(":added_by") => Ok(stands),
            added => added,
        }
    }

    /// The key of an endpoint's health, the expression and the condition by which it changes, and the values in them.
    fn health_update(
        &self,
        (endpoint, connector): (EndpointId, bool),
        observed: &Observed,
        counts: Counting,
        now: Timestamp,
    ) -> (Key, String, Option<String>, Item) {
        let mut set = vec!["id = :id", "connector = :connector", "due_pk = :due_pk"];
        // A drain that only looks once more may be an hour away.
        set.push(if observed.deferred_at.is_some() {
            "due_at = :now, looked = :not_looked"
        } else {
            "due_at = if_not_exists(due_at, :now)"
        });
        let mut values = values([
            (":id", text(endpoint)),
            (":connector", AttributeValue::Bool(connector)),
            (":due_pk", text(Due::Endpoint.partition(endpoint.0))),
            (":now", text(now)),
            (":failures", number(observed.failures)),
            (":slow", AttributeValue::Bool(observed.slow.unwrap_or_default())),
        ]);
        set.push(if observed.slow.is_some() { "slow = :slow" } else { "slow = if_not_exists(slow, :slow)" });
        if observed.succeeded {
            set.push("failures = :failures");
        } else {
            set.push("failures = if_not_exists(failures, :none) + :failures");
            values.insert(":none".to_owned(), number(0));
        }
        if let Some(since) = observed.failing_since {
            let first = "failing_since = if_not_exists(failing_since, :failing_since)";
            set.push(if observed.succeeded { "failing_since = :failing_since" } else { first });
            values.insert(":failing_since".to_owned(), text(since));
        }
        if let Some(deferred_at) = observed.deferred_at {
            set.push("deferred_at = :deferred_at");
            values.insert(":deferred_at".to_owned(), text(deferred_at));
            values.insert(":not_looked".to_owned(), AttributeValue::Bool(false));
        }
        let mut condition = Some(NOT_ADDED.to_owned());
        match counts {
            Counting::Always => {}
            Counting::UnlessResetSince(read_at) => {
                values.insert(":read_at".to_owned(), text(read_at));
                condition = Some(format!("{NOT_ADDED} AND (attribute_not_exists(reset_at) OR reset_at <= :read_at)"));
            }
            // A reset adds nothing.
            Counting::AsReset => {
                set.push("reset_at = :now");
                condition = None;
            }
        }
        if condition.is_some() {
            set.push("added_by = :added_by");
            values.insert(":added_by".to_owned(), text(format_args!("{:016x}", fastrand::u64(..))));
        }
        let recovered = observed.succeeded && observed.failing_since.is_none();
        let expression = format!("SET {}{}", set.join(", "), if recovered { " REMOVE failing_since" } else { "" });
        (self.key::<EndpointHealth>(endpoint), expression, condition, values)
    }

    /// Puts an endpoint behind all others that the tick is to drain.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn drain_endpoint_later(&self, endpoint: EndpointId, now: Timestamp) -> Result<(), TableError> {
        let (key, values) = (self.key::<EndpointHealth>(endpoint), values([(":now", text(now))]));
        match self.store.update(&key, "SET due_at = :now", Some("attribute_exists(due_at)"), &values).await {
            Ok(_) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Has the tick drain an endpoint once more at `later`, and look at the deliveries themselves, unless a delivery was deferred since
    /// `health` was read.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn look_at_endpoint_later(&self, health: &EndpointHealth, later: Timestamp) -> Result<(), TableError> {
        let key = self.key::<EndpointHealth>(health.id);
        let mut values = values([(":later", text(later)), (":looked", AttributeValue::Bool(true))]);
        let condition = match health.deferred_at {
            Some(deferred_at) => {
                values.insert(":deferred_at".to_owned(), text(deferred_at));
                "attribute_exists(due_at) AND deferred_at = :deferred_at"
            }
            None => "attribute_exists(due_at) AND attribute_not_exists(deferred_at)",
        };
        match self.store.update(&key, "SET due_at = :later, looked = :looked", Some(condition), &values).await {
            Ok(_) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Deliveries to `endpoint` that the tick is to send, now or later, whatever the index shows: of the newest ones of its list.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn held_deliveries(&self, endpoint: EndpointId) -> Result<Vec<Delivery>, TableError> {
        let newest: Vec<Delivery> = self.newest(endpoint, NEWEST).await?;
        Ok(newest.into_iter().filter(Delivery::is_held).collect())
    }

    /// Takes an endpoint from those that the tick drains, unless a delivery was deferred since `health` was read. `forget` deletes its
    /// health.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn stop_draining_endpoint(&self, health: &EndpointHealth, forget: bool) -> Result<(), TableError> {
        let key = self.key::<EndpointHealth>(health.id);
        let (condition, values) = match health.deferred_at {
            Some(deferred_at) => (Some("deferred_at = :deferred_at"), values([(":deferred_at", text(deferred_at))])),
            None => (Some("attribute_not_exists(deferred_at)"), Item::new()),
        };
        let write = if forget {
            Write::Delete { key, condition, values }
        } else {
            Write::Update {
                key,
                expression: "REMOVE due_pk, due_at".into(),
                condition: condition.map(Into::into),
                values,
            }
        };
        match self.store.transact(&[write]).await {
            Ok(()) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// The ordinals of the deferred deliveries of `endpoint` that are due by `now`, the earliest `limit` of them.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn deferred_deliveries(
        &self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: i32,
    ) -> Result<Vec<u64>, TableError> {
        let due = self.store.query_due(&deferred_partition(endpoint), &now.to_string(), limit).await?;
        let own = |key: &Key| delivery_of(key).filter(|(tenant, of, _)| *tenant == self.tenant && *of == endpoint);
        Ok(due.iter().filter_map(own).map(|(_, _, ordinal)| ordinal).collect())
    }

    /// Adds a delivery for each of these closed conversations whose assistant has an enabled webhook. A repeat adds none.
    ///
    /// # Errors
    /// [`TableError`]: some may have been added.
    pub async fn announce_closed(&self, conversations: &[Conversation], now: Timestamp) -> Result<(), TableError> {
        let assistants = conversations.iter().map(|conversation| conversation.assistant_id);
        let assistants = self.get_each::<Assistant>(&assistants.collect()).await?;
        let webhook_of: BTreeMap<AssistantId, WebhookId> =
            assistants.into_iter().filter_map(|assistant| Some((assistant.id, assistant.webhook_id?))).collect();
        let webhooks = self.get_each::<Webhook>(&webhook_of.values().copied().collect()).await?;
        for webhook in webhooks.into_iter().filter(|webhook| webhook.enabled) {
            let to_it = |conversation: &&Conversation| webhook_of.get(&conversation.assistant_id) == Some(&webhook.id);
            let new: Vec<_> = conversations.iter().filter(to_it).map(NewDelivery::closed).collect();
            self.enqueue(webhook.id.into(), &new, now).await?;
        }
        Ok(())
    }
}

/// The delivery is the same as when it was read.
const UNCHANGED: &str = "id = :id AND #state = :state AND attempts = :attempts AND updated_at = :updated_at";
