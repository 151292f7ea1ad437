//! Customers of the payment provider: the newest state of each from its events, and its effect on the user.
//!
//! Events come in any order, even before the user of a customer is known. So each customer has an item with the newest
//! state of everything that events report, each with the order of its event. The fields of the user's row follow from
//! this item.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::payments::event::{Period, SubscriptionNews};
use crate::records::user::User;
use crate::table::Fingerprint;
use crate::table::declaration::Declared as _;
use crate::table::keys::Key;
use crate::table::stored::{Single, Stored};
use crate::values::hash::hex;
use crate::values::id::{BillingPlanId, UserId};
use crate::values::provider::{EventOrder, ProviderId};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Seconds for which a customer without a known user is kept.
pub const KEPT: i64 = 30 * 86_400;

/// The most subscriptions of a customer that are kept. The ones that ended first are dropped first.
const MOST_SUBSCRIPTIONS: usize = 20;

/// The state of a customer of the provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaymentCustomer {
    /// The customer's id at the provider.
    pub customer_id: ProviderId,
    /// The user of this customer: the same checkout is the newest for both.
    pub user_id: Option<UserId>,
    /// The order of the newest checkout that named this customer, even if its user now has another customer.
    pub linked_by: Option<EventOrder>,
    /// The subscription that the newest checkout has begun.
    pub begun: Option<Newest<ProviderId>>,
    /// Its subscriptions, by their ids.
    pub subscriptions: BTreeMap<ProviderId, SubscriptionState>,
    /// Whether the newest invoice without a subscription was paid.
    pub invoice: Option<Newest<bool>>,
    /// The last payment.
    pub last_payment: Option<Timestamp>,
    /// Whether it has a means of payment, as far as an event has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_method: Option<Newest<bool>>,
    /// Whether it ever had a trial.
    pub used_trial: bool,
    /// How often it was written.
    pub version: u64,
    /// When the item expires, in seconds since 1970; `None` while its user is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
}

impl Stored for PaymentCustomer {
    type Id = Fingerprint;

    fn key(tenant: &Tenant, customer: Fingerprint) -> Key {
        Key::of(tenant, format_args!("PAYMENT_CUSTOMER#{}", hex(&customer)), "PAYMENT_CUSTOMER")
    }
}

impl Single for PaymentCustomer {}

/// The newest value that an event reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Newest<T> {
    /// The order of that event.
    pub order: EventOrder,
    /// The value.
    #[serde(rename = "told")]
    pub value: T,
}

/// The state of a subscription.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SubscriptionState {
    /// When it was created, in seconds since 1970.
    pub made_at: i64,
    /// Its newest status.
    pub status: Option<Newest<SubscriptionStatus>>,
    /// Whether its newest invoice was paid.
    pub invoice: Option<Newest<bool>>,
}

/// The status of a subscription, and its plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubscriptionStatus {
    /// The provider's word, such as `active`.
    pub status: ProviderId,
    /// The agency's plan, if it has one for the price.
    pub plan: Option<BillingPlanId>,
    /// The plan to which an update that is still pending leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_plan: Option<BillingPlanId>,
    /// The current period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// Whether the subscription ends with this period.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
}

impl SubscriptionStatus {
    fn is(&self, words: &[&str]) -> bool {
        words.contains(&self.status.as_str())
    }

    /// Whether it ended for good.
    fn has_ended(&self) -> bool {
        self.is(&["canceled", "incomplete_expired"])
    }

    /// Whether its plan is in force. `past_due` counts: the provider attempts the payment again.
    fn is_in_force(&self) -> bool {
        self.is(&["trialing", "active", "past_due"])
    }
}

impl SubscriptionState {
    fn has_ended(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.value.has_ended())
    }

    /// Whether the subscription is paid, from each of its events, with the order of the event.
    fn payments(&self) -> impl Iterator<Item = (&EventOrder, bool)> {
        let status = self.status.iter().map(|status| (&status.order, status.value.is(&["active"])));
        status.chain(invoice_payment(self.invoice.as_ref()))
    }
}

fn invoice_payment(invoice: Option<&Newest<bool>>) -> impl Iterator<Item = (&EventOrder, bool)> {
    invoice.into_iter().map(|invoice| (&invoice.order, invoice.value))
}

/// Stores a value that an event reported in `place`, unless a newer event, or this one, has reported it before.
fn keep_newest<T>(place: &mut Option<Newest<T>>, order: &EventOrder, value: T) {
    if place.as_ref().is_none_or(|known| known.order < *order) {
        *place = Some(Newest { order: order.clone(), value });
    }
}

impl PaymentCustomer {
    /// A customer without any state.
    pub const fn new(customer_id: ProviderId) -> Self {
        Self {
            customer_id,
            user_id: None,
            linked_by: None,
            begun: None,
            subscriptions: BTreeMap::new(),
            invoice: None,
            last_payment: None,
            payment_method: None,
            used_trial: false,
            version: 0,
            ttl: None,
        }
    }

    /// The state at `now`: DynamoDB deletes an item only some time after it has expired.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        let over = self.ttl.is_some_and(|ttl| ttl <= now.unix_seconds());
        if over { Self { version: self.version, ..Self::new(self.customer_id) } } else { self }
    }

    /// This customer after another write. It expires some time after `now` if its user is unknown.
    #[must_use]
    pub fn written(self, now: Timestamp) -> Self {
        let ttl = self.user_id.is_none().then(|| now.plus_seconds(KEPT).unix_seconds());
        Self { version: self.version + 1, ttl, ..self }
    }

    /// Records that a checkout has begun a subscription.
    pub fn begin(&mut self, order: &EventOrder, subscription: &ProviderId) {
        keep_newest(&mut self.begun, order, subscription.clone());
        self.subscription(subscription);
    }

    /// Records an event about a subscription to `plan`, and to `next_plan` after it.
    pub fn subscribe(
        &mut self,
        order: &EventOrder,
        news: &SubscriptionNews,
        [plan, next_plan]: [Option<BillingPlanId>; 2],
    ) {
        self.used_trial |= news.had_trial;
        // A subscription is paused where its trial has ended without a means of payment. One that names none may use
        // another one of its customer.
        if news.has_payment_method || news.status.as_str() == "paused" {
            keep_newest(&mut self.payment_method, order, news.has_payment_method);
        }
        let state = self.subscription(&news.id);
        state.made_at = state.made_at.max(news.made_at);
        let SubscriptionNews { period, ends, .. } = *news;
        let status = news.status.clone();
        keep_newest(&mut state.status, order, SubscriptionStatus { status, plan, next_plan, period, ends });
    }

    /// Records an event about an invoice, which may be for a subscription.
    pub fn invoice(
        &mut self,
        order: &EventOrder,
        subscription: Option<&ProviderId>,
        paid: Option<bool>,
        paid_at: Option<Timestamp>,
    ) {
        self.last_payment = self.last_payment.max(paid_at);
        let Some(paid) = paid else { return };
        if paid {
            keep_newest(&mut self.payment_method, order, true);
        }
        let place = match subscription {
            Some(id) => &mut self.subscription(id).invoice,
            None => &mut self.invoice,
        };
        keep_newest(place, order, paid);
    }

    /// The state of a subscription; adds the subscription if it is new.
    fn subscription(&mut self, id: &ProviderId) -> &mut SubscriptionState {
        if !self.subscriptions.contains_key(id) && self.subscriptions.len() >= MOST_SUBSCRIPTIONS {
            let least = self.subscriptions.iter().min_by_key(|&(id, state)| self.weight(id, state));
            if let Some(least) = least.map(|(id, _)| id.clone()) {
                self.subscriptions.remove(&least);
            }
        }
        self.subscriptions.entry(id.clone()).or_default()
    }

    /// Ranks several subscriptions; the highest is the user's: an active one first, then the one that a checkout began,
    /// then the youngest.
    fn weight<'a>(&self, id: &'a ProviderId, state: &SubscriptionState) -> (bool, bool, i64, &'a ProviderId) {
        let begun = self.begun.as_ref().is_some_and(|begun| begun.value == *id);
        (!state.has_ended(), begun, state.made_at, id)
    }

    /// The user's subscription.
    fn current(&self) -> Option<(&ProviderId, &SubscriptionState)> {
        self.subscriptions.iter().max_by_key(|&(id, state)| self.weight(id, state))
    }

    /// Whether it has a subscription that goes on. One whose status no event has reported counts.
    pub fn has_running_subscription(&self) -> bool {
        self.subscriptions.values().any(|state| !state.has_ended())
    }

    /// Whether the user pays, by the newest event about a payment.
    fn pays(&self) -> bool {
        let current = self.current().map(|(_, state)| state);
        if current.is_some_and(SubscriptionState::has_ended) {
            return false;
        }
        let of_current =
            current.into_iter().flat_map(SubscriptionState::payments).chain(invoice_payment(self.invoice.as_ref()));
        let of_all = self.subscriptions.values().flat_map(SubscriptionState::payments);
        of_current.max().or_else(|| of_all.max()).is_some_and(|(_, pays)| pays)
    }
}

/// `user` with the state of its customer alone, except that a trial stays used: events about another customer may come
/// later or never.
pub fn billed(user: &User, customer: Option<&PaymentCustomer>, now: Timestamp) -> User {
    let current = customer.and_then(PaymentCustomer::current);
    let status = current.and_then(|(_, state)| Some(&state.status.as_ref()?.value));
    let in_force = status.filter(|status| status.is_in_force());
    // The first period begins when the first invoice is paid.
    let begun = status.filter(|status| !status.is(&["incomplete", "incomplete_expired"]));
    let method = customer.and_then(|customer| customer.payment_method.as_ref());
    let mut is = User {
        payment_customer_id: customer.map(|customer| customer.customer_id.as_str().to_owned()),
        payment_subscription_id: current.map(|(id, _)| id.as_str().to_owned()),
        payment_subscription_status: status.map(|status| status.status.as_str().to_owned()),
        is_trial: status.is_some_and(|status| status.is(&["trialing"])),
        // A user who has had a trial keeps that mark, even with another customer.
        used_trial: user.used_trial || customer.is_some_and(|customer| customer.used_trial),
        is_paying: customer.is_some_and(PaymentCustomer::pays),
        active_billing_plan_id: in_force.and_then(|status| status.plan),
        next_billing_plan_id: in_force.and_then(|status| status.next_plan),
        payment_has_payment_method: method.is_some_and(|method| method.value),
        payment_last_payment_date: customer.and_then(|customer| customer.last_payment),
        last_credits_refresh: begun.and_then(|status| status.period).map(|period| period.start),
        next_credits_refresh: in_force
            .filter(|status| !status.ends)
            .and_then(|status| status.period)
            .map(|period| period.end),
        ..user.clone()
    };
    if is != *user {
        is.billing_updated_at = Some(now);
        is.touch(now);
    }
    is
}
