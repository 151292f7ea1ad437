//! Reads events of the payment provider, as its public documentation describes them, in older and newer versions of its
//! API.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::input::member;
use crate::input::schema::{Member, Value, described, object};
use crate::values::id::UserId;
use crate::values::provider::{EventOrder, ProviderId};
use crate::values::time::Timestamp;

/// An event that the service uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentEvent {
    /// Its order.
    pub order: EventOrder,
    /// The provider's customer whom it is about.
    pub customer_id: ProviderId,
    /// Whether it happened in live mode, where the event says so.
    pub is_live: Option<bool>,
    /// Its content.
    pub news: PaymentNews,
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentNews {
    /// A user has checked out. If a subscription is named, it has begun.
    Checkout {
        /// The user.
        user_id: UserId,
        /// The subscription.
        subscription_id: Option<ProviderId>,
    },
    /// The state of a subscription.
    Subscription(SubscriptionNews),
    /// An invoice was paid, or its payment failed.
    Invoice {
        /// The subscription of the invoice, if it has one.
        subscription_id: Option<ProviderId>,
        /// Whether it was paid; `None` if there was nothing to pay, as for a trial.
        paid: Option<bool>,
        /// When it was paid.
        paid_at: Option<Timestamp>,
    },
}

/// The period of a subscription that is paid for at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// When it began.
    pub start: Timestamp,
    /// When it ends.
    pub end: Timestamp,
}

/// The state of a subscription, from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionNews {
    /// The subscription.
    pub id: ProviderId,
    /// When it was created, in seconds since 1970.
    pub made_at: i64,
    /// Its status, such as `active`.
    pub status: ProviderId,
    /// Whether it had a trial.
    pub had_trial: bool,
    /// The lookup keys of its prices.
    pub lookup_keys: Vec<String>,
    /// The lookup keys of the prices that an update, which is still pending, will put in their place.
    pub next_lookup_keys: Vec<String>,
    /// Its current period.
    pub period: Option<Period>,
    /// Whether it ends with this period.
    pub ends: bool,
    /// Whether it names a means of payment.
    pub has_payment_method: bool,
}

/// Why an event is ignored.
#[derive(Debug, thiserror::Error)]
pub enum EventIgnored {
    /// The service ignores events of this type.
    #[error("a type of event that is not used")]
    Type,
    /// It names no user of the service, or no customer.
    #[error("a checkout of nobody that is known")]
    NoUser,
    /// It is of test mode and the agency's key of live mode, or the reverse.
    #[error("not of the mode of the agency's key")]
    Mode,
    /// It would replace a customer whose subscription goes on.
    #[error("a checkout of another customer while the user's subscription goes on")]
    Replaces,
    /// Its shape differs from the provider's documentation. Its content is kept out of logs.
    #[error("not in the shape that the provider documents")]
    Shape,
}

/// The statuses of a subscription in their order in time: of two events of one second, the one with the later status
/// counts.
const STATUSES: [&str; 8] =
    ["incomplete", "trialing", "active", "past_due", "unpaid", "paused", "incomplete_expired", "canceled"];

/// The lowest rank of an invoice: of two events of one second, an invoice decides over a subscription whether the user
/// pays.
const INVOICES: u8 = 64;

/// The fields that every event has.
#[derive(Deserialize)]
struct EventEnvelope<'a> {
    id: ProviderId,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    created: i64,
    livemode: Option<bool>,
    #[serde(borrow)]
    data: EventObject<'a>,
}

#[derive(Deserialize)]
struct EventObject<'a> {
    #[serde(borrow)]
    object: &'a RawValue,
}

/// A reference to an object: its id, or the object itself where the provider was asked to include it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Expandable {
    Id(ProviderId),
    Object { id: ProviderId },
}

impl Expandable {
    fn id(self) -> ProviderId {
        match self {
            Self::Id(id) | Self::Object { id } => id,
        }
    }
}

#[derive(Deserialize)]
struct CheckoutSession {
    client_reference_id: Option<String>,
    customer: Option<Expandable>,
    subscription: Option<Expandable>,
}

#[derive(Deserialize)]
struct SubscriptionObject {
    id: ProviderId,
    customer: Expandable,
    status: ProviderId,
    #[serde(default)]
    created: i64,
    trial_start: Option<i64>,
    items: Option<SubscriptionItems>,
    pending_update: Option<PendingUpdate>,
    #[serde(default)]
    cancel_at_period_end: bool,
    default_payment_method: Option<Expandable>,
    default_source: Option<Expandable>,
    /// In older versions of the API; in newer ones each item has both.
    current_period_start: Option<i64>,
    current_period_end: Option<i64>,
}

#[derive(Deserialize)]
struct PendingUpdate {
    subscription_items: Option<Vec<SubscriptionItem>>,
}

#[derive(Deserialize)]
struct SubscriptionItems {
    data: Vec<SubscriptionItem>,
}

#[derive(Deserialize)]
struct SubscriptionItem {
    price: Option<PriceObject>,
    current_period_start: Option<i64>,
    current_period_end: Option<i64>,
}

#[derive(Deserialize)]
struct PriceObject {
    lookup_key: Option<String>,
}

#[derive(Deserialize)]
struct InvoiceObject {
    customer: Option<Expandable>,
    /// In older versions of the API.
    subscription: Option<Expandable>,
    /// In newer ones.
    parent: Option<InvoiceParent>,
    amount_paid: Option<i64>,
    status_transitions: Option<StatusTransitions>,
}

#[derive(Deserialize)]
struct InvoiceParent {
    subscription_details: Option<SubscriptionDetails>,
}

#[derive(Deserialize)]
struct SubscriptionDetails {
    subscription: Option<Expandable>,
}

#[derive(Deserialize)]
struct StatusTransitions {
    paid_at: Option<i64>,
}

/// The JSON schema of an event; it names only the fields that are read.
pub fn schema() -> Value {
    let about =
        described(json!({"type": "object"}), "What it is about: a checkout session, a subscription or an invoice.");
    let data = object(vec![Member { name: "object", required: true, schema: about }]);
    let mut event = object(vec![
        member::<String>("id", true, "The event's id: one that has come before does not count again."),
        member::<String>(
            "type",
            true,
            "What has happened, such as `invoice.paid`. Others than those that are set up are ignored.",
        ),
        member::<i64>("created", true, "When it happened, in seconds since 1970 began."),
        member::<bool>("livemode", false, "False in test mode. It must fit the agency's key."),
        Member { name: "data", required: true, schema: data },
    ]);
    event["additionalProperties"] = true.into();
    event
}

/// The event's id and type, if they may be logged.
#[derive(Debug, Default, Deserialize)]
pub struct EventName {
    /// The id.
    pub id: Option<ProviderId>,
    /// The type.
    #[serde(rename = "type")]
    pub kind: Option<ProviderId>,
}

impl EventName {
    /// Reads as much of `body` as possible.
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }
}

impl PaymentEvent {
    /// The event in `body`.
    ///
    /// # Errors
    /// [`EventIgnored`].
    pub fn read(body: &[u8]) -> Result<Self, EventIgnored> {
        let EventEnvelope { id, kind, created, livemode, data } = of_json(body)?;
        // An invalid time would come later than every valid one.
        time(created)?;
        let object = data.object.get().as_bytes();
        let (customer, rank, news) = match kind.as_ref() {
            "checkout.session.completed" => checkout(of_json(object)?)?,
            "customer.subscription.created" => subscription(of_json(object)?, 0)?,
            "customer.subscription.deleted" => subscription(of_json(object)?, 2)?,
            "customer.subscription.paused"
            | "customer.subscription.resumed"
            | "customer.subscription.trial_will_end"
            | "customer.subscription.updated" => subscription(of_json(object)?, 1)?,
            "invoice.paid" => invoice(of_json(object)?, true, created)?,
            "invoice.payment_failed" => invoice(of_json(object)?, false, created)?,
            _ => return Err(EventIgnored::Type),
        };
        let order = EventOrder { created, rank, event_id: id };
        Ok(Self { order, customer_id: customer.id(), is_live: livemode, news })
    }
}

fn of_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, EventIgnored> {
    serde_json::from_slice(json).map_err(|_| EventIgnored::Shape)
}

fn checkout(session: CheckoutSession) -> Result<(Expandable, u8, PaymentNews), EventIgnored> {
    let user = session.client_reference_id.and_then(|id| Uuid::parse_str(&id).ok());
    let (user_id, customer) = user.map(UserId).zip(session.customer).ok_or(EventIgnored::NoUser)?;
    let subscription_id = session.subscription.map(Expandable::id);
    Ok((customer, 0, PaymentNews::Checkout { user_id, subscription_id }))
}

/// `stage` is 0 for the first event of a subscription, and 2 for its last.
fn subscription(object: SubscriptionObject, stage: u8) -> Result<(Expandable, u8, PaymentNews), EventIgnored> {
    let SubscriptionObject { id, customer, status, created, trial_start, .. } = object;
    let place = STATUSES.iter().position(|known| *known == status.as_str());
    let rank = stage * 16 + place.and_then(|place| u8::try_from(place).ok()).unwrap_or_default();
    let items = object.items.map(|items| items.data).unwrap_or_default();
    let start = object.current_period_start.or_else(|| items.iter().find_map(|item| item.current_period_start));
    let end = object.current_period_end.or_else(|| items.iter().find_map(|item| item.current_period_end));
    let period = |(start, end)| Ok::<_, EventIgnored>(Period { start: time(start)?, end: time(end)? });
    let pending = object.pending_update.and_then(|update| update.subscription_items);
    let news = SubscriptionNews {
        id,
        made_at: created,
        had_trial: trial_start.is_some() || status.as_str() == "trialing",
        status,
        lookup_keys: lookup_keys(items),
        next_lookup_keys: lookup_keys(pending.unwrap_or_default()),
        period: start.zip(end).map(period).transpose()?,
        ends: object.cancel_at_period_end,
        has_payment_method: object.default_payment_method.or(object.default_source).is_some(),
    };
    Ok((customer, rank, PaymentNews::Subscription(news)))
}

/// The lookup keys of the prices of `items`.
fn lookup_keys(items: Vec<SubscriptionItem>) -> Vec<String> {
    items.into_iter().filter_map(|item| item.price?.lookup_key).collect()
}

fn invoice(object: InvoiceObject, paid: bool, created: i64) -> Result<(Expandable, u8, PaymentNews), EventIgnored> {
    let InvoiceObject { customer, subscription, parent, amount_paid, status_transitions } = object;
    let details = parent.and_then(|parent| parent.subscription_details);
    let subscription = subscription.or_else(|| details.and_then(|details| details.subscription));
    let nothing_to_pay = paid && amount_paid == Some(0);
    let paid_at = status_transitions.and_then(|transitions| transitions.paid_at).unwrap_or(created);
    let news = PaymentNews::Invoice {
        subscription_id: subscription.map(Expandable::id),
        paid: (!nothing_to_pay).then_some(paid),
        paid_at: if paid && !nothing_to_pay { Some(time(paid_at)?) } else { None },
    };
    Ok((customer.ok_or(EventIgnored::NoUser)?, INVOICES + u8::from(paid), news))
}

/// The time that is `seconds` after 1970 began.
fn time(seconds: i64) -> Result<Timestamp, EventIgnored> {
    let known = (0..=Timestamp::MAX.unix_seconds()).contains(&seconds);
    if known { Ok(Timestamp::from_unix_millis(seconds * 1000)) } else { Err(EventIgnored::Shape) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, object: &Value) -> Result<PaymentEvent, EventIgnored> {
        let event = json!({"id": "evt_1", "type": kind, "created": 1000, "data": {"object": object}});
        PaymentEvent::read(event.to_string().as_bytes())
    }

    fn id(text: &str) -> ProviderId {
        text.to_owned().try_into().unwrap()
    }

    #[test]
    fn an_invoice_of_any_version_names_its_subscription() {
        let of = |object: Value| match read("invoice.paid", &object).unwrap().news {
            PaymentNews::Invoice { subscription_id, paid, paid_at } => (subscription_id, paid, paid_at),
            other => panic!("{other:?}"),
        };
        let at = |seconds: i64| Some(Timestamp::from_unix_millis(seconds * 1000));
        let old = json!({"customer": "cus_1", "subscription": "sub_1", "status_transitions": {"paid_at": 900}});
        assert_eq!(of(old), (Some(id("sub_1")), Some(true), at(900)));
        let new = json!({"customer": {"id": "cus_1"}, "parent": {"subscription_details": {"subscription": "sub_1"}}});
        assert_eq!(of(new), (Some(id("sub_1")), Some(true), at(1000)));
        let trial =
            json!({"customer": "cus_1", "parent": null, "amount_paid": 0, "status_transitions": {"paid_at": 9}});
        assert_eq!(of(trial), (None, None, None));
    }

    #[test]
    fn later_events_of_one_second_have_a_higher_order() {
        let order = |kind: &str, status: &str| {
            let object = json!({"id": "sub_1", "customer": "cus_1", "status": status, "subscription": "sub_1"});
            read(kind, &object).unwrap().order
        };
        let places = [
            order("customer.subscription.created", "incomplete"),
            order("customer.subscription.created", "trialing"),
            order("customer.subscription.updated", "incomplete"),
            order("customer.subscription.updated", "active"),
            order("customer.subscription.updated", "past_due"),
            order("customer.subscription.deleted", "canceled"),
            order("invoice.payment_failed", "x"),
            order("invoice.paid", "x"),
        ];
        assert!(places.is_sorted_by(|one, other| one < other), "{places:?}");
    }

    #[test]
    fn a_refused_event_has_a_reason_without_its_content() {
        let error_of = |kind: &str, object: Value| read(kind, &object).unwrap_err().to_string();
        assert_eq!(error_of("charge.refunded", json!({})), "a type of event that is not used");
        let reason = "a checkout of nobody that is known";
        let user = "01900000-0000-7000-8000-a00c00000001";
        for session in [
            json!({}),
            json!({"customer": "cus_1"}),
            json!({"customer": "cus_1", "client_reference_id": "order 7"}),
            json!({"customer": null, "client_reference_id": user}),
        ] {
            assert_eq!(error_of("checkout.session.completed", session), reason);
        }
        let shape = "not in the shape that the provider documents";
        for (kind, object) in [
            ("checkout.session.completed", json!({"customer": 1, "client_reference_id": user})),
            ("checkout.session.completed", json!([])),
            ("customer.subscription.updated", json!({"id": "sub_1", "customer": "cus_1"})),
            ("customer.subscription.updated", json!({"id": "sub 1", "customer": "cus_1", "status": "active"})),
            ("customer.subscription.updated", json!({"id": "sub_1", "customer": "", "status": "active"})),
            ("customer.subscription.updated", json!({"id": "s".repeat(256), "customer": "c", "status": "active"})),
            ("invoice.paid", json!({"customer": "cus_1", "status_transitions": {"paid_at": i64::MAX}})),
            ("invoice.paid", json!({"customer": "cus_1", "status_transitions": {"paid_at": -1}})),
        ] {
            assert_eq!(error_of(kind, object.clone()), shape, "{kind} {object}");
        }
        for body in ["", "{", "null", "[]", "{}", r#"{"id":"evt_1","type":"invoice.paid","created":1.5,"data":{}}"#] {
            assert_eq!(PaymentEvent::read(body.as_bytes()).unwrap_err().to_string(), shape, "{body}");
        }
    }
}
