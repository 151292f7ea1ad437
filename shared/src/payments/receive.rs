//! Receives the events of the payment provider. One transaction changes the customer and the user, and stores a marker
//! that the event was counted.

use uuid::Uuid;

use crate::payments::customer::{PaymentCustomer, billed};
use crate::payments::event::{EventIgnored, EventName, PaymentEvent, PaymentNews};
use crate::records::agency::{Agency, BillingPlan, PaymentEventOutcome, RefusedCheckout, payment_webhooks};
use crate::records::user::User;
use crate::table::error::{Cancelled, was_done};
use crate::table::expression::Condition;
use crate::table::item::{key_of, number, text};
use crate::table::keys::{self, Key, TTL};
use crate::table::store::Store;
use crate::table::stored::Listed as _;
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::table::{Fingerprint, Table, TableError};
use crate::values::hash::hex;
use crate::values::id::{AgencyId, BillingPlanId, UserId};
use crate::values::provider::{EventOrder, ProviderId};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Seconds for which the ids of events are remembered. The provider repeats an event for three days.
const REMEMBERED: i64 = 30 * 86_400;

/// The most plans of an agency that are searched for the one of a price.
const PLANS: usize = 1000;

/// The records that an event changes, before and after the change.
#[derive(Default)]
struct ChangedByEvent {
    customers: Vec<PaymentCustomer>,
    users: Vec<UserChange>,
}

struct UserChange {
    was: User,
    is: User,
}

impl UserChange {
    /// The same, with the state of the user's customer.
    fn billed(self, customer: Option<&PaymentCustomer>, now: Timestamp) -> Self {
        Self { is: billed(&self.is, customer, now), ..self }
    }
}

/// The marker that an event of the payment provider was counted.
pub fn payment_event(tenant: &Tenant, event: &Fingerprint) -> Key {
    Key::of(tenant, format_args!("PAYMENT_EVENT#{}", hex(event)), "PAYMENT_EVENT")
}

impl Store {
    /// The agency that receives events of the payment provider, with open secrets, and its organisation. An unknown agency
    /// takes the same calls of the table.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn agency_with_webhook(&self, id: AgencyId) -> Result<Option<(Tenant, Agency)>, TableError> {
        let pointers = self.query(&payment_webhooks(id), "ORG#", Some(1)).await?;
        let tenant = pointers.first().and_then(key_of).and_then(|pointer| Tenant::of_pointer(&pointer.sk));
        let table = Table::new(self.clone(), tenant.unwrap_or(Tenant::nonexistent()));
        let mut agency = table.find::<Agency>(id).await?;
        if let Some(agency) = &mut agency {
            table.open(agency).await?;
        }
        Ok(tenant.zip(agency.filter(|agency| agency.payment_webhook.is_some())))
    }
}

/// Receives an event that the payment provider has sent to `agency`, `by` the request with this id.
///
/// # Errors
/// [`TableError::Unavailable`]: the provider sends it again.
pub async fn receive(
    table: &Table,
    agency: &Agency,
    body: &[u8],
    (by, now): (Uuid, Timestamp),
) -> Result<PaymentEventOutcome, TableError> {
    let applied = match PaymentEvent::read(body) {
        Ok(event) if event.is_live.zip(agency.is_live()).is_some_and(|(event, key)| event != key) => {
            Err(EventIgnored::Mode.into())
        }
        Ok(event) => {
            let applied = count(table, agency.id, &event, (by, now)).await;
            if let Err(EventNotApplied::Ignored(EventIgnored::Replaces)) = &applied {
                report(table, agency.id, &event, (by, now)).await?;
            }
            applied
        }
        Err(why) => Err(why.into()),
    };
    let (outcome, reason) = match applied {
        Ok(outcome) => (outcome, None),
        Err(EventNotApplied::Ignored(why)) => (PaymentEventOutcome::Ignored, Some(why.to_string())),
        Err(EventNotApplied::Failed(error)) => return Err(error),
    };
    // The customer of an event is kept out of the log.
    let EventName { id, kind } = EventName::read(body);
    let [event, kind] = [&id, &kind].map(|name| name.as_ref().map(ProviderId::as_str));
    tracing::info!(agency = %agency.id, event, kind, outcome = outcome.as_str(), reason, "payment event");
    Ok(outcome)
}

/// Reports a checkout that was refused: in the log, and in the agency for `check-payment-webhook`. The event is not
/// remembered: it counts if the provider sends it again after the subscription has ended.
async fn report(
    table: &Table,
    agency: AgencyId,
    event: &PaymentEvent,
    (by, now): (Uuid, Timestamp),
) -> Result<(), TableError> {
    let PaymentNews::Checkout { user_id, .. } = event.news else { return Ok(()) };
    let event_id = event.order.event_id.as_str();
    tracing::warn!(%agency, event = event_id, "a checkout of another customer was refused");
    let customer_id = event.customer_id.as_str().to_owned();
    let refused = RefusedCheckout { event_id: event_id.to_owned(), user_id, customer_id, refused_at: now };
    let refuse = |agency: &mut Agency| agency.refuse(&refused);
    match table.change(agency, by, refuse).await {
        Ok(_) | Err(TableError::Missing) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Why an event was not applied.
enum EventNotApplied {
    /// The service does not use it.
    Ignored(EventIgnored),
    /// The table failed.
    Failed(TableError),
}

impl From<EventIgnored> for EventNotApplied {
    fn from(why: EventIgnored) -> Self {
        Self::Ignored(why)
    }
}

impl From<TableError> for EventNotApplied {
    fn from(error: TableError) -> Self {
        Self::Failed(error)
    }
}

/// Applies an event once.
async fn count(
    table: &Table,
    agency: AgencyId,
    event: &PaymentEvent,
    (by, now): (Uuid, Timestamp),
) -> Result<PaymentEventOutcome, EventNotApplied> {
    let plans = match &event.news {
        PaymentNews::Subscription(news) => plans_of(table, agency, [&news.lookup_keys, &news.next_lookup_keys]).await?,
        _ => [None; 2],
    };
    let mut round = table.store.backoff();
    loop {
        let (changed, outcome) = changed_by(table, event, plans, now).await?;
        let mut transaction = Transaction::of_request(table);
        transaction.write(remember(table, &event.order, now)).or(Unmet::Repeated);
        for customer in changed.customers {
            transaction.write(put_customer(table, customer, now)?);
        }
        for UserChange { was, is } in changed.users.into_iter().filter(|user| user.was != user.is) {
            transaction.replace(is.id, &was, is, Some(by))?;
        }
        match transaction.commit().await {
            Ok(()) => return Ok(outcome),
            Err(Cancelled::Condition(Unmet::Repeated, _)) => return Ok(PaymentEventOutcome::Repeated),
            // Another event or request has changed one of the records in the meantime.
            Err(Cancelled::Condition(Unmet::Changed, _)) => round.again("the customer").await?,
            Err(cancelled) => return Err(TableError::from(cancelled).into()),
        }
    }
}

/// The records that an event changes.
async fn changed_by(
    table: &Table,
    event: &PaymentEvent,
    plans: [Option<BillingPlanId>; 2],
    now: Timestamp,
) -> Result<(ChangedByEvent, PaymentEventOutcome), EventNotApplied> {
    let (order, mut changed) = (&event.order, ChangedByEvent::default());
    let known = customer_of(table, &event.customer_id, now).await?;
    let mut customer = known.clone();
    match &event.news {
        PaymentNews::Checkout { user_id, subscription_id } => {
            let user = user_of(table, *user_id).await?.ok_or(EventIgnored::NoUser)?;
            link(table, order, &mut customer, user, &mut changed, now).await?;
            if let Some(subscription) = subscription_id {
                customer.begin(order, subscription);
            }
        }
        PaymentNews::Subscription(news) => customer.subscribe(order, news, plans),
        PaymentNews::Invoice { subscription_id, paid, paid_at } => {
            customer.invoice(order, subscription_id.as_ref(), *paid, *paid_at);
        }
    }
    if customer == known && changed.users.is_empty() {
        return Ok((changed, PaymentEventOutcome::Superseded));
    }
    if let Some(id) = customer.user_id {
        // Each user is read once: the change must match the state on which the decision was based.
        let named = changed.users.iter().position(|user| user.was.id == id);
        let user = match named {
            Some(place) => Some(changed.users.swap_remove(place)),
            None => user_of(table, id).await?,
        };
        match user {
            Some(user) => changed.users.push(user.billed(Some(&customer), now)),
            // The user was deleted, so the user of the customer is no longer known.
            None => customer.user_id = None,
        }
    }
    let is_applied = !changed.users.is_empty();
    let outcome = if is_applied { PaymentEventOutcome::Applied } else { PaymentEventOutcome::Kept };
    changed.customers.push(customer);
    Ok((changed, outcome))
}

/// A checkout links a user and a customer. The two are linked only if the same checkout is the newest for both. If it
/// is the newest for only one of them, that one has no partner: the other one was named by a newer checkout.
///
/// A checkout does not replace a customer whose subscription goes on: whoever buys may be able to name any user.
async fn link(
    table: &Table,
    order: &EventOrder,
    customer: &mut PaymentCustomer,
    mut user: UserChange,
    changed: &mut ChangedByEvent,
    now: Timestamp,
) -> Result<(), EventNotApplied> {
    let id = user.was.id;
    let former = user.was.payment_customer_id.clone().and_then(|id| ProviderId::try_from(id).ok());
    let former = match former.filter(|id| *id != customer.customer_id) {
        Some(former) => Some(customer_of(table, &former, now).await?).filter(|former| former.user_id == Some(id)),
        None => None,
    };
    // A user who was linked before users stored this order has the order of the customer.
    let present = Some(former.as_ref().unwrap_or(customer)).filter(|present| present.user_id == Some(id));
    let of_user = user.was.payment_linked_by.as_ref().or_else(|| present?.linked_by.as_ref());
    let is_newest = |known: Option<&EventOrder>| known.is_none_or(|known| known < order);
    let (newest_of_user, newest_of_customer) = (is_newest(of_user), is_newest(customer.linked_by.as_ref()));
    if newest_of_user && former.as_ref().is_some_and(PaymentCustomer::has_running_subscription) {
        return Err(EventIgnored::Replaces.into());
    }
    if newest_of_customer {
        if let Some(other) = customer.user_id.filter(|other| *other != id)
            && let Some(other) = user_of(table, other).await?
        {
            changed.users.push(other.billed(None, now));
        }
        customer.linked_by = Some(order.clone());
        customer.user_id = newest_of_user.then_some(id);
    }
    if newest_of_user {
        changed.customers.extend(former.map(|former| PaymentCustomer { user_id: None, ..former }));
        user.is.payment_linked_by = Some(order.clone());
        changed.users.push(if newest_of_customer { user } else { user.billed(None, now) });
    }
    Ok(())
}

/// The state of a customer.
async fn customer_of(table: &Table, id: &ProviderId, now: Timestamp) -> Result<PaymentCustomer, TableError> {
    let known = table.find::<PaymentCustomer>(id.fingerprint()).await?;
    Ok(known.map_or_else(|| PaymentCustomer::new(id.clone()), |known| known.at(now)))
}

/// A user, unchanged so far.
async fn user_of(table: &Table, id: UserId) -> Result<Option<UserChange>, TableError> {
    Ok(table.find::<User>(id).await?.map(|was| UserChange { is: was.clone(), was }))
}

/// For each of these lists of lookup keys, the first plan of an agency that has one of them.
async fn plans_of(
    table: &Table,
    agency: AgencyId,
    lookup_keys: [&[String]; 2],
) -> Result<[Option<BillingPlanId>; 2], TableError> {
    if lookup_keys.concat().is_empty() {
        return Ok([None; 2]);
    }
    // The list of plans has one partition.
    let rows = keys::list_row(&table.tenant, &BillingPlan::list(agency), 0);
    let plans = table.store.query_records::<BillingPlan>(&rows.pk, (&rows.sk, None), Some(PLANS)).await?.records;
    let first = |keys: &[String]| {
        let has_one = |plan: &&BillingPlan| plan.plan_lookup_key.as_ref().is_some_and(|key| keys.contains(key));
        plans.iter().find(has_one).map(|plan| plan.id)
    };
    Ok(lookup_keys.map(first))
}

/// The marker that an event was counted, on condition that it does not exist yet. DynamoDB deletes it some time after
/// it expires.
fn remember(table: &Table, order: &EventOrder, now: Timestamp) -> Write {
    let mut item = payment_event(&table.tenant, &order.event_id.fingerprint()).attributes();
    item.insert(TTL.to_owned(), number(now.plus_seconds(REMEMBERED).unix_seconds()));
    Write::put(item).when(Condition::absent_or_expired(now))
}

/// Replaces the record of a customer, on condition that it has not changed since it was read.
fn put_customer(table: &Table, customer: PaymentCustomer, now: Timestamp) -> Result<Write, TableError> {
    let unchanged = match customer.version {
        0 => Condition::absent(),
        version => Condition::of("version = :version", [(":version", number(version))]),
    };
    Ok(Write::put(table.item(customer.customer_id.fingerprint(), &customer.written(now))?).when(unchanged))
}

/// Deletes the customer of a deleted user.
///
/// # Errors
/// [`TableError`].
pub async fn forget_customer(table: &Table, user: &User) -> Result<(), TableError> {
    let customer = user.payment_customer_id.clone().and_then(|id| ProviderId::try_from(id).ok());
    let Some(customer) = customer else { return Ok(()) };
    let key = table.key::<PaymentCustomer>(customer.fingerprint());
    let of_user = Condition::of("user_id = :user", [(":user", text(user.id))]);
    // Or the customer belongs to another user by now, or to none.
    was_done(table.store.transact(&[Write::delete(key).when(of_user)]).await).map(drop)
}
