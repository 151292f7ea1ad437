//! Customers of the payment provider: the newest that its events have told of each, and what that makes of the user.
//!
//! Events come in any order, also before anybody knows whose customer it is. So each customer has an item with the newest state of everything that
//! events tell, each with the place of its event. What a user's row says follows from this item.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::payments::event::SubscriptionNews;
use crate::records::user::User;
use crate::table::Fingerprint;
use crate::table::declaration::Declared as _;
use crate::table::keys::Key;
use crate::table::stored::{Single, Stored};
use crate::values::id::{BillingPlanId, UserId};
use crate::values::provider::{EventOrder, ProviderId};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Seconds for which what is known of a customer is kept while nobody knows whose it is.
pub const KEPT: i64 = 30 * 86_400;

/// The most subscriptions of a customer that are kept. What ended first goes first.
const MOST_SUBSCRIPTIONS: usize = 20;

/// What is known of a customer of the provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaymentCustomer {
    /// The customer's id at the provider.
    pub customer_id: ProviderId,
    /// The user whose customer it is: of both, this is the newest checkout.
    pub user_id: Option<UserId>,
    /// The place of the newest checkout that told of it, also where that user has another customer.
    pub linked_by: Option<EventOrder>,
    /// The subscription that the newest checkout has begun.
    pub begun: Option<Newest<ProviderId>>,
    /// Its subscriptions, by their ids.
    pub subscriptions: BTreeMap<ProviderId, SubscriptionState>,
    /// Whether the newest invoice was paid that is for no subscription.
    pub invoice: Option<Newest<bool>>,
    /// The last payment.
    pub last_payment: Option<Timestamp>,
    /// Whether it ever had a trial.
    pub used_trial: bool,
    /// How often it was written.
    pub version: u64,
    /// Seconds since 1970 began, after which it is forgotten; none while it is known whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
}

impl Stored for PaymentCustomer {
    type Id = Fingerprint;

    fn key(tenant: &Tenant, customer: Fingerprint) -> Key {
        Key::of(tenant, format_args!("PAYMENT_CUSTOMER#{}", crate::hex(&customer)), "PAYMENT_CUSTOMER")
    }
}

impl Single for PaymentCustomer {}

/// The newest that an event has told of something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Newest<T> {
    /// The place of that event.
    pub order: EventOrder,
    /// What it told.
    pub told: T,
}

/// What is known of a subscription.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SubscriptionState {
    /// When it was made, in seconds since 1970 began.
    pub made_at: i64,
    /// Its newest status.
    pub status: Option<Newest<SubscriptionStatus>>,
    /// Whether its newest invoice was paid.
    pub invoice: Option<Newest<bool>>,
}

/// The status of a subscription, and what is subscribed to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubscriptionStatus {
    /// The provider's word, such as `active`.
    pub status: ProviderId,
    /// The agency's plan, where it has one for the price.
    pub plan: Option<BillingPlanId>,
}

impl SubscriptionStatus {
    fn is(&self, words: &[&str]) -> bool {
        words.contains(&self.status.as_str())
    }

    /// Whether nothing comes after it.
    fn has_ended(&self) -> bool {
        self.is(&["canceled", "incomplete_expired"])
    }

    /// Whether its plan is in force. `past_due` is: the provider tries the payment again.
    fn is_in_force(&self) -> bool {
        self.is(&["trialing", "active", "past_due"])
    }
}

impl SubscriptionState {
    fn has_ended(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.told.has_ended())
    }

    /// What the events of this subscription say of whether it is paid for, with their places.
    fn payments(&self) -> impl Iterator<Item = (&EventOrder, bool)> {
        let status = self.status.iter().map(|status| (&status.order, status.told.is(&["active"])));
        status.chain(told(self.invoice.as_ref()))
    }
}

fn told(invoice: Option<&Newest<bool>>) -> impl Iterator<Item = (&EventOrder, bool)> {
    invoice.into_iter().map(|invoice| (&invoice.order, invoice.told))
}

/// Puts what an event told into `place`, unless a newer one, or this one, has told it before.
fn tell<T>(place: &mut Option<Newest<T>>, order: &EventOrder, told: T) {
    if place.as_ref().is_none_or(|known| known.order < *order) {
        *place = Some(Newest { order: order.clone(), told });
    }
}

impl PaymentCustomer {
    /// A customer of whom nothing is known yet.
    pub const fn new(customer_id: ProviderId) -> Self {
        Self {
            customer_id,
            user_id: None,
            linked_by: None,
            begun: None,
            subscriptions: BTreeMap::new(),
            invoice: None,
            last_payment: None,
            used_trial: false,
            version: 0,
            ttl: None,
        }
    }

    /// What is still known at `now`: DynamoDB removes an item some time after its end.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        let over = self.ttl.is_some_and(|ttl| ttl <= now.unix_seconds());
        if over { Self { version: self.version, ..Self::new(self.customer_id) } } else { self }
    }

    /// The same after another write, which forgets it some time after `now` if nobody knows whose it is.
    #[must_use]
    pub fn written(self, now: Timestamp) -> Self {
        let ttl = self.user_id.is_none().then(|| now.plus_seconds(KEPT).unix_seconds());
        Self { version: self.version + 1, ttl, ..self }
    }

    /// A checkout has begun a subscription.
    pub fn begin(&mut self, order: &EventOrder, subscription: &ProviderId) {
        tell(&mut self.begun, order, subscription.clone());
        self.subscription(subscription);
    }

    /// An event told of a subscription to `plan`.
    pub fn subscribe(&mut self, order: &EventOrder, news: &SubscriptionNews, plan: Option<BillingPlanId>) {
        self.used_trial |= news.had_trial;
        let state = self.subscription(&news.id);
        state.made_at = state.made_at.max(news.made_at);
        tell(&mut state.status, order, SubscriptionStatus { status: news.status.clone(), plan });
    }

    /// An event told of an invoice, for a subscription where one is named.
    pub fn invoice(
        &mut self,
        order: &EventOrder,
        subscription: Option<&ProviderId>,
        paid: Option<bool>,
        paid_at: Option<Timestamp>,
    ) {
        self.last_payment = self.last_payment.max(paid_at);
        let Some(paid) = paid else { return };
        let place = match subscription {
            Some(id) => &mut self.subscription(id).invoice,
            None => &mut self.invoice,
        };
        tell(place, order, paid);
    }

    /// The state of a subscription, which is known from now on.
    fn subscription(&mut self, id: &ProviderId) -> &mut SubscriptionState {
        if !self.subscriptions.contains_key(id) && self.subscriptions.len() >= MOST_SUBSCRIPTIONS {
            let least = self.subscriptions.iter().min_by_key(|&(id, state)| self.weight(id, state));
            if let Some(least) = least.map(|(id, _)| id.clone()) {
                self.subscriptions.remove(&least);
            }
        }
        self.subscriptions.entry(id.clone()).or_default()
    }

    /// By this, one of several subscriptions is the user's: one that goes on, then the one that a checkout has begun, then the youngest.
    fn weight<'a>(&self, id: &'a ProviderId, state: &SubscriptionState) -> (bool, bool, i64, &'a ProviderId) {
        let begun = self.begun.as_ref().is_some_and(|begun| begun.told == *id);
        (!state.has_ended(), begun, state.made_at, id)
    }

    /// The user's subscription.
    fn current(&self) -> Option<(&ProviderId, &SubscriptionState)> {
        self.subscriptions.iter().max_by_key(|&(id, state)| self.weight(id, state))
    }

    /// Whether the user pays, by the newest event that tells of it.
    fn pays(&self) -> bool {
        let current = self.current().map(|(_, state)| state);
        if current.is_some_and(SubscriptionState::has_ended) {
            return false;
        }
        let of_current = current.into_iter().flat_map(SubscriptionState::payments).chain(told(self.invoice.as_ref()));
        let of_all = self.subscriptions.values().flat_map(SubscriptionState::payments);
        of_current.max().or_else(|| of_all.max()).is_some_and(|(_, pays)| pays)
    }
}

/// `user` as what is known of its customer has it, and nothing else but that it had a trial: what another customer had told may come later or never.
pub fn billed(user: &User, customer: Option<&PaymentCustomer>, now: Timestamp) -> User {
    let current = customer.and_then(PaymentCustomer::current);
    let status = current.and_then(|(_, state)| Some(&state.status.as_ref()?.told));
    let mut is = User {
        payment_customer_id: customer.map(|customer| customer.customer_id.as_str().to_owned()),
        payment_subscription_id: current.map(|(id, _)| id.as_str().to_owned()),
        payment_subscription_status: status.map(|status| status.status.as_str().to_owned()),
        is_trial: status.is_some_and(|status| status.is(&["trialing"])),
        // Whoever has had a trial has had it, also as another customer.
        used_trial: user.used_trial || customer.is_some_and(|customer| customer.used_trial),
        is_paying: customer.is_some_and(PaymentCustomer::pays),
        active_billing_plan_id: status.filter(|status| status.is_in_force()).and_then(|status| status.plan),
        payment_last_payment_date: customer.and_then(|customer| customer.last_payment),
        ..user.clone()
    };
    if is != *user {
        is.billing_updated_at = Some(now);
        is.touch(now);
    }
    is
}
