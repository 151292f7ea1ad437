//! `POST /api/v1/outbound_webhook/{webhook_id}/recover`: sends again what did not arrive.

use std::collections::BTreeMap;

use local::http::Answer;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::delivery::{DeliveryState, SentBy};
use shared::values::time::Timestamp;

use crate::support::fixture::{data, failure};
use crate::support::sending::{Org, Setup, events, id_of};

const PATH: &str = "/api/v1/outbound_webhook";

/// An organisation with a webhook at `/hook`.
struct Customer {
    setup: Setup,
    org: Org,
    webhook: Value,
}

impl Customer {
    /// A webhook with these fields.
    async fn of(mut fields: Value) -> Self {
        let setup = Setup::start().await;
        let org = setup.org().await;
        fields["endpoint"] = format!("{}/hook", setup.receiver.url).into();
        let webhook = setup.post(&org, PATH, fields).await;
        setup.settle().await;
        Self { setup, org, webhook }
    }

    fn now(&self) -> Timestamp {
        self.setup.clock.now()
    }

    async fn make_tags(&self, count: usize) {
        for _ in 0..count {
            self.setup.post(&self.org, "/api/v1/tag", json!({"name": "VIP"})).await;
        }
        self.setup.settle().await;
    }

    async fn enable(&self) {
        let path = format!("{PATH}/{}", id_of(&self.webhook));
        data(&self.setup.ask(&self.org, "PUT", &path, &json!({"enabled": true})).await);
        self.setup.settle().await;
    }

    async fn ask(&self, body: Value) -> Answer {
        let path = format!("{PATH}/{}/recover", id_of(&self.webhook));
        self.setup.ask(&self.org, "POST", &path, &body).await
    }

    /// How many events a recovery has found, and whether there is more.
    async fn recover(&self, body: Value) -> (u64, Value) {
        let answer = data(&self.ask(body).await);
        (answer["recovered"].as_u64().unwrap(), answer["next"].clone())
    }

    /// How often each event has arrived.
    async fn arrived(&self) -> BTreeMap<String, usize> {
        self.setup.settle().await;
        let received = self.setup.receiver.received("/hook");
        events(&received).into_iter().map(|(id, times)| (id.to_owned(), times)).collect()
    }
}

fn all_once(arrived: &BTreeMap<String, usize>, count: usize) -> bool {
    arrived.len() == count && arrived.values().all(|times| *times == 1)
}

#[tokio::test]
async fn sends_what_happened_while_the_webhook_was_disabled() {
    let customer = Customer::of(json!({"events": ["tag.*"], "enabled": false})).await;
    let since = customer.now();
    customer.make_tags(300).await;
    customer.enable().await;
    assert_eq!(customer.recover(json!({"since": since})).await, (300, Value::Null));
    assert_eq!(customer.arrived().await.len(), 0, "the tick sends them");
    customer.make_tags(1).await;
    assert_eq!(customer.arrived().await.len(), 1, "an event of now does not wait");
    customer.setup.minute().await;
    assert!(all_once(&customer.arrived().await, 301));
    let outbox = customer.setup.outbox(&customer.org, &customer.webhook).await;
    assert!(outbox.iter().all(|one| one.state == DeliveryState::Delivered));
    let by_tick = outbox.iter().filter(|one| one.sent_by == SentBy::Recovery).count();
    assert_eq!((by_tick, outbox.len()), (300, 301), "the stream got what the tick should send");
    assert_eq!(customer.recover(json!({"since": since})).await, (0, Value::Null));
    customer.setup.minutes(2).await;
    assert!(all_once(&customer.arrived().await, 301));
}

#[tokio::test]
async fn two_requests_at_once_send_each_event_once() {
    let customer = Customer::of(json!({"events": ["tag.*"], "enabled": false})).await;
    let since = customer.now();
    customer.make_tags(50).await;
    customer.enable().await;
    let ask = || customer.ask(json!({"since": since}));
    let answers = tokio::join!(ask(), ask(), ask());
    assert_eq!([answers.0.status, answers.1.status, answers.2.status], [200; 3]);
    customer.setup.minute().await;
    assert!(all_once(&customer.arrived().await, 50));
    assert_eq!(customer.setup.outbox(&customer.org, &customer.webhook).await.len(), 50);
}

#[tokio::test]
async fn sends_again_what_was_given_up() {
    let customer = Customer::of(json!({"events": ["tag.*"]})).await;
    let assistant = customer.setup.assistant(&customer.org, &customer.webhook).await;
    let since = customer.now();
    for is_tag in [true, false] {
        let count = if is_tag { 2 } else { 1 };
        customer.setup.receiver.behave("/hook", Behaviour::Answer(410));
        if is_tag {
            customer.make_tags(2).await;
        } else {
            // The assistant's own webhook gets the close, and no log has it.
            customer.setup.converse(&customer.org, &assistant, 1).await;
            customer.setup.settle().await;
        }
        customer.setup.receiver.behave("/hook", Behaviour::Answer(200));
        customer.enable().await;
        customer.setup.receiver.forget();
        assert_eq!(customer.recover(json!({"since": since})).await, (count, Value::Null));
        customer.setup.minute().await;
        assert!(customer.arrived().await.values().eq(vec![&1; usize::try_from(count).unwrap()]));
    }
    let outbox = customer.setup.outbox(&customer.org, &customer.webhook).await;
    assert!(outbox.len() == 3 && outbox.iter().all(|one| one.state == DeliveryState::Delivered), "{outbox:?}");
}

#[tokio::test]
async fn sends_the_closed_conversations_that_a_disabled_webhook_missed() {
    let customer = Customer::of(json!({"enabled": false})).await;
    let assistant = customer.setup.assistant(&customer.org, &customer.webhook).await;
    let since = customer.now();
    customer.setup.converse(&customer.org, &assistant, 3).await;
    customer.setup.settle().await;
    assert!(customer.setup.outbox(&customer.org, &customer.webhook).await.is_empty());
    customer.enable().await;
    customer.setup.converse(&customer.org, &assistant, 1).await;
    assert_eq!(customer.arrived().await.len(), 1);
    assert_eq!(customer.recover(json!({"since": since})).await, (3, Value::Null));
    customer.setup.minute().await;
    assert!(all_once(&customer.arrived().await, 4));
    assert_eq!(customer.recover(json!({"since": since})).await, (0, Value::Null));
}

#[tokio::test]
async fn sends_only_what_the_webhook_subscribes_to() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let assistants = [
        setup.post(&org, "/api/v1/assistant", json!({})).await,
        setup.post(&org, "/api/v1/assistant", json!({})).await,
    ];
    setup.settle().await;
    // All events are in the log because of this subscription.
    setup.post(&org, PATH, json!({"events": ["*"]})).await;
    let endpoint = format!("{}/hook", setup.receiver.url);
    let webhook =
        json!({"endpoint": endpoint, "events": ["*"], "assistant_ids": [assistants[0]["id"]], "enabled": false});
    let webhook = setup.post(&org, PATH, webhook).await;
    setup.settle().await;
    let customer = Customer { setup, org, webhook };
    let since = customer.now();
    for assistant in &assistants {
        customer.setup.converse(&customer.org, assistant, 1).await;
    }
    customer.make_tags(1).await;
    customer.enable().await;
    let body = json!({"since": since, "events": ["conversation.opened", "tag.*"]});
    assert_eq!(customer.recover(body).await.0, 1);
    assert_eq!(customer.recover(json!({"since": since})).await.0, 1);
    customer.setup.minute().await;
    assert!(all_once(&customer.arrived().await, 2));
}

#[tokio::test]
async fn sends_what_is_between_two_times() {
    let customer = Customer::of(json!({"events": ["tag.*"], "enabled": false})).await;
    let mut times = Vec::new();
    // Each becomes a page of the log: more of them than one reading has.
    for _ in 0..30 {
        customer.setup.pass(600);
        times.push(customer.now());
        customer.make_tags(1).await;
    }
    customer.enable().await;
    assert_eq!(customer.recover(json!({"since": times[26], "until": times[27]})).await, (2, Value::Null));
    assert_eq!(customer.recover(json!({"since": times[25]})).await, (3, Value::Null));
    customer.setup.minute().await;
    assert!(all_once(&customer.arrived().await, 5));
}

#[tokio::test]
async fn goes_on_from_the_next_of_the_answer_before() {
    let customer = Customer::of(json!({"events": ["contact.created"], "enabled": false})).await;
    let since = customer.now();
    for round in 0..3 {
        let contact = |number: usize| json!({"email": format!("contact-{round}-{number}@example.com")});
        let contacts: Vec<_> = (0..350).map(contact).collect();
        customer.setup.post(&customer.org, "/api/v1/contact/import", json!({"contacts": contacts})).await;
        customer.setup.settle().await;
    }
    customer.enable().await;
    let (first, next) = customer.recover(json!({"since": since})).await;
    assert_eq!(first, 1000);
    let rest = customer.recover(json!({"since": since, "after": next})).await;
    assert_eq!(rest, (50, Value::Null));
    customer.setup.minutes(2).await;
    assert!(all_once(&customer.arrived().await, 1050));
}

#[tokio::test]
async fn refuses_wrong_times_and_webhooks_that_get_nothing() {
    let customer = Customer::of(json!({"events": ["tag.*"], "enabled": false})).await;
    let now = customer.now();
    let body = json!({"since": now});
    let failed = |status, text: &str| (status, vec![text.to_owned()]);
    let disabled = failed(409, r#"["path","webhook_id"] webhook_disabled"#);
    assert_eq!(failure(&customer.ask(body.clone()).await), disabled);
    customer.enable().await;
    for (body, issue) in [
        (json!({"since": now, "until": now.plus_seconds(-1)}), r#"["body","until"] value_error"#),
        (json!({"since": now, "after": customer.webhook["id"]}), r#"["body","after"] not_found"#),
        (json!({"since": now, "events": ["tags.*"]}), r#"["body","events",0] value_error"#),
        (json!({}), r#"["body","since"] missing"#),
    ] {
        assert_eq!(failure(&customer.ask(body.clone()).await), failed(422, issue), "{body}");
    }
    let (setup, other) = (&customer.setup, customer.setup.org().await);
    let path = |webhook: &Value| format!("{PATH}/{}/recover", id_of(webhook));
    let missing = failed(404, r#"["path","webhook_id"] not_found"#);
    assert_eq!(failure(&setup.ask(&other, "POST", &path(&customer.webhook), &body).await), missing);
    let silent = setup.post(&other, PATH, json!({"events": ["tag.*"]})).await;
    let refused = failed(409, r#"["path","webhook_id"] webhook_without_endpoint"#);
    assert_eq!(failure(&setup.ask(&other, "POST", &path(&silent), &body).await), refused);
}
