//! `POST /api/v1/agency/webhook/payment/{agency_id}`: counts each payment event once, in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use local::Stack;
use local::database::TABLE_NAME;
use local::faults::Fault;
use local::http::{Answer, Call};
use local::payment_provider::event::NewPaymentEvent;
use local::payment_provider::{SEND, signature};
use repository::{names_in, root};
use serde_json::{Value, json};
use shared::payments::provider::EVENTS;
use shared::routes;
use shared::runtime::lambda::tracing::Level;
use shared::table::meter::Cost;

use crate::support::fixture::{
    ACME, GLOBEX, NOW, as_stored, call, data, demo_payment_secret, everything, failure, few, http_client, id, json,
    kind, path, post, settings, stack, stack_with_clock, streaming, with_faults,
};
use crate::support::generated::generated;
use crate::support::log::Log;
use crate::support::records::{NOBODYS, changes, items, key, nothing};
use crate::support::sealed::unseal;
use crate::support::sweep::cases;

const DAY: i64 = 86_400;

/// The number of the next event or user: each gets its own id.
static NUMBER: AtomicUsize = AtomicUsize::new(1);

fn event(kind: &str) -> NewPaymentEvent {
    let event_id = Some(format!("evt_test_{:06}", NUMBER.fetch_add(1, Ordering::SeqCst)));
    NewPaymentEvent { event_id, ..NewPaymentEvent::of(kind) }
}

/// An event of `kind` about the customer and the subscription whose ids end with `ending`.
fn event_about(kind: &str, ending: &str, seconds_ago: i64) -> NewPaymentEvent {
    let (customer_id, subscription_id) = (Some(format!("cus_{ending}")), Some(format!("sub_{ending}")));
    NewPaymentEvent { customer_id, subscription_id, seconds_ago, ..event(kind) }
}

fn checkout(user: &str, ending: &str, seconds_ago: i64) -> NewPaymentEvent {
    NewPaymentEvent { user_id: Some(user.to_owned()), ..event_about("checkout.session.completed", ending, seconds_ago) }
}

fn subscription(status: &str, ending: &str, seconds_ago: i64) -> NewPaymentEvent {
    let (status, lookup_key) = (Some(status.to_owned()), Some("pro".to_owned()));
    NewPaymentEvent { status, lookup_key, ..event_about("customer.subscription.updated", ending, seconds_ago) }
}

fn address(agency: &str) -> String {
    path(&routes::RECEIVE_PAYMENT_EVENT, |_| agency.to_owned())
}

/// The agency of the demo set that has a webhook.
fn agency(organisation: char) -> String {
    id(organisation, kind::AGENCY, 0)
}

/// A request of the provider at the stack's time, signed with `secret`.
fn sent(stack: &Stack, agency: &str, secret: &str, body: impl Into<Vec<u8>>) -> Call {
    let (body, now) = (body.into(), stack.gateway.service.clock.now().unix_seconds());
    let headers = [("stripe-signature".to_owned(), signature(secret, now, &body))].into();
    Call { method: "POST".into(), path: address(agency), headers, body, ..Call::default() }
}

fn signed_call(stack: &Stack, organisation: char, event: &NewPaymentEvent) -> Call {
    let body = event.body(1, stack.gateway.service.clock.now().unix_seconds()).to_string();
    sent(stack, &agency(organisation), demo_payment_secret(organisation), body)
}

/// Sends the event and returns its outcome.
async fn receive(stack: &Stack, event: &NewPaymentEvent) -> String {
    outcome(&stack.answer(&signed_call(stack, 'a', event)).await)
}

fn outcome(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.body);
    data(answer)["outcome"].as_str().unwrap().to_owned()
}

/// Sends a checkout without a subscription, such as a single payment, and returns its outcome.
async fn receive_without_subscription(stack: &Stack, checkout: &NewPaymentEvent) -> String {
    let mut body = checkout.body(1, NOW / 1000);
    body["data"]["object"]["subscription"] = Value::Null;
    outcome(&stack.answer(&sent(stack, &agency('a'), demo_payment_secret('a'), body.to_string())).await)
}

async fn new_user(stack: &Stack) -> String {
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    let body = json!({"first_name": "Ada", "last_name": "Lovelace", "email": format!("ada{number}@example.com")});
    let user = data(&stack.answer(&post("/api/v1/user", ACME, body.to_string())).await);
    user["id"].as_str().unwrap().to_owned()
}

/// A plan of the agency, by the lookup key of its price.
async fn new_plan(stack: &Stack, lookup_key: &str) -> Value {
    let path = format!("/api/v1/agency/billing/{}/billing_plan", agency('a'));
    let body = json!({
        "name": "Pro", "description": "All of it", "bots_count": 5, "queries_count": 1000, "words_count": 50000,
        "voice_seconds": 3600, "premium_support": true, "plan_lookup_key": lookup_key,
    });
    data(&stack.answer(&post(&path, ACME, body.to_string())).await)["id"].clone()
}

const BILLING: [&str; 8] = [
    "payment_customer_id",
    "payment_subscription_id",
    "payment_subscription_status",
    "is_trial",
    "used_trial",
    "is_paying",
    "active_billing_plan_id",
    "payment_last_payment_date",
];

/// The billing fields of the user.
async fn billing(stack: &Stack, user: &str) -> Value {
    let user = data(&stack.answer(&call("GET", &format!("/api/v1/user/{user}"), ACME)).await);
    BILLING.iter().map(|name| ((*name).to_owned(), user[name].clone())).collect()
}

/// The billing fields of a user after events that set only `fields`.
fn billing_with(fields: &Value) -> Value {
    let mut user = json!({
        "payment_customer_id": null, "payment_subscription_id": null, "payment_subscription_status": null, "is_trial": false,
        "used_trial": false, "is_paying": false, "active_billing_plan_id": null, "payment_last_payment_date": null,
    });
    user.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    user
}

/// The time `seconds` before the time of the tests.
fn ago(seconds: i64) -> String {
    shared::values::time::Timestamp::from_unix_millis(NOW).plus_seconds(-seconds).to_string()
}

type Row = BTreeMap<String, AttributeValue>;

/// The rows of customers.
async fn customers(stack: &Stack) -> Vec<Row> {
    let all = everything(stack).await.into_iter();
    all.filter(|item| item["sk"].as_s().unwrap() == "PAYMENT_CUSTOMER").collect()
}

/// The table without the notes of events that have counted.
async fn without_notes(stack: &Stack) -> Vec<Row> {
    let mut all = everything(stack).await;
    all.retain(|item| item["sk"].as_s().unwrap() != "PAYMENT_EVENT");
    // A repeated change raises the version and sets the changing request.
    for item in &mut all {
        item.retain(|name, _| !["version", "changed_by"].contains(&name.as_str()));
    }
    all
}

#[tokio::test]
async fn each_event_type_updates_the_user() {
    let stack = stack().await;
    let (user, plan) = (new_user(&stack).await, new_plan(&stack, "pro").await);
    assert_eq!(receive(&stack, &checkout(&user, "1", 900)).await, "applied");
    let mut wanted = billing_with(&json!({"payment_customer_id": "cus_1", "payment_subscription_id": "sub_1"}));
    assert_eq!(billing(&stack, &user).await, wanted);
    let mut seconds_ago = 800;
    for (event, changed) in [
        (
            subscription("trialing", "1", 0),
            json!({"payment_subscription_status": "trialing", "is_trial": true, "used_trial": true, "active_billing_plan_id": plan}),
        ),
        (event_about("customer.subscription.trial_will_end", "1", 0), json!({"active_billing_plan_id": null})),
        (
            subscription("active", "1", 0),
            json!({"payment_subscription_status": "active", "is_trial": false, "is_paying": true, "active_billing_plan_id": plan}),
        ),
        (event_about("invoice.payment_failed", "1", 0), json!({"is_paying": false})),
        (subscription("past_due", "1", 0), json!({"payment_subscription_status": "past_due"})),
        (event_about("invoice.paid", "1", 0), json!({"is_paying": true, "payment_last_payment_date": ago(400)})),
        (
            event_about("customer.subscription.paused", "1", 0),
            json!({"payment_subscription_status": "paused", "is_paying": false, "active_billing_plan_id": null}),
        ),
        (
            NewPaymentEvent { lookup_key: Some("pro".into()), ..event_about("customer.subscription.resumed", "1", 0) },
            json!({"payment_subscription_status": "active", "is_paying": true, "active_billing_plan_id": plan}),
        ),
        (
            event_about("customer.subscription.deleted", "1", 0),
            json!({"payment_subscription_status": "canceled", "is_paying": false, "active_billing_plan_id": null}),
        ),
        // The last invoice of a subscription that has ended.
        (event_about("invoice.paid", "1", 0), json!({"payment_last_payment_date": ago(80)})),
    ] {
        for old_version in [false, true] {
            let event_id = Some(format!("{}_{old_version}", event.event_id.clone().unwrap()));
            let event = NewPaymentEvent { seconds_ago, old_version, event_id, ..event.clone() };
            // The second event of the same second has the greater id, so it is the newer one.
            assert_eq!(receive(&stack, &event).await, "applied", "{event:?}");
            wanted.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
            assert_eq!(billing(&stack, &user).await, wanted, "{event:?}");
        }
        seconds_ago -= 80;
    }
    let user = data(&stack.answer(&call("GET", &format!("/api/v1/user/{user}"), ACME)).await);
    assert_eq!((&user["billing_updated_at"], &user["updated_at"]), (&json!(ago(0)), &json!(ago(0))));
}

/// The fields of the user that follow from the period, the means of payment and the next price of a subscription.
const SUBSCRIBED: [&str; 4] =
    ["payment_has_payment_method", "next_billing_plan_id", "last_credits_refresh", "next_credits_refresh"];

/// These fields of the user.
async fn subscribed(stack: &Stack, user: &str) -> Value {
    let user = data(&stack.answer(&call("GET", &format!("/api/v1/user/{user}"), ACME)).await);
    json!(SUBSCRIBED.map(|name| user[name].clone()))
}

#[tokio::test]
async fn the_newest_event_sets_period_next_plan_and_payment_method() {
    let month = 30 * DAY;
    for old_version in [false, true] {
        let stack = stack().await;
        let (user, next) = (new_user(&stack).await, new_plan(&stack, "team").await);
        receive(&stack, &checkout(&user, "1", 900)).await;
        assert_eq!(subscribed(&stack, &user).await, json!([false, null, null, null]));
        let of =
            |status: &str, seconds_ago: i64| NewPaymentEvent { old_version, ..subscription(status, "1", seconds_ago) };
        let with_card = |event: NewPaymentEvent| NewPaymentEvent { payment_method: Some("pm_1".into()), ..event };
        let updating = NewPaymentEvent { next_lookup_key: Some("team".into()), ..of("active", 500) };
        let steps = [
            (of("incomplete", 800), json!([false, null, null, null])),
            (of("trialing", 700), json!([false, null, ago(700), ago(700 - month)])),
            (with_card(of("active", 600)), json!([true, null, ago(600), ago(600 - month)])),
            // A subscription without a means of payment of its own uses that of its customer.
            (updating, json!([true, next, ago(500), ago(500 - month)])),
            (of("active", 400), json!([true, null, ago(400), ago(400 - month)])),
            (NewPaymentEvent { ends: true, ..of("active", 300) }, json!([true, null, ago(300), null])),
            (of("paused", 200), json!([false, null, ago(200), null])),
            (of("active", 150), json!([false, null, ago(150), ago(150 - month)])),
            (event_about("invoice.paid", "1", 120), json!([true, null, ago(150), ago(150 - month)])),
            (of("canceled", 100), json!([true, null, ago(100), null])),
        ];
        for (event, wanted) in &steps {
            assert_eq!(receive(&stack, event).await, "applied");
            assert_eq!(subscribed(&stack, &user).await, *wanted, "{event:?}");
        }
        // An older event, which comes late, moves nothing back.
        for (event, _) in &steps {
            let late = NewPaymentEvent { event_id: Some(format!("{}_late", event.seconds_ago)), ..event.clone() };
            let late = NewPaymentEvent { seconds_ago: late.seconds_ago + 1, ..late };
            receive(&stack, &late).await;
            assert_eq!(subscribed(&stack, &user).await, steps[9].1, "{late:?}");
        }
    }
}

#[tokio::test]
async fn a_lookup_key_selects_the_plan_of_the_agency() {
    let stack = stack().await;
    let user = new_user(&stack).await;
    receive(&stack, &checkout(&user, "1", 900)).await;
    for (seconds_ago, lookup_key) in [(800, None), (700, Some("pro"))] {
        let lookup_key = lookup_key.map(str::to_owned);
        receive(&stack, &NewPaymentEvent { lookup_key, ..subscription("active", "1", seconds_ago) }).await;
        assert_eq!(billing(&stack, &user).await["active_billing_plan_id"], Value::Null);
    }
    let plans = [new_plan(&stack, "basic").await, new_plan(&stack, "pro").await, new_plan(&stack, "pro").await];
    for (seconds_ago, lookup_key, plan) in
        [(600, "pro", &plans[1]), (500, "basic", &plans[0]), (400, "x", &Value::Null)]
    {
        let lookup_key = Some(lookup_key.to_owned());
        receive(&stack, &NewPaymentEvent { lookup_key, ..subscription("active", "1", seconds_ago) }).await;
        assert_eq!(&billing(&stack, &user).await["active_billing_plan_id"], plan);
    }
}

fn permutations(rest: &[usize]) -> Vec<Vec<usize>> {
    if rest.is_empty() {
        return vec![Vec::new()];
    }
    let with = |first: &usize| {
        let others: Vec<usize> = rest.iter().copied().filter(|other| other != first).collect();
        permutations(&others).into_iter().map(|others| [vec![*first], others].concat()).collect::<Vec<_>>()
    };
    rest.iter().flat_map(with).collect()
}

#[tokio::test]
async fn events_in_any_order_give_the_same_user() {
    let stack = stack().await;
    let plan = new_plan(&stack, "pro").await;
    for (number, order) in cases(permutations(&[0, 1, 2, 3, 4]).into_iter().enumerate()) {
        let (user, ending) = (new_user(&stack).await, number.to_string());
        let first =
            NewPaymentEvent { kind: "customer.subscription.created".into(), ..subscription("trialing", &ending, 90) };
        let events = [
            checkout(&user, &ending, 100),
            first,
            // Of one second, as the provider often has them.
            subscription("active", &ending, 50),
            event_about("invoice.paid", &ending, 50),
            event_about("invoice.payment_failed", &ending, 20),
        ];
        for place in &order {
            receive(&stack, &events[*place]).await;
        }
        // A repeated event changes nothing.
        let before = everything(&stack).await;
        assert_eq!(receive(&stack, &events[order[0]]).await, "repeated");
        assert_eq!(everything(&stack).await, before);
        let wanted = billing_with(&json!({
            "payment_customer_id": format!("cus_{ending}"),
            "payment_subscription_id": format!("sub_{ending}"),
            "payment_subscription_status": "active",
            "used_trial": true,
            "active_billing_plan_id": plan,
            "payment_last_payment_date": ago(50),
        }));
        assert_eq!(billing(&stack, &user).await, wanted, "{order:?}");
    }
}

#[tokio::test]
async fn a_new_customer_replaces_one_whose_subscription_has_ended() {
    let stack = stack().await;
    for (number, order) in cases(permutations(&[0, 1, 2, 3, 4]).into_iter().enumerate()) {
        let (user, former, present) = (new_user(&stack).await, format!("{number}_a"), format!("{number}_b"));
        let events = [
            checkout(&user, &former, 100),
            subscription("trialing", &former, 90),
            event_about("invoice.paid", &former, 80),
            checkout(&user, &present, 50),
            event_about("customer.subscription.deleted", &former, 20),
        ];
        for place in &order {
            match place {
                3 => receive_without_subscription(&stack, &events[3]).await,
                place => receive(&stack, &events[*place]).await,
            };
        }
        // While the former subscription goes on, the new checkout is refused. The provider sends it again after the end.
        let places = [0, 3, 4].map(|event| order.iter().position(|place| *place == event).unwrap());
        let refused = places[0] < places[1] && places[1] < places[2];
        let again = receive_without_subscription(&stack, &events[3]).await;
        assert_eq!(again, if refused { "applied" } else { "repeated" }, "{order:?}");
        // The trial stays on record if both the first checkout and the trial were reported before the second checkout.
        let before = order.iter().take_while(|place| refused || **place != 3).filter(|place| **place < 2).count();
        let had_trial = before == 2;
        let wanted = json!({"payment_customer_id": format!("cus_{present}"), "used_trial": had_trial});
        assert_eq!(billing(&stack, &user).await, billing_with(&wanted), "{order:?}");
    }
}

#[tokio::test]
async fn a_user_loses_a_customer_to_a_later_checkout_of_another_user() {
    let stack = stack().await;
    for (number, order) in permutations(&[0, 1, 2]).into_iter().enumerate() {
        let (ada, bob) = (new_user(&stack).await, new_user(&stack).await);
        let (first, second) = (format!("{number}_a"), format!("{number}_b"));
        // The last checkout gives Ada's last customer to Bob, so Ada has none.
        let checkouts = [checkout(&ada, &first, 300), checkout(&ada, &second, 200), checkout(&bob, &second, 100)];
        for place in &order {
            receive_without_subscription(&stack, &checkouts[*place]).await;
        }
        let names = async |user: &str| billing(&stack, user).await["payment_customer_id"].clone();
        let wanted = (Value::Null, json!(format!("cus_{second}")));
        assert_eq!((names(&ada).await, names(&bob).await), wanted, "{order:?}");
    }
}

/// An event of a random set. Its content is the same in every order of the set.
struct RandomEvent {
    kind: &'static str,
    status: &'static str,
    user: usize,
    customer: usize,
    subscription: Option<usize>,
    seconds_ago: i64,
}

const CHECKOUT: &str = "checkout.session.completed";

impl RandomEvent {
    fn new(random: &mut fastrand::Rng) -> Self {
        let kinds = [
            CHECKOUT,
            CHECKOUT,
            "customer.subscription.created",
            "customer.subscription.updated",
            "customer.subscription.deleted",
            "invoice.paid",
            "invoice.payment_failed",
        ];
        let kind = kinds[random.usize(..kinds.len())];
        let statuses = ["trialing", "active", "past_due", "canceled"];
        Self {
            kind,
            status: if kind.ends_with("deleted") { "canceled" } else { statuses[random.usize(..statuses.len())] },
            user: random.usize(..2),
            customer: random.usize(..3),
            subscription: (kind != CHECKOUT || random.bool()).then(|| random.usize(..2)),
            // Several events have the same second.
            seconds_ago: random.i64(1..8),
        }
    }

    /// The same without what would refuse a later checkout of another customer: a subscription that goes on.
    fn of_ended_subscriptions(self) -> Self {
        let subscription = self.subscription.filter(|_| self.kind.starts_with("customer.subscription"));
        Self { status: "canceled", subscription, ..self }
    }

    /// The same about the only customer of the user.
    fn of_one_customer(self) -> Self {
        Self { customer: self.user, ..self }
    }

    /// The event with this number of the set, about these users. `ending` keeps the ids of two orders apart.
    fn body(&self, number: usize, users: &[String; 2], ending: &str) -> String {
        let event = NewPaymentEvent {
            user_id: Some(users[self.user].clone()),
            customer_id: Some(format!("cus_{}{ending}", self.customer)),
            subscription_id: self.subscription.map(|place| format!("sub_{}_{place}{ending}", self.customer)),
            status: Some(self.status.to_owned()),
            lookup_key: Some("pro".to_owned()),
            seconds_ago: self.seconds_ago,
            event_id: Some(format!("evt_{number:02}{ending}")),
            ..NewPaymentEvent::of(self.kind)
        };
        let mut body = event.body(1, NOW / 1000);
        if self.subscription.is_none() {
            body["data"]["object"]["subscription"] = Value::Null;
            body["data"]["object"]["parent"] = Value::Null;
        }
        body.to_string()
    }
}

/// The customer of `user` after a set: the one of the user's last checkout, if the customer has no later checkout.
fn customer_after(events: &[RandomEvent], user: usize) -> Option<usize> {
    let last = |concerns: &dyn Fn(&RandomEvent) -> bool| {
        let checkouts = events.iter().enumerate().filter(|(_, event)| event.kind == CHECKOUT && concerns(event));
        checkouts.max_by_key(|(number, event)| (-event.seconds_ago, *number)).map(|(number, _)| number)
    };
    let of_user = last(&|event| event.user == user)?;
    let customer = events[of_user].customer;
    (last(&|event| event.customer == customer) == Some(of_user)).then_some(customer)
}

#[tokio::test]
async fn random_events_in_any_order_or_at_once_give_the_same_users() {
    const SETS: u64 = 60;
    let stack = stack().await;
    new_plan(&stack, "pro").await;
    let mut linked = 0;
    let sets = cases(0..SETS);
    for set in &sets {
        let set = *set;
        let mut random = fastrand::Rng::with_seed(set);
        // The order decides whether a checkout is refused. So a user has one customer, or customers without a running
        // subscription.
        let restrict = if set % 2 == 0 { RandomEvent::of_ended_subscriptions } else { RandomEvent::of_one_customer };
        let events: Vec<_> = (0..random.usize(3..10)).map(|_| restrict(RandomEvent::new(&mut random))).collect();
        linked += usize::from((0..2).any(|user| customer_after(&events, user).is_some()));
        let mut order: Vec<usize> = (0..events.len()).collect();
        let mut first = None;
        for attempt in 0..6 {
            let (users, ending) =
                ([new_user(&stack).await, new_user(&stack).await], format!("_of_set_{set}_order_{attempt}"));
            let deliver = async |place: usize| {
                let body = events[place].body(place, &users, &ending);
                outcome(&stack.answer(&sent(&stack, &agency('a'), demo_payment_secret('a'), body)).await);
            };
            if attempt == 0 {
                join_all(order.iter().map(|place| deliver(*place))).await;
            } else {
                for place in &order {
                    deliver(*place).await;
                }
            }
            let mut is = Vec::new();
            for (place, user) in users.iter().enumerate() {
                let mut billing = billing(&stack, user).await;
                // A user keeps the trial of a former customer, so this field depends on the order.
                billing.as_object_mut().unwrap().remove("used_trial");
                let customer = customer_after(&events, place).map(|customer| format!("cus_{customer}{ending}"));
                assert_eq!(billing["payment_customer_id"], json!(customer), "{set} {order:?}");
                is.push(billing.to_string().replace(&ending, ""));
            }
            assert_eq!(&is, first.get_or_insert_with(|| is.clone()), "{set} {order:?}");
            random.shuffle(&mut order);
        }
    }
    // At most eight of the sixty sets leave both users without a customer.
    assert!(linked > 0 && linked + 8 >= sets.len(), "{linked} of {} sets", sets.len());
}

/// The agency is as it was stored before secrets were sealed.
#[tokio::test]
async fn an_old_agency_is_sealed_when_a_checkout_is_refused() {
    let stack = stack().await;
    unseal(&stack).await;
    let victim = new_user(&stack).await;
    receive(&stack, &checkout(&victim, "victim", 900)).await;
    receive(&stack, &subscription("active", "victim", 890)).await;
    assert!(format!("{:?}", as_stored(&stack)).contains(demo_payment_secret('a')));
    assert_eq!(receive(&stack, &checkout(&victim, "buyer", 800)).await, "ignored");
    assert!(!format!("{:?}", as_stored(&stack)).contains(demo_payment_secret('a')));
}

#[tokio::test]
async fn a_checkout_does_not_replace_a_customer_who_goes_on_paying() {
    let log = Log::default();
    let _guard = log.listen(Level::WARN);
    let stack = stack().await;
    let (victim, plan) = (new_user(&stack).await, new_plan(&stack, "pro").await);
    receive(&stack, &checkout(&victim, "victim", 900)).await;
    receive(&stack, &subscription("active", "victim", 890)).await;
    let before = (billing(&stack, &victim).await, customers(&stack).await);
    assert_eq!((&before.0["is_paying"], &before.0["active_billing_plan_id"]), (&json!(true), &plan));
    // A buyer names the victim, twice, and then cancels.
    let taking = checkout(&victim, "buyer", 800);
    for _ in 0..2 {
        assert_eq!(receive(&stack, &taking).await, "ignored");
        assert_eq!((billing(&stack, &victim).await, customers(&stack).await), before);
    }
    receive(&stack, &subscription("active", "buyer", 790)).await;
    receive(&stack, &event_about("customer.subscription.deleted", "buyer", 780)).await;
    assert_eq!(billing(&stack, &victim).await, before.0);
    assert_eq!(receive(&stack, &event_about("invoice.paid", "victim", 700)).await, "applied");
    assert_eq!(billing(&stack, &victim).await["payment_last_payment_date"], ago(700));
    // It is reported: in the log without ids of customers and users, and once in the state of the webhook.
    let (text, event_id) = (log.text(), taking.event_id.clone().unwrap());
    let line = text.lines().find(|line| line.contains("a checkout of another customer was refused"));
    assert!(line.is_some_and(|line| line.contains(&event_id)), "{text}");
    assert!(!text.contains("cus_") && !text.contains(&victim), "{text}");
    let check = format!("/api/v1/agency/billing/{}/check_payment_webhook", agency('a'));
    let state = data(&stack.answer(&call("GET", &check, ACME)).await);
    let refused = json!([{"event_id": event_id, "user_id": victim, "customer_id": "cus_buyer", "refused_at": ago(0)}]);
    assert_eq!(state["refused_checkouts"], refused);
    // After the end of the subscription the user has another customer.
    receive(&stack, &event_about("customer.subscription.deleted", "victim", 600)).await;
    receive(&stack, &subscription("active", "another", 500)).await;
    let another = checkout(&victim, "another", 510);
    assert_eq!(receive(&stack, &another).await, "applied");
    let after = billing(&stack, &victim).await;
    assert_eq!((&after["payment_customer_id"], &after["is_paying"]), (&json!("cus_another"), &json!(true)));
    // The refused checkout is older by now.
    receive(&stack, &taking).await;
    assert_eq!(receive(&stack, &another).await, "repeated");
    assert_eq!(billing(&stack, &victim).await, after);
}

#[tokio::test]
async fn an_event_of_another_mode_than_the_key_is_ignored() {
    let stack = stack().await;
    let path = format!("/api/v1/agency/{}", agency('a'));
    for (key, of_test, of_live) in [
        ("sk_live_0123456789", "ignored", "applied"),
        ("rk_test_0123456789", "applied", "ignored"),
        ("sk_demo_0123456789", "applied", "applied"),
    ] {
        let body = json!({"billing_plan": {"payment_api_key": key}}).to_string();
        data(&stack.answer(&Call { body: body.into(), ..call("PUT", &path, ACME) }).await);
        for (mode, wanted) in [(json!(false), of_test), (json!(true), of_live), (Value::Null, "applied")] {
            let user = new_user(&stack).await;
            let mut body = checkout(&user, &user, 0).body(1, NOW / 1000);
            body["livemode"] = mode.clone();
            let before = items(&stack).await;
            let call = sent(&stack, &agency('a'), demo_payment_secret('a'), body.to_string());
            assert_eq!(outcome(&stack.answer(&call).await), wanted, "{key} {mode}");
            assert_eq!(changes(&stack, &before).await == nothing(), wanted == "ignored", "{key} {mode}");
        }
    }
}

#[tokio::test]
async fn a_user_stored_without_payment_linked_by_ignores_older_checkouts() {
    let stack = stack().await;
    let user = new_user(&stack).await;
    receive_without_subscription(&stack, &checkout(&user, "1", 100)).await;
    let row =
        everything(&stack).await.into_iter().find(|item| item.get("id") == Some(&AttributeValue::S(user.clone())));
    let row = row.unwrap();
    let update = stack.client.update_item().table_name(TABLE_NAME).update_expression("REMOVE payment_linked_by");
    let update = update.key("pk", row["pk"].clone()).key("sk", row["sk"].clone());
    update.send().await.unwrap();
    // An older checkout of another customer leaves the user unchanged. A newer one changes it.
    receive(&stack, &checkout(&user, "2", 200)).await;
    assert_eq!(billing(&stack, &user).await["payment_customer_id"], "cus_1");
    receive(&stack, &checkout(&user, "3", 50)).await;
    assert_eq!(billing(&stack, &user).await["payment_customer_id"], "cus_3");
}

#[tokio::test]
async fn the_newest_live_subscription_determines_the_billing() {
    let stack = stack().await;
    let user = new_user(&stack).await;
    let of = |event: NewPaymentEvent, id: &str| NewPaymentEvent { subscription_id: Some(id.to_owned()), ..event };
    receive(&stack, &of(checkout(&user, "1", 900), "sub_old")).await;
    receive(&stack, &of(subscription("active", "1", 800), "sub_old")).await;
    receive(&stack, &of(checkout(&user, "1", 700), "sub_new")).await;
    receive(&stack, &of(subscription("active", "1", 600), "sub_new")).await;
    let wanted = billing(&stack, &user).await;
    assert_eq!((&wanted["payment_subscription_id"], &wanted["is_paying"]), (&json!("sub_new"), &json!(true)));
    // The old subscription ends with an unpaid invoice.
    receive(&stack, &of(event_about("customer.subscription.deleted", "1", 500), "sub_old")).await;
    receive(&stack, &of(event_about("invoice.payment_failed", "1", 400), "sub_old")).await;
    assert_eq!(billing(&stack, &user).await, wanted);
    // After the new one ends, a third one replaces it without a checkout.
    receive(&stack, &of(event_about("customer.subscription.deleted", "1", 300), "sub_new")).await;
    assert_eq!(billing(&stack, &user).await["payment_subscription_status"], "canceled");
    receive(&stack, &of(subscription("active", "1", 200), "sub_third")).await;
    assert_eq!(billing(&stack, &user).await["payment_subscription_id"], "sub_third");
    // The row keeps the latest twenty subscriptions.
    for number in 0..30 {
        receive(&stack, &of(event_about("customer.subscription.deleted", "1", 100), &format!("sub_{number}"))).await;
    }
    assert_eq!(customers(&stack).await[0]["subscriptions"].as_m().unwrap().len(), 20);
    assert_eq!(billing(&stack, &user).await["payment_subscription_id"], "sub_third");
}

#[tokio::test]
async fn an_event_counts_once_within_thirty_days() {
    let (stack, set) = stack_with_clock().await;
    let user = new_user(&stack).await;
    let event = checkout(&user, "1", 0);
    assert_eq!(receive(&stack, &event).await, "applied");
    let note = |item: &&Row| item["sk"].as_s().unwrap() == "PAYMENT_EVENT";
    let all = everything(&stack).await;
    let notes: Vec<_> = all.iter().filter(note).collect();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0]["ttl"], AttributeValue::N((NOW / 1000 + 30 * DAY).to_string()));
    assert_eq!(receive(&stack, &event).await, "repeated");
    assert_eq!(everything(&stack).await, all);
    for (seconds, outcome) in [(30 * DAY - 1, "repeated"), (30 * DAY, "applied"), (30 * DAY, "repeated")] {
        set(seconds * 1000);
        assert_eq!(receive(&stack, &event).await, outcome);
    }
    // An older event changes nothing, and its id is stored as well.
    let older = checkout(&user, "1", 60 * DAY);
    assert_eq!(receive(&stack, &older).await, "superseded");
    assert_eq!(receive(&stack, &older).await, "repeated");
}

#[tokio::test]
async fn an_event_without_a_user_is_kept_for_thirty_days() {
    let (stack, set) = stack_with_clock().await;
    let user = new_user(&stack).await;
    for event in [subscription("active", "1", 60), event_about("invoice.paid", "1", 50)] {
        assert_eq!(receive(&stack, &event).await, "kept");
    }
    let ttl = AttributeValue::N((NOW / 1000 + 30 * DAY).to_string());
    assert_eq!(customers(&stack).await[0]["ttl"], ttl);
    set((30 * DAY - 1) * 1000);
    assert_eq!(receive(&stack, &checkout(&user, "1", 0)).await, "applied");
    assert_eq!(billing(&stack, &user).await["payment_last_payment_date"], ago(50));
    assert!(!customers(&stack).await[0].contains_key("ttl"));
    // After thirty days the kept event is forgotten.
    assert_eq!(receive(&stack, &event_about("invoice.paid", "2", 0)).await, "kept");
    set((60 * DAY) * 1000);
    let other = new_user(&stack).await;
    assert_eq!(receive(&stack, &checkout(&other, "2", 0)).await, "applied");
    assert_eq!(billing(&stack, &other).await["payment_last_payment_date"], Value::Null);
}

#[tokio::test]
async fn the_newest_checkout_links_user_and_customer() {
    for newest_first in [false, true] {
        let stack = stack().await;
        let (ada, bob) = (new_user(&stack).await, new_user(&stack).await);
        // Ada gets another customer; then Bob gets her first one.
        let mut checkouts = [checkout(&ada, "1", 900), checkout(&ada, "2", 800), checkout(&bob, "1", 700)];
        if newest_first {
            checkouts.reverse();
        }
        for checkout in &checkouts {
            receive_without_subscription(&stack, checkout).await;
        }
        let names = async |user: &str| billing(&stack, user).await["payment_customer_id"].clone();
        assert_eq!((names(&ada).await, names(&bob).await), (json!("cus_2"), json!("cus_1")), "{newest_first}");
        receive(&stack, &subscription("active", "1", 600)).await;
        receive(&stack, &event_about("customer.subscription.deleted", "2", 600)).await;
        let status = async |user: &str| billing(&stack, user).await["payment_subscription_status"].clone();
        assert_eq!((status(&ada).await, status(&bob).await), (json!("canceled"), json!("active")), "{newest_first}");
        // A newer checkout gives the customer back to Ada: Bob keeps nothing of it.
        receive(&stack, &checkout(&ada, "1", 500)).await;
        let wanted = billing_with(&json!({}));
        assert_eq!(billing(&stack, &bob).await, wanted, "{newest_first}");
        assert_eq!((names(&ada).await, status(&ada).await), (json!("cus_1"), json!("active")));
        // An event of the customer that she had before changes no user.
        assert_eq!(receive(&stack, &subscription("active", "2", 400)).await, "kept");
    }
}

/// Everything that a sender can see and the cost, without the request's own id.
fn visible(mut answer: Answer) -> (u16, BTreeMap<String, String>, String, Cost) {
    answer.headers.remove("x-request-id");
    (answer.status, answer.headers, answer.body, answer.cost)
}

#[tokio::test]
async fn every_bad_signature_gets_the_same_answer_at_the_same_cost() {
    let stack = stack().await;
    let event = checkout(&id('a', kind::USER, 1), "1", 0);
    let good = signed_call(&stack, 'a', &event);
    let header = good.headers["stripe-signature"].clone();
    let with = |header: &str| Call { headers: [("stripe-signature".into(), header.to_owned())].into(), ..good.clone() };
    let to = |agency: &str| Call { path: address(agency), ..good.clone() };
    let at = |seconds: i64| with(&signature(demo_payment_secret('a'), NOW / 1000 + seconds, &good.body));
    let without = Call { headers: BTreeMap::new(), ..good.clone() };
    let keyed = Call { query: format!("api_key={ACME}"), ..without.clone() };
    let changed = Call { body: [&good.body[..], b" "].concat(), ..good.clone() };
    let refused = [
        ("no header", without),
        ("an API key", keyed),
        ("no signature", with("")),
        ("no words of a signature", with("t=,v1=,,=,é")),
        ("another scheme", with(&header.replace("v1=", "v0="))),
        ("no time", with(header.split_once(',').unwrap().1)),
        ("another secret", sent(&stack, &agency('a'), "whsec_of_somebody_else", good.body.clone())),
        ("the secret of another organisation", sent(&stack, &agency('a'), demo_payment_secret('b'), good.body.clone())),
        ("no secret", sent(&stack, &agency('a'), "", good.body.clone())),
        ("late", at(-301)),
        ("early", at(301)),
        ("another body", changed),
        ("no body", Call { body: Vec::new(), ..good.clone() }),
        ("no agency", to(NOBODYS)),
        ("an agency without a webhook", to(&id('a', kind::AGENCY, 1))),
        ("another's agency", to(&agency('b'))),
        ("no id", to("agency")),
        ("an id that ends alike", to("0190ffff-0000-7000-8000-a00a00000000")),
        ("nobody's secret", sent(&stack, NOBODYS, "the secret of nobody", good.body.clone())),
        ("no webhook's secret", sent(&stack, &id('a', kind::AGENCY, 1), "the secret of nobody", good.body.clone())),
    ];
    let before = items(&stack).await;
    let mut answers = BTreeMap::new();
    for (case, call) in refused {
        let answer = stack.answer(&call).await;
        let wanted = (401, vec![r#"["header","stripe-signature"] invalid_signature"#.to_owned()]);
        assert_eq!(failure(&answer), wanted, "{case}");
        assert_eq!(answer.headers["www-authenticate"], "Signature", "{case}");
        answers.insert(case, visible(answer));
    }
    let first = &answers["no header"];
    assert!(answers.values().all(|answer| answer == first), "{answers:#?}");
    assert_eq!((first.3.calls, first.3.depth), (2, 2));
    assert_eq!(changes(&stack, &before).await, nothing());
    assert_eq!(data(&stack.answer(&good).await)["outcome"], "applied");
}

#[tokio::test]
async fn one_good_signature_within_five_minutes_suffices() {
    let stack = stack().await;
    for (seconds, old) in [(-300, "whsec_old"), (0, "whsec_old"), (300, "")] {
        let call = signed_call(&stack, 'a', &event("charge.refunded"));
        let sign = |secret: &str| signature(secret, NOW / 1000 + seconds, &call.body);
        // During a change of the secret, the provider signs with both secrets.
        let (other, own) = (sign(old), sign(demo_payment_secret('a')));
        let v1 = |signature: &str| signature.split_once(',').unwrap().1.to_owned();
        for header in [own.clone(), format!("{other},{}", v1(&own)), format!("{own},{},v0=1", v1(&other))] {
            let headers = [("stripe-signature".to_owned(), header.clone())].into();
            assert_eq!(stack.answer(&Call { headers, ..call.clone() }).await.status, 200, "{header}");
        }
    }
}

#[tokio::test]
async fn an_unusable_event_is_ignored_and_logged_without_ids() {
    let log = Log::default();
    let _guard = log.listen(Level::INFO);
    let stack = stack().await;
    let before = items(&stack).await;
    let user = id('a', kind::USER, 1);
    let mut bodies: Vec<Vec<u8>> =
        vec![Vec::new(), b"{".to_vec(), b"\xff\xfe".to_vec(), b"null".to_vec(), b"[]".to_vec()];
    bodies.push(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes());
    let mut add = |event: Value| bodies.push(event.to_string().into_bytes());
    let now = NOW / 1000;
    add(event("charge.refunded").body(1, now));
    add(checkout("order 7", "1", 0).body(1, now));
    add(checkout(NOBODYS, "1", 0).body(1, now));
    add(checkout(&id('b', kind::USER, 1), "1", 0).body(1, now));
    add(NewPaymentEvent { customer_id: Some("x".repeat(300)), ..checkout(&user, "1", 0) }.body(1, now));
    add(NewPaymentEvent { event_id: Some("an id".into()), ..checkout(&user, "1", 0) }.body(1, now));
    for (pointer, value) in [
        ("/data/object/customer", Value::Null),
        ("/data/object/customer", json!(7)),
        ("/data/object/client_reference_id", Value::Null),
        ("/data/object/subscription", json!([])),
        ("/data/object", Value::Null),
        ("/data", json!("x")),
        ("/created", json!("yesterday")),
        ("/created", json!(1e300)),
        ("/type", Value::Null),
        ("/id", json!({})),
    ] {
        let mut event = checkout(&user, "1", 0).body(1, now);
        *event.pointer_mut(pointer).unwrap() = value;
        add(event);
    }
    for body in bodies {
        let text = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let answer = stack.answer(&sent(&stack, &agency('a'), demo_payment_secret('a'), body)).await;
        let wanted = json!({"message": "Data updated successfully", "meta": {}, "data": {"outcome": "ignored"}});
        assert_eq!((answer.status, json(&answer)), (200, wanted), "{text}");
    }
    assert_eq!(changes(&stack, &before).await, nothing());
    receive(&stack, &subscription("active", "1", 0)).await;
    receive(&stack, &checkout(&user, "1", 0)).await;
    for item in everything(&stack).await {
        let is_agency = item.get("record").is_some_and(|record| record.as_s().unwrap() == "Agency");
        assert!(is_agency || !format!("{item:?}").contains("whsec_demo"), "{item:?}");
    }
    let log = log.text();
    assert!(log.contains("a type of event that is not used") && log.contains("a checkout of nobody that is known"));
    assert!(log.contains("outcome=\"kept\"") && log.contains("outcome=\"applied\""), "{log}");
    for word in ["somebody@example.com", "cus_", "whsec_", "sub_", &user, "order 7", "v1="] {
        assert!(!log.contains(word), "{word} is in the log");
    }
}

/// The JSON pointers of `value` and of every member in it.
fn places(value: &Value, at: &str) -> Vec<String> {
    let inner: Vec<String> = match value {
        Value::Object(members) => {
            members.iter().flat_map(|(name, member)| places(member, &format!("{at}/{name}"))).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(index, item)| places(item, &format!("{at}/{index}"))).collect()
        }
        _ => Vec::new(),
    };
    [vec![at.to_owned()], inner].concat()
}

#[tokio::test]
async fn an_event_with_any_odd_value_is_answered_200() {
    let stack = stack().await;
    let user = id('a', kind::USER, 1);
    let odd =
        [Value::Null, json!(-1), json!(i64::MAX), json!(1e300), json!(true), json!(""), json!([[]]), json!({"id": 1})];
    let mut changes = Vec::new();
    for kind in ["checkout.session.completed", "customer.subscription.updated", "invoice.paid"] {
        let whole = NewPaymentEvent { user_id: Some(user.clone()), ..event(kind) }.body(1, NOW / 1000);
        for place in places(&whole, "") {
            changes.extend((0..odd.len()).map(|number| (kind, whole.clone(), place.clone(), number)));
        }
    }
    assert!(changes.len() > 500, "{}", changes.len());
    for (kind, mut event, place, number) in cases(changes) {
        event["id"] = format!("evt_{kind}_{place}_{number}").into();
        event.pointer_mut(&place).unwrap().clone_from(&odd[number]);
        let call = sent(&stack, &agency('a'), demo_payment_secret('a'), event.to_string());
        let answer = stack.answer(&call).await;
        assert_eq!(answer.status, 200, "{place} {} {}", odd[number], answer.body);
    }
    // The stored rows can still be read.
    let last = NewPaymentEvent { user_id: Some(user.clone()), seconds_ago: -10, ..event(CHECKOUT) };
    assert_eq!(receive(&stack, &last).await, "applied");
    assert_eq!(billing(&stack, &user).await["payment_customer_id"], "cus_local");
}

#[tokio::test]
async fn a_body_above_256_kib_and_a_get_are_refused() {
    let stack = stack().await;
    for (size, status) in [(256 * 1024, 200), (256 * 1024 + 1, 413)] {
        let mut body = event("charge.refunded").body(1, NOW / 1000).to_string().into_bytes();
        body.resize(size, b' ');
        assert_eq!(stack.answer(&sent(&stack, &agency('a'), demo_payment_secret('a'), body)).await.status, status);
    }
    let get = call("GET", &address(&agency('a')), ACME);
    assert_eq!(failure(&stack.answer(&get).await), (404, vec![r#"["path"] not_found"#.to_owned()]));
}

#[tokio::test]
async fn a_customer_id_in_two_organisations_names_two_customers() {
    let stack = stack().await;
    let of_globex = |event: &NewPaymentEvent| signed_call(&stack, 'b', event);
    let users = [id('a', kind::USER, 1), id('b', kind::USER, 1)];
    let event = checkout(&users[0], "1", 100);
    receive(&stack, &event).await;
    // The event has the same id too.
    let other = NewPaymentEvent { user_id: Some(users[1].clone()), ..event };
    assert_eq!(data(&stack.answer(&of_globex(&other)).await)["outcome"], "applied");
    let before = items(&stack).await;
    receive(&stack, &subscription("active", "1", 50)).await;
    let (gone, new) = changes(&stack, &before).await;
    let own = |keys: BTreeSet<&(String, String)>| keys.iter().all(|(pk, _)| pk.starts_with(&key("", "").0));
    assert!(own(gone.keys().collect()) && own(new.keys().collect()) && new.len() == 3, "{new:#?}");
    let globex = call("GET", &format!("/api/v1/user/{}", users[1]), GLOBEX);
    let globex = data(&stack.answer(&globex).await);
    assert_eq!(
        (&globex["payment_customer_id"], &globex["payment_subscription_status"]),
        (&json!("cus_1"), &Value::Null)
    );
}

#[tokio::test]
async fn concurrent_deliveries_count_once_per_event() {
    let stack = Stack::start(settings()).await.unwrap();
    new_plan(&stack, "pro").await;
    for number in 0..10 {
        let (user, ending) = (new_user(&stack).await, number.to_string());
        let events = [
            checkout(&user, &ending, 100),
            subscription("active", &ending, 50),
            event_about("invoice.paid", &ending, 40),
        ];
        let rename = post(&format!("/api/v1/user/{user}"), ACME, json!({"last_name": "Byron"}).to_string());
        let rename = Call { method: "PUT".into(), ..rename };
        let outcomes = tokio::join!(
            receive(&stack, &events[0]),
            receive(&stack, &events[1]),
            receive(&stack, &events[1]),
            receive(&stack, &events[2]),
            stack.answer(&rename),
        );
        let twice = [outcomes.1.as_str(), outcomes.2.as_str()];
        assert_eq!(twice.iter().filter(|outcome| **outcome == "repeated").count(), 1, "{twice:?}");
        let is = billing(&stack, &user).await;
        assert_eq!(is["payment_customer_id"], format!("cus_{ending}"));
        assert_eq!((&is["is_paying"], &is["payment_last_payment_date"]), (&json!(true), &json!(ago(40))));
        let user = data(&stack.answer(&call("GET", &format!("/api/v1/user/{user}"), ACME)).await);
        assert_eq!(user["last_name"], "Byron");
    }
}

/// The events of the tests about faults.
fn fault_events(user: &str) -> [NewPaymentEvent; 3] {
    [event_about("customer.subscription.deleted", "1", 50), checkout(user, "1", 100), checkout(user, "2", 10)]
}

#[tokio::test]
async fn a_crash_leaves_no_partial_effect() {
    let user = id('a', kind::USER, 1);
    let events = fault_events(&user);
    let undisturbed = Stack::start(few()).await.unwrap();
    // The table before each event, and after the last one.
    let mut states = vec![without_notes(&undisturbed).await];
    for event in &events {
        receive(&undisturbed, event).await;
        states.push(without_notes(&undisturbed).await);
    }
    for place in 0..events.len() {
        for writes in 0.. {
            let (stack, faults) = with_faults(few()).await;
            for event in &events[..place] {
                receive(&stack, event).await;
            }
            faults.die_after_writes(writes);
            let died = faults.kill(stack.answer(&signed_call(&stack, 'a', &events[place]))).await;
            faults.end();
            // The crash came before the only write, or before the answer.
            let reached = if writes == 0 { place } else { place + 1 };
            assert!(without_notes(&stack).await == states[reached], "{place} {writes}");
            // Without an answer, the provider sends the event again.
            let again = receive(&stack, &events[place]).await;
            assert_eq!(again == "repeated", writes > 0, "{place} {writes}");
            for event in &events[place + 1..] {
                receive(&stack, event).await;
            }
            assert!(without_notes(&stack).await == states[events.len()], "{place} {writes}");
            if !died {
                assert!(writes > 0, "no write was interrupted");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_single_fault_is_retried_and_a_lasting_fault_gives_503() {
    let user = id('a', kind::USER, 1);
    let event = fault_events(&user)[1].clone();
    let undisturbed = Stack::start(few()).await.unwrap();
    receive(&undisturbed, &event).await;
    let wanted = without_notes(&undisturbed).await;
    for fault in [
        Fault::Throttle,
        Fault::ServerError,
        Fault::BreakRequest,
        Fault::BreakAnswer,
        Fault::Conflict,
        Fault::ThrottledTransaction,
    ] {
        let (stack, faults) = with_faults(few()).await;
        let mut struck = BTreeSet::new();
        faults.plan(move |action, _| {
            let first = fault.applies_to(action) && struck.insert(action.to_owned());
            if first { fault } else { Fault::None }
        });
        assert_eq!(receive(&stack, &event).await, "applied", "{fault:?}");
        assert_eq!(without_notes(&stack).await, wanted, "{fault:?}");
    }
    for fault in [Fault::Throttle, Fault::ServerError, Fault::BreakRequest] {
        let (stack, faults) = with_faults(few()).await;
        let before = everything(&stack).await;
        faults.plan(move |_, _| fault);
        let answer = stack.answer(&signed_call(&stack, 'a', &event)).await;
        assert_eq!(failure(&answer), (503, vec!["[] unavailable".into()]), "{fault:?}");
        assert_eq!(everything(&stack).await, before, "{fault:?}");
        faults.end();
        assert_eq!(receive(&stack, &event).await, "applied", "{fault:?}");
    }
}

#[tokio::test]
async fn deleting_a_user_deletes_its_customer() {
    let stack = Stack::start(streaming()).await.unwrap();
    stack.settle().await.unwrap();
    let (ada, bob) = (new_user(&stack).await, new_user(&stack).await);
    for (user, ending) in [(&ada, "1"), (&bob, "2")] {
        receive(&stack, &checkout(user, ending, 100)).await;
    }
    let delete = async |user: &str| data(&stack.answer(&call("DELETE", &format!("/api/v1/user/{user}"), ACME)).await);
    delete(&ada).await;
    stack.settle().await.unwrap();
    let left = customers(&stack).await;
    assert_eq!((left.len(), left[0]["user_id"].as_s().unwrap()), (1, &bob));
    // A later event belongs to no user, and its row expires.
    assert_eq!(receive(&stack, &subscription("active", "1", 50)).await, "kept");
    assert_eq!(receive(&stack, &checkout(&ada, "1", 40)).await, "ignored");
    // An event arrives after the delete, before the stream has delivered the delete.
    delete(&bob).await;
    assert_eq!(receive(&stack, &subscription("active", "2", 50)).await, "kept");
    stack.settle().await.unwrap();
    let left = customers(&stack).await;
    assert!(left.len() == 2 && left.iter().all(|item| item.contains_key("ttl")), "{left:#?}");
    assert!(left.iter().all(|item| item["user_id"] == AttributeValue::Null(true)));
}

#[tokio::test]
async fn a_deleted_agency_refuses_events_and_has_no_pointer() {
    let stack = stack().await;
    let event = checkout(&id('a', kind::USER, 1), "1", 0);
    let unknown = visible(stack.answer(&Call { path: address(NOBODYS), ..signed_call(&stack, 'a', &event) }).await);
    data(&stack.answer(&call("DELETE", &format!("/api/v1/agency/{}", agency('a')), ACME)).await);
    assert_eq!(visible(stack.answer(&signed_call(&stack, 'a', &event)).await), unknown);
    let pointers = items(&stack).await.into_keys().filter(|(pk, _)| pk.starts_with("PAYMENT_WEBHOOK#"));
    assert_eq!(pointers.map(|(pk, _)| pk).collect::<Vec<_>>(), [format!("PAYMENT_WEBHOOK#{}", agency('b'))]);
}

/// The folder with an event of each type, and with some in the form of API versions before 2025.
const SHAPES: &str = "local/tests/payment_events";

#[tokio::test]
async fn a_recorded_event_of_each_type_is_accepted() {
    let old = ["customer.subscription.updated", "invoice.paid", "invoice.payment_failed"];
    let mut files = BTreeSet::new();
    for (kinds, old_version, ending) in [(&EVENTS[..], false, ""), (&old[..], true, ".old")] {
        for kind in kinds {
            let (name, user_id) = (format!("{kind}{ending}.json"), Some(id('a', kind::USER, 1)));
            let lookup_key = Some("pro".to_owned());
            let event = NewPaymentEvent { user_id, lookup_key, old_version, ..NewPaymentEvent::of(kind) };
            let text = serde_json::to_string_pretty(&event.body(1, NOW / 1000)).unwrap() + "\n";
            generated(&format!("{SHAPES}/{name}"), &text);
            files.insert(name);
        }
    }
    assert_eq!(names_in(SHAPES), files);
    for name in files {
        let stack = stack().await;
        let body = std::fs::read(root().join(SHAPES).join(&name)).unwrap();
        let answer = stack.answer(&sent(&stack, &agency('a'), demo_payment_secret('a'), body)).await;
        let wanted = if name.starts_with("checkout") { "applied" } else { "kept" };
        assert_eq!(data(&answer)["outcome"], wanted, "{name}");
    }
}

/// Sets up the webhook of the demo agency that has a key, and returns the agency.
async fn set_up(stack: &Stack) -> String {
    let agency = id('a', kind::AGENCY, 1);
    let path = format!("/api/v1/agency/billing/{agency}/setup_payment_webhook");
    data(&stack.answer(&call("GET", &path, ACME)).await);
    agency
}

#[tokio::test]
async fn the_local_provider_sends_events_to_the_registered_address() {
    let stack = stack().await;
    let user = new_user(&stack).await;
    let nowhere = stack.payment_provider.send(&event("invoice.paid")).await.unwrap_err();
    assert!(nowhere.0.contains("no webhook is registered"), "{nowhere}");
    let agency = set_up(&stack).await;
    // All of the same second: a paused, resumed, updated or unpaid one is older by its rank. A trial is never forgotten,
    // and only a paused one says that there is no means of payment.
    for (kind, outcome) in EVENTS.into_iter().zip([
        "applied",
        "applied",
        "applied",
        "applied",
        "superseded",
        "applied",
        "superseded",
        "applied",
        "superseded",
    ]) {
        let sent = NewPaymentEvent { user_id: Some(user.clone()), ..NewPaymentEvent::of(kind) };
        let sent = stack.payment_provider.send(&sent).await.unwrap();
        assert_eq!((sent.status, &sent.url), (200, &format!("{}{}", stack.url, address(&agency))), "{kind}");
        assert_eq!(sent.answer["data"]["outcome"], outcome, "{kind}");
    }
    assert_eq!(billing(&stack, &user).await["payment_customer_id"], "cus_local");
    let globex = id('b', kind::AGENCY, 1);
    let path = format!("/api/v1/agency/billing/{globex}/setup_payment_webhook");
    data(&stack.answer(&call("GET", &path, GLOBEX)).await);
    let which = stack.payment_provider.send(&event("invoice.paid")).await.unwrap_err();
    assert!(which.0.contains("2 webhooks are registered"), "{which}");
    let of = NewPaymentEvent { agency_id: Some(globex.clone()), ..event("invoice.paid") };
    assert!(stack.payment_provider.send(&of).await.unwrap().url.ends_with(&globex));
}

#[tokio::test]
async fn the_payment_event_command_sends_and_other_origins_get_403() {
    let stack = stack().await;
    let user = new_user(&stack).await;
    set_up(&stack).await;
    let provider = stack.gateway.service.config.payment_api_base.clone();
    let ask = async |body: Value, origin: &str| {
        let request = http_client().post(format!("{provider}{SEND}")).header("origin", origin).body(body.to_string());
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let paid = json!({"type": "invoice.paid"});
    assert_eq!(ask(paid.clone(), "http://page.example").await.0, 403);
    assert_eq!(ask(paid, &provider).await.1["status"], 200);
    for (wrong, status) in [(json!({"kind": "x"}), 400), (json!([1]), 400), (json!({"type": "charge.refunded"}), 409)] {
        let (answered, body) = ask(wrong.clone(), &provider).await;
        assert!(answered == status && body["error"].is_string(), "{wrong} {answered} {body}");
    }
    let run = async |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_payment-event"));
        command.args(arguments).args(["--provider", &provider]).current_dir(root());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let sent = run(&["checkout.session.completed", "--user", &user, "--customer", "cus_command"]).await;
    assert!(sent.0 == Some(0) && sent.1.contains("answered 200: ") && sent.1.contains("\"applied\""), "{sent:?}");
    assert_eq!(billing(&stack, &user).await["payment_customer_id"], "cus_command");
    assert!(!sent.1.contains("whsec"), "{}", sent.1);
    let unknown = run(&["charge.refunded"]).await;
    assert!(unknown.0 == Some(2) && unknown.2.contains("checkout.session.completed"), "{unknown:?}");
    let unknown = run(&["invoice.paid", "--agency", NOBODYS]).await;
    assert!(unknown.0 == Some(2) && unknown.2.lines().count() == 1, "{unknown:?}");
}
