//! Tests of the delivery of events to webhooks: signed, retried until they arrive, and independent of other endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::{BoxFuture, join_all};
use local::Settings;
use local::database::TABLE_NAME;
use local::event_source::StreamFaults;
use local::faults::Fault;
use local::receiver::Behaviour;
use local::stream::Stream;
use serde_json::{Value, json};
use shared::delivery::outbox::Outbox;
use shared::network::address::Reach;
use shared::network::{Lookup, Network};
use shared::records::conversation::{Conversation, Message, NewMessage, SenderType};
use shared::records::delivery::{self, Delivery, DeliveryOutcome, DeliveryState, EndpointHealth, Observed};
use shared::request::event::EventContext;
use shared::runtime::lambda::tracing::Level;
use shared::runtime::stream::StreamEvent;
use shared::table::keys::Key;
use shared::values::id::{ConversationId, EndpointId};
use shared::values::time::{Clock, Timestamp};
use uuid::Uuid;

use crate::support::crashes::{crashes_everywhere, unreliable_stream};
use crate::support::fixture::{NOW, PATIENT, data, empty, everything, failure, faulty_acme, with_faults};
use crate::support::log::Log;
use crate::support::sending::{Org, Setup, events, id_of, is_signed_with, loopback};
use crate::support::sweep::cases;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// An organisation with a webhook at `/hook` and an assistant that has it.
struct Customer {
    setup: Setup,
    org: Org,
    webhook: Value,
    assistant: Value,
}

impl Customer {
    async fn of(setup: Setup) -> Self {
        let org = setup.org().await;
        let webhook = setup.webhook(&org, "/hook").await;
        let assistant = setup.assistant(&org, &webhook).await;
        Self { setup, org, webhook, assistant }
    }

    async fn new() -> Self {
        Self::of(Setup::start().await).await
    }

    fn answers(&self, behaviour: Behaviour) {
        self.setup.receiver.behave("/hook", behaviour);
    }

    async fn converse(&self, count: usize) {
        self.setup.converse(&self.org, &self.assistant, count).await;
    }

    /// Closes a conversation and waits until its event is handled.
    async fn close_one(&self) {
        self.converse(1).await;
        self.setup.settle().await;
    }

    fn received(&self) -> Vec<local::receiver::Received> {
        self.setup.receiver.received("/hook")
    }

    async fn outbox(&self) -> Vec<Delivery> {
        self.setup.outbox(&self.org, &self.webhook).await
    }

    fn endpoint(&self) -> EndpointId {
        id_of(&self.webhook).parse::<Uuid>().unwrap().into()
    }

    /// The only delivery.
    async fn delivery(&self) -> Delivery {
        let mut all = self.outbox().await;
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/v1/outbound_webhook/{}{rest}", id_of(&self.webhook))
    }

    async fn change(&self, method: &str, rest: &str, body: Value) -> Value {
        data(&self.setup.ask(&self.org, method, &self.path(rest), &body).await)
    }

    /// Sets the clock to `time` and runs the ticks.
    async fn tick_at(&self, time: Timestamp) {
        self.setup.clock.set(time);
        self.setup.minute().await;
    }

    /// Sets the clock to the next attempt of `delivery`, and makes it.
    async fn until_due(&self, delivery: &Delivery) {
        self.tick_at(delivery.due_at.unwrap()).await;
    }
}

fn states(outbox: &[Delivery]) -> BTreeMap<&'static str, usize> {
    outbox.iter().fold(BTreeMap::new(), |mut states, stored| {
        *states.entry(stored.state.as_str()).or_default() += 1;
        states
    })
}

#[tokio::test]
async fn a_closed_conversation_arrives_as_documented() {
    let customer = Customer::new().await;
    let Customer { setup, org, webhook, assistant } = &customer;
    let fields = json!({"assistant_id": assistant["id"], "device_type": "phone", "attributes": {"a": {"é": null}}});
    let opened = setup.post(org, "/api/v1/conversation", fields).await;
    let said = format!("/api/v1/conversation/{}/message", id_of(&opened));
    let first = setup.post(org, &said, json!({"sender_type": "user", "text": "Grüß Gott"})).await;
    let voice = json!({"sender_type": "bot", "message_type": "voice", "text": "Hello"});
    let second = setup.post(org, &said, voice).await;
    setup.pass(90);
    setup.close(org, &opened).await;
    setup.settle().await;

    let received = customer.received();
    assert_eq!(received.len(), 1);
    let message = |id: &Value, rest: &str| {
        format!(
            r#"{{"id":{id},"conversation_id":{},{rest},"in_reply_to":null,"data_source_ids":[],"created_at":"2026-02-01T12:00:00.000Z","updated_at":"2026-02-01T12:00:00.000Z","voice_base64":null,"data_sources":[]}}"#,
            opened["id"]
        )
    };
    let event = id_of(&opened).to_owned();
    let wanted = format!(
        r#"{{"id":"{event}","object":"event","event":"conversation.closed","created_at":"2026-02-01T12:01:30.000Z","data":{{"conversation_id":{},"widget_id":null,"assistant_id":{},"contact_id":null,"device_type":"phone","reason":null,"chat_count":2,"first_message":"Grüß Gott","attributes":{{"a":{{"é":null}}}},"transcript":[{},{}]}}}}"#,
        opened["id"],
        assistant["id"],
        message(&first["id"], r#""sender_type":"user","message_type":"text","text":"Grüß Gott","char_count":9"#),
        message(&second["id"], r#""sender_type":"bot","message_type":"voice","text":"Hello","char_count":5"#),
    );
    assert_eq!(String::from_utf8_lossy(&received[0].body), wanted);
    assert_eq!((&received[0].method[..], &received[0].headers["content-type"][..]), ("POST", "application/json"));
    assert_eq!(received[0].headers["webhook-id"], event);
    assert_eq!(received[0].headers["webhook-timestamp"], setup.clock.now().unix_seconds().to_string());
    assert!(is_signed_with(&received[0], &webhook["secret"]));

    let listed = setup.get(org, &customer.path("/logs")).await["items"].clone();
    let attempt = json!({"at": "2026-02-01T12:01:30.000Z", "status": 200, "milliseconds": listed[0]["milliseconds"], "error": null, "answer": ""});
    assert!(listed[0]["milliseconds"].is_u64());
    assert_eq!(
        listed,
        json!([{
            "id": listed[0]["id"],
            "event_id": event,
            "event": "conversation.closed",
            "state": "delivered",
            "attempts": 1,
            "status": 200,
            "milliseconds": listed[0]["milliseconds"],
            "error": null,
            "next_attempt_at": null,
            "log": [attempt],
            "conversation_id": opened["id"],
            "campaign_contact_id": null,
            "created_at": "2026-02-01T12:01:30.000Z",
            "updated_at": "2026-02-01T12:01:30.000Z",
        }])
    );
    assert_eq!(setup.due(), BTreeMap::new());
}

#[tokio::test]
async fn any_write_that_closes_a_conversation_makes_the_event() {
    let customer = Customer::new().await;
    let Customer { setup, org, assistant, .. } = &customer;
    let opened = setup.open(org, assistant).await;
    let place = u32::from_str_radix(&id_of(&opened)[28..], 16).unwrap();
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let update = setup.stack.client.update_item().table_name(TABLE_NAME);
    let update = update.key("pk", text(&format!("ORG#{}#LIST#CONVERSATION#ROWS", org.id)));
    let update = update.key("sk", text(&format!("{place:010}"))).update_expression("SET #status = :closed");
    let update = update.expression_attribute_names("#status", "status");
    update.expression_attribute_values(":closed", text("closed")).send().await.unwrap();
    setup.settle().await;
    let body: Value = serde_json::from_slice(&customer.received()[0].body).unwrap();
    assert_eq!((&body["data"]["conversation_id"], customer.received().len()), (&opened["id"], 1));
}

#[tokio::test]
async fn every_event_keeps_one_id_under_stream_faults() {
    const EVENTS: usize = 20;
    for seed in cases(0..4) {
        let customer = Customer::new().await;
        customer.setup.stack.stream.set_faults(&unreliable_stream(seed, 0.5, 0.3));
        customer.converse(EVENTS).await;
        customer.setup.settle().await;
        // Deliveries that the stream gave up are released after five minutes.
        customer.setup.stack.stream.set_faults(&StreamFaults::default());
        customer.setup.minutes(7).await;
        assert_eq!(events(&customer.received()).len(), EVENTS, "seed {seed}");
        let outbox = customer.outbox().await;
        assert_eq!(states(&outbox), BTreeMap::from([("delivered", EVENTS)]), "seed {seed}");
        let ids: BTreeSet<_> = outbox.iter().map(|stored| stored.event_id.to_string()).collect();
        assert_eq!(ids.len(), EVENTS, "seed {seed}");
        assert!(ids.iter().map(String::as_str).eq(events(&customer.received()).into_keys()), "seed {seed}");
    }
}

#[tokio::test]
async fn a_crash_anywhere_loses_no_event() {
    let closed = async || {
        let customer = Customer::new().await;
        customer.converse(2).await;
        customer
    };
    let arrives = async |customer: &Customer, what: String| {
        customer.setup.settle().await;
        customer.setup.minutes(7).await;
        let received = customer.received();
        let (times, outbox) = (events(&received), customer.outbox().await);
        assert!(times.len() == 2 && times.values().all(|times| *times <= 2), "{what}: {times:?}");
        assert_eq!(states(&outbox), BTreeMap::from([("delivered", 2)]), "{what}");
        assert_eq!(customer.setup.due(), BTreeMap::new(), "{what}");
    };
    crashes_everywhere(closed, |customer| &customer.setup, async |customer| customer.setup.settle().await, arrives)
        .await;
}

/// A drain that found no delivery must not put off or end the drains that a later deferral has asked for.
#[tokio::test]
async fn a_deferral_during_the_last_drain_keeps_the_endpoint_due() {
    let customer = Customer::new().await;
    let (table, now) = (&customer.org.table, customer.setup.clock.now());
    let deferred = |at| Observed { deferred_at: Some(at), ..Observed::default() };
    let healthy = EndpointHealth::healthy(EndpointId(id_of(&customer.webhook).parse().unwrap()));
    let seen = delivery::health::keep(table, &healthy, &deferred(now), now, now).await.unwrap();
    let later = now.plus_seconds(1);
    let newer = delivery::health::keep(table, &seen, &deferred(later), later, later).await.unwrap();
    let (due, put_off) = (newer.due_at, later.plus_seconds(HOUR));
    assert_eq!(due, Some(later));
    delivery::health::recheck_at(table, &seen, put_off).await.unwrap();
    delivery::health::stop_draining(table, &seen, false).await.unwrap();
    assert_eq!(delivery::health::of(table, newer.id).await.unwrap().due_at, due);
    delivery::health::recheck_at(table, &newer, put_off).await.unwrap();
    assert_eq!(delivery::health::of(table, newer.id).await.unwrap().due_at, Some(put_off));
    delivery::health::stop_draining(table, &newer, false).await.unwrap();
    assert_eq!(delivery::health::of(table, newer.id).await.unwrap().due_at, None);
}

#[tokio::test]
async fn a_crash_of_a_tick_loses_no_deferred_delivery() {
    let deferred = async || {
        let customer = Customer::new().await;
        customer.answers(Behaviour::Answer(500));
        for _ in 0..4 {
            customer.close_one().await;
        }
        // One is deferred, one waits for its retry, and all of them are due.
        customer.answers(Behaviour::Recovering { failures: 1, then: 200 });
        customer.setup.pass(600);
        customer
    };
    let arrives = async |customer: &Customer, what: String| {
        customer.setup.minutes(2).await;
        customer.setup.pass(HOUR);
        customer.setup.minutes(7).await;
        assert_eq!(states(&customer.outbox().await), BTreeMap::from([("delivered", 4)]), "{what}");
        assert_eq!(customer.setup.due(), BTreeMap::new(), "{what}");
    };
    let minute = async |customer: &Customer| customer.tick_at(customer.setup.clock.now()).await;
    crashes_everywhere(deferred, |customer| &customer.setup, minute, arrives).await;
}

#[tokio::test]
async fn a_long_conversation_is_sent_whole() {
    const MESSAGES: u64 = 5000;
    let customer = Customer::new().await;
    let Customer { setup, org, assistant, .. } = &customer;
    let opened = setup.open(org, assistant).await;
    let id = ConversationId(id_of(&opened).parse().unwrap());
    let count = |conversation: &mut Conversation| conversation.chat_count = MESSAGES;
    org.table.change(id, Uuid::max(), count).await.unwrap();
    let new = |place: u64| NewMessage::text(SenderType::User, format!("{place}{}", " and so on".repeat(20)).into());
    let now = setup.clock.now();
    let messages: Vec<Message> = (0..MESSAGES)
        .map(|place| new(place).message(setup.stack.gateway.service.ids.fresh(now).into(), id, place, now))
        .collect();
    for (place, message) in (0..).zip(&messages) {
        org.table.put_single((id, place), message).await.unwrap();
    }
    setup.close(org, &opened).await;
    setup.settle().await;
    let received = customer.received();
    let mut body: Value = serde_json::from_slice(&received[0].body).unwrap();
    assert!(received[0].body.len() > 1_000_000);
    for item in body["data"]["transcript"].as_array_mut().unwrap() {
        let item = item.as_object_mut().unwrap();
        assert_eq!((item.remove("voice_base64"), item.remove("data_sources")), (Some(json!(null)), Some(json!([]))));
    }
    assert_eq!(body["data"]["transcript"], json!(messages));
    assert_eq!(
        (&body["data"]["chat_count"], &body["data"]["first_message"]),
        (&json!(MESSAGES), &json!(messages[0].text))
    );
    assert!(is_signed_with(&received[0], &customer.webhook["secret"]));
}

#[tokio::test]
async fn a_disabled_or_deleted_webhook_gets_no_event() {
    // An assistant without a webhook.
    let customer = Customer::new().await;
    let Customer { setup, org, .. } = &customer;
    let alone = setup.post(org, "/api/v1/assistant", json!({})).await;
    setup.converse(org, &alone, 1).await;
    setup.settle().await;
    assert_eq!((customer.outbox().await, setup.due()), (vec![], BTreeMap::new()));
    // The webhook ends before the conversation is closed, or later, while its delivery is ready or waits.
    for deletes in [false, true] {
        for (moment, dead) in [("before", 0), ("between", 0), ("ready", 1), ("waiting", 1), ("deferred", 1)] {
            let customer = Customer::new().await;
            let end = async || {
                let (method, body) = if deletes { ("DELETE", Value::Null) } else { ("PUT", json!({"enabled": false})) };
                customer.change(method, "", body).await;
            };
            customer.answers(Behaviour::Answer(500));
            match moment {
                "before" => {
                    end().await;
                    customer.converse(1).await;
                }
                // The conversation is closed, but the stream has not delivered the change yet.
                "between" => {
                    customer.converse(1).await;
                    end().await;
                }
                "ready" => {
                    customer.converse(1).await;
                    customer.setup.stack.stream.drain_for("record-changed").await.unwrap();
                    end().await;
                }
                _ => {
                    customer.close_one().await;
                    for _ in 0..if moment == "deferred" { 3 } else { 0 } {
                        customer.until_due(&customer.delivery().await).await;
                    }
                    end().await;
                }
            }
            customer.setup.receiver.forget();
            customer.setup.settle().await;
            customer.setup.minutes(1).await;
            customer.setup.pass(3 * HOUR);
            customer.setup.minutes(2).await;
            let what = format!("{moment}, deletes: {deletes}");
            assert_eq!(customer.received(), [], "{what}");
            assert_eq!(customer.setup.due(), BTreeMap::new(), "{what}");
            let outbox = customer.outbox().await;
            // A deleted webhook takes its deliveries along.
            assert_eq!(outbox.len(), if deletes { 0 } else { dead }, "{what}");
            for stored in outbox {
                let outcome = (stored.state, stored.error.as_deref());
                assert_eq!(outcome, (DeliveryState::Dead, Some("the webhook is disabled")), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_failing_delivery_ends_after_ten_attempts_in_three_days() {
    let customer = Customer::new().await;
    customer.answers(Behaviour::Answer(500));
    customer.close_one().await;
    for delay in [5, 300, 30 * 60, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR] {
        let delivery = customer.delivery().await;
        assert_eq!((delivery.state, delivery.status), (DeliveryState::Waiting, Some(500)));
        assert_eq!(delivery.next_attempt_at, delivery.due_at);
        let last = delivery.log.last().unwrap().at.unix_millis();
        let wait = delivery.due_at.unwrap().unix_millis() - last;
        assert!((delay * 1000..=delay * 1100).contains(&wait), "{delay} {wait}");
        // A millisecond earlier, no attempt is made.
        let attempts = customer.received().len();
        customer.tick_at(Timestamp::from_unix_millis(last + wait - 1)).await;
        assert_eq!(customer.received().len(), attempts);
        customer.until_due(&delivery).await;
        assert_eq!(customer.received().len(), attempts + 1);
    }
    let Customer { setup, .. } = &customer;
    let delivery = customer.delivery().await;
    assert_eq!((delivery.state, delivery.attempts, delivery.log.len()), (DeliveryState::Dead, 10, 10));
    setup.pass(2 * DAY);
    setup.minutes(7).await;
    let received = customer.received();
    assert_eq!(events(&received), BTreeMap::from([(&delivery.event_id.to_string()[..], 10)]));
    let times: BTreeSet<_> = received.iter().map(|request| &request.headers["webhook-timestamp"]).collect();
    assert_eq!(times.len(), 10);
    assert!(received.iter().all(|request| request.body == received[0].body));
    assert!(received.iter().all(|request| is_signed_with(request, &customer.webhook["secret"])));
    assert_eq!(setup.due(), BTreeMap::new());
}

#[tokio::test]
async fn a_finished_delivery_expires_after_thirty_days() {
    let customer = Customer::new().await;
    let Customer { setup, org, webhook, .. } = &customer;
    let listed = async || {
        let page = setup.get(org, &customer.path("/logs")).await;
        let ids: Vec<Value> = page["items"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        assert_eq!(page["total"], ids.len());
        ids
    };
    customer.converse(6).await;
    setup.settle().await;
    customer.answers(Behaviour::Answer(500));
    customer.close_one().await;
    let all = listed().await;
    assert_eq!(all.len(), 7);
    setup.pass(30 * DAY - 1);
    assert_eq!(setup.stack.expire(|key| key.pk.contains("#DELIVERY#")).unwrap(), 0, "no delivery ended 30 days ago");
    // A delivery that is sent again is kept for 30 more days. One that has not ended is kept anyway.
    customer.answers(Behaviour::Answer(200));
    let again = customer.path(&format!("/logs/{}/redeliver", all[2].as_str().unwrap()));
    setup.post(org, &again, json!({})).await;
    setup.settle().await;
    setup.pass(60);
    let mut odd = false;
    let mut every_other = |key: &Key| {
        odd = key.pk.contains("#DELIVERY#") && !odd;
        odd
    };
    let expired = setup.stack.expire(&mut every_other).unwrap();
    setup.settle().await;
    assert_eq!(listed().await.len(), all.len() - expired);
    assert!((1..5).contains(&expired), "{expired}");
    setup.stack.expire(|key| key.pk.contains("#DELIVERY#")).unwrap();
    setup.settle().await;
    assert_eq!(listed().await, [all[2].clone(), all[6].clone()]);
    let outbox = setup.outbox(org, webhook).await;
    assert_eq!(outbox.iter().map(|delivery| delivery.ttl.is_some()).collect::<Vec<_>>(), [true, false]);
}

#[tokio::test]
async fn a_retry_after_header_sets_the_delay_of_the_retry() {
    let customer = Customer::new().await;
    for (status, wait) in [(429, 7200), (502, 7200), (503, 7200), (504, 7200), (500, 5), (404, 5)] {
        customer.answers(Behaviour::Sequence(vec![Behaviour::RetryAfter(status, 7200), Behaviour::Answer(200)]));
        customer.close_one().await;
        let waiting = customer.outbox().await.pop().unwrap();
        let due = waiting.due_at.unwrap().unix_millis() - customer.setup.clock.now().unix_millis();
        assert!((wait * 1000..=wait * 1100).contains(&due), "{status}: {due}");
        customer.until_due(&waiting).await;
        let delivered = customer.outbox().await.pop().unwrap();
        assert_eq!(delivered.state, DeliveryState::Delivered, "{status}");
    }
}

#[tokio::test]
async fn a_delivery_without_a_2xx_answer_is_retried() {
    for (behaviour, status, error) in [
        (Behaviour::Answer(301), Some(301), None),
        (Behaviour::Answer(404), Some(404), None),
        (Behaviour::Answer(500), Some(500), None),
        (Behaviour::DropConnection, None, Some("connection broken")),
        (Behaviour::Redirect("/elsewhere".into()), Some(302), None),
    ] {
        let customer = Customer::new().await;
        customer.answers(behaviour);
        customer.close_one().await;
        let delivery = customer.delivery().await;
        let outcome = (delivery.state, delivery.status, delivery.error.as_deref());
        assert_eq!(outcome, (DeliveryState::Waiting, status, error));
        assert_eq!((customer.received().len(), customer.setup.receiver.received("/elsewhere").len()), (1, 0));
    }
}

#[tokio::test]
async fn an_endless_2xx_answer_is_a_success() {
    for behaviour in [Behaviour::HugeBody, Behaviour::Trickle] {
        let setup = Setup::with(|settings| Settings { network: loopback(Duration::from_secs(1)), ..settings }).await;
        let customer = Customer::of(setup).await;
        customer.answers(behaviour);
        customer.close_one().await;
        let delivery = customer.delivery().await;
        assert_eq!((delivery.state, delivery.status), (DeliveryState::Delivered, Some(200)));
        assert!(delivery.log[0].answer.as_ref().unwrap().len() <= 1024);
    }
}

#[tokio::test]
async fn a_410_answer_disables_the_webhook() {
    let customer = Customer::new().await;
    customer.answers(Behaviour::Sequence(vec![Behaviour::Answer(500), Behaviour::Answer(410)]));
    customer.close_one().await;
    customer.close_one().await;
    let webhook = customer.setup.get(&customer.org, &customer.path("")).await;
    assert_eq!((&webhook["enabled"], &webhook["disabled_reason"]), (&json!(false), &json!("gone")));
    assert_eq!(webhook["disabled_at"], "2026-02-01T12:00:00.000Z");
    customer.close_one().await;
    customer.setup.minutes(2).await;
    let outbox = customer.outbox().await;
    assert_eq!((states(&outbox), customer.received().len()), (BTreeMap::from([("dead", 2)]), 2));
    assert_eq!(outbox[0].error.as_deref(), Some("the webhook is disabled"));
    assert_eq!(outbox[1].status, Some(410));
    assert_eq!(customer.setup.due(), BTreeMap::new());
    // The owner enables the webhook again.
    customer.answers(Behaviour::Answer(200));
    let webhook = customer.change("PUT", "", json!({"enabled": true})).await;
    assert_eq!(webhook["disabled_reason"], Value::Null);
    customer.close_one().await;
    assert_eq!(customer.outbox().await[2].state, DeliveryState::Delivered);
}

#[tokio::test]
async fn a_webhook_is_disabled_after_five_days_of_failures() {
    for recovers_on in [None, Some(3)] {
        let customer = Customer::new().await;
        customer.answers(Behaviour::Answer(500));
        let mut disabled_on = None;
        for day in 0..12 {
            if recovers_on == Some(day) {
                customer.answers(Behaviour::Sequence(vec![Behaviour::Answer(200), Behaviour::Answer(500)]));
            }
            customer.close_one().await;
            customer.setup.minutes(2).await;
            let webhook = customer.setup.get(&customer.org, &customer.path("")).await;
            if webhook["enabled"] == false {
                assert_eq!(webhook["disabled_reason"], "failing");
                disabled_on = Some(day);
                break;
            }
            customer.setup.pass(DAY - 120);
        }
        // A success on the third day restarts the five days.
        assert_eq!(disabled_on, Some(recovers_on.map_or(5, |day| day + 5)));
        let received = customer.received().len();
        customer.setup.pass(2 * DAY);
        customer.setup.minutes(10).await;
        let outbox = customer.outbox().await;
        assert_eq!(outbox.iter().filter(|stored| stored.state == DeliveryState::Waiting).count(), 0);
        assert_eq!(states(&outbox).get("delivered").copied().unwrap_or_default(), usize::from(recovers_on.is_some()));
        assert_eq!((customer.received().len(), customer.setup.due()), (received, BTreeMap::new()));
    }
}

#[tokio::test]
async fn an_unsent_delivery_is_released_after_five_minutes() {
    let customer = Customer::new().await;
    let Customer { setup, .. } = &customer;
    customer.converse(3).await;
    setup.stack.stream.drain_for("record-changed").await.unwrap();
    setup.faults.plan(|_, _| Fault::Throttle);
    setup.stack.stream.drain_for("send-delivery").await.unwrap();
    setup.faults.end();
    assert_eq!(setup.stack.stream.given_up().len(), 3);
    customer.tick_at(setup.clock.now().plus_seconds(240)).await;
    assert_eq!(customer.received(), []);
    setup.minutes(1).await;
    assert_eq!(states(&customer.outbox().await), BTreeMap::from([("delivered", 3)]));
    assert_eq!(customer.received().len(), 3);
}

#[tokio::test]
async fn deliveries_are_sent_together_after_a_lag_of_the_stream() {
    const WAITING: usize = 30;
    for minutes in [6, 11, 31] {
        let customer = Customer::new().await;
        let Customer { setup, .. } = &customer;
        customer.converse(WAITING).await;
        setup.stack.stream.drain_for("record-changed").await.unwrap();
        // While the stream stands still, the deliveries are released again: several times in a long lag.
        for _ in 0..minutes {
            setup.pass(60);
            setup.stack.tick("release-deliveries").await.unwrap();
        }
        // One batch of the stream holds them all. The receiver answers when all have arrived.
        customer.answers(Behaviour::Together(WAITING));
        setup.settle().await;
        let outbox = customer.outbox().await;
        assert_eq!(states(&outbox), BTreeMap::from([("delivered", WAITING)]), "{minutes} minutes");
        assert_eq!(customer.received().len(), WAITING, "{minutes} minutes");
        assert!(outbox.iter().all(|delivery| delivery.attempts == 1));
    }
}

/// Makes so many deliveries. The stream gives them up twice, so each one may be the cause of a crash.
async fn make_suspects(customer: &Customer, count: usize) {
    let Customer { setup, .. } = customer;
    customer.converse(count).await;
    setup.stack.stream.drain_for("record-changed").await.unwrap();
    for times in [1, 2] {
        setup.faults.plan(|_, _| Fault::Throttle);
        setup.stack.stream.drain_for("send-delivery").await.unwrap();
        setup.faults.end();
        assert_eq!(setup.stack.stream.given_up().len(), times * count);
        setup.pass(300);
        setup.stack.tick("release-deliveries").await.unwrap();
    }
    assert!(customer.outbox().await.iter().all(Delivery::is_suspect));
}

#[tokio::test]
async fn suspects_are_sent_one_by_one() {
    const GIVEN_UP: usize = 5;
    let customer = Customer::new().await;
    make_suspects(&customer, GIVEN_UP).await;
    customer.setup.settle().await;
    let outbox = customer.outbox().await;
    assert_eq!(states(&outbox), BTreeMap::from([("delivered", GIVEN_UP)]));
    assert!(!outbox.iter().any(Delivery::is_suspect));
}

/// A drain sends batches of 1, 2, 4, 8, 16 and 32. The circuit is closed then, so the stream sends the rest at once.
#[tokio::test]
async fn a_recovered_endpoint_gets_the_rest_from_the_stream_but_suspects() {
    const SENT: usize = 63;
    const REST: usize = 40;
    const FAILED: usize = 3;
    let customer = Customer::new().await;
    let Customer { setup, .. } = &customer;
    customer.answers(Behaviour::Answer(500));
    for count in [FAILED, SENT + REST + 1] {
        customer.converse(count).await;
        setup.settle().await;
    }
    let deferred = customer.outbox().await;
    assert_eq!(states(&deferred), BTreeMap::from([("waiting", FAILED + SENT + REST + 1)]));
    // The process of an earlier tick has crashed during an attempt of the last delivery.
    let was = deferred.last().unwrap();
    let is = was.clone().decide(DeliveryOutcome::Begun, setup.clock.now());
    customer.org.table.replace((customer.endpoint(), was.id), was, is).await.unwrap().unwrap();

    customer.answers(Behaviour::Answer(200));
    setup.pass(300);
    setup.stack.tick("send-delivery").await.unwrap();
    let outbox = customer.outbox().await;
    assert_eq!(states(&outbox), BTreeMap::from([("delivered", SENT), ("ready", REST), ("waiting", FAILED + 1)]));
    let suspects = outbox.iter().filter(|stored| stored.is_suspect()).map(|stored| stored.state);
    assert_eq!(suspects.collect::<Vec<_>>(), [DeliveryState::Waiting]);
    setup.settle().await;
    setup.minutes(2).await;
    let sent = FAILED + SENT + REST + 1;
    assert_eq!(states(&customer.outbox().await), BTreeMap::from([("delivered", sent)]));
    assert_eq!(customer.received().len(), FAILED + sent, "each is sent once, but the failures twice");
}

#[tokio::test]
async fn suspects_of_one_batch_are_sent_until_the_circuit_opens() {
    const GIVEN_UP: usize = 5;
    let customer = Customer::new().await;
    make_suspects(&customer, GIVEN_UP).await;
    customer.answers(Behaviour::Answer(500));
    let mut records = Stream::changes(&customer.setup.stack.database).unwrap();
    records.retain(|record| record["dynamodb"]["NewImage"]["releases"]["N"] == "2");
    let event: StreamEvent = serde_json::from_value(json!({"Records": records})).unwrap();
    let cx = EventContext { service: &customer.setup.stack.gateway.service };
    Outbox::new(&cx).unwrap().send(&cx, &event.records).await.unwrap();
    assert_eq!(customer.received().len(), 3, "the third failure opens the circuit");
    assert_eq!(states(&customer.outbox().await), BTreeMap::from([("waiting", GIVEN_UP)]));
}

/// Resolves the name when the webhook is created, crashes the process of the first attempt, and lets each later attempt
/// take the whole budget of a tick.
#[derive(Debug)]
struct DeadlyThenSlow(Clock, AtomicUsize);

impl Lookup for DeadlyThenSlow {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        match self.1.fetch_add(1, Ordering::SeqCst) {
            0 => {}
            1 => panic!("as the test wants it"),
            _ => self.0.set(self.0.now().plus_seconds(41)),
        }
        Box::pin(async move { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

#[tokio::test]
async fn a_tick_without_time_left_still_sends_one_suspect() {
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    let lookup = Arc::new(DeadlyThenSlow(clock.clone(), AtomicUsize::default()));
    let network = Network::new(Reach::Loopback, lookup, PATIENT);
    let setup = Setup::with(|settings| Settings { network, clock, ..settings }).await;
    let org = setup.org().await;
    let endpoint = format!("{}/hook", setup.receiver.url.replace("127.0.0.1", "slow.test"));
    let webhook = setup.post(&org, "/api/v1/outbound_webhook", json!({"endpoint": endpoint})).await;
    let assistant = setup.assistant(&org, &webhook).await;
    let customer = Customer { setup, org, webhook, assistant };
    let (setup, now) = (&customer.setup, customer.setup.clock.now());
    // The circuit is open, so the tick sends all deliveries. The first one crashes it.
    let failed = Observed { failures: 3, failing_since: Some(now), ..Observed::default() };
    let healthy = EndpointHealth::healthy(customer.endpoint());
    delivery::health::keep(&customer.org.table, &healthy, &failed, now, now).await.unwrap();
    customer.close_one().await;
    setup.pass(60);
    assert!(setup.stack.tick("send-delivery").await.is_err());
    assert!(customer.delivery().await.is_suspect());
    setup.pass(300);
    customer.close_one().await;
    setup.pass(60);
    setup.stack.tick("send-delivery").await.unwrap();
    assert_eq!(setup.clock.now(), now.plus_seconds(60 + 300 + 60 + 2 * 41), "the other delivery went first");
    assert_eq!(states(&customer.outbox().await), BTreeMap::from([("delivered", 2)]));
}

/// The first customer has webhooks at `/hook` and `/other`, and the second one at `/neighbour`.
#[tokio::test]
async fn an_open_circuit_defers_only_its_own_endpoint() {
    const ATTEMPT: Duration = Duration::from_secs(2);
    const BEHIND: usize = 20;
    const OTHERS: usize = 5;
    let slow = Behaviour::Slow(ATTEMPT / 4, 200);
    join_all([Behaviour::Answer(500), Behaviour::DropConnection, Behaviour::Never, slow].map(async |trouble| {
        let what = format!("{trouble:?}");
        let setup = Setup::with(|settings| Settings { network: loopback(ATTEMPT), ..settings }).await;
        let customer = Customer::of(setup).await;
        let Customer { setup, org, assistant, .. } = &customer;
        let other = setup.webhook(org, "/other").await;
        let of_other = setup.assistant(org, &other).await;
        let neighbour = setup.org().await;
        let of_neighbour = setup.assistant(&neighbour, &setup.webhook(&neighbour, "/neighbour").await).await;

        customer.answers(trouble);
        customer.converse(3).await;
        setup.settle().await;
        let attempts = customer.received().len();
        assert_eq!(attempts, 3, "{what}");
        // In the same minute, the customer would also have used its share of the lanes.
        setup.pass(60);
        for _ in 0..OTHERS {
            setup.converse(org, assistant, BEHIND / OTHERS).await;
            setup.converse(org, &of_other, 1).await;
            setup.converse(&neighbour, &of_neighbour, 1).await;
        }
        setup.settle().await;
        assert_eq!(setup.receiver.received("/other").len(), OTHERS, "{what}");
        assert_eq!(setup.receiver.received("/neighbour").len(), OTHERS, "{what}");
        assert_eq!(customer.received().len(), attempts, "{what}: nothing is tried meanwhile");
        if !what.starts_with("Slow") {
            // Each probe of `Never` takes the whole time limit of an attempt, so one is enough.
            for probes in 1..=if what == "Never" { 1 } else { 2 } {
                setup.minutes(1).await;
                // The first three have retries of their own: one of them may be due beside the probe.
                assert!(customer.received().len() <= attempts + probes + 3, "{what}: {}", customer.received().len());
            }
            customer.answers(Behaviour::Answer(200));
        }
        setup.minutes(60).await;
        let outbox = customer.outbox().await;
        assert_eq!(states(&outbox), BTreeMap::from([("delivered", BEHIND + 3)]), "{what}");
        let received = customer.received();
        assert_eq!(events(&received).len(), BEHIND + 3, "{what}");
        assert!(received.len() <= BEHIND + 3 + 3 + 5, "{what}: {}", received.len());
        assert_eq!(setup.due(), BTreeMap::new(), "{what}");
    }))
    .await;
}

#[tokio::test]
async fn a_410_from_a_former_address_disables_no_webhook() {
    let customer = Customer::new().await;
    customer.answers(Behaviour::Slow(Duration::from_millis(500), 410));
    customer.converse(1).await;
    let other = json!({"endpoint": format!("{}/other", customer.setup.receiver.url)});
    let moved = async {
        while customer.received().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        customer.setup.pass(1);
        customer.change("PUT", "", other).await
    };
    let ((), webhook) = tokio::join!(customer.setup.settle(), moved);
    assert_eq!(customer.delivery().await.status, Some(410));
    let endpoint = EndpointId(id_of(&customer.webhook).parse().unwrap());
    let health = delivery::health::of(&customer.org.table, endpoint).await.unwrap();
    assert_eq!((health.failures, health.failing_since, health.slow), (0, None, false));
    let now = customer.change("GET", "", Value::Null).await;
    assert_eq!(
        (&now["enabled"], &now["disabled_reason"], &now["updated_at"]),
        (&json!(true), &json!(null), &webhook["updated_at"])
    );
}

#[tokio::test]
async fn both_secrets_sign_for_a_day_after_a_rotation() {
    let customer = Customer::new().await;
    let old = customer.webhook["secret"].clone();
    let new = customer.change("POST", "/rotate_secret", Value::Null).await["secret"].clone();
    customer.setup.pass(DAY - 1);
    customer.close_one().await;
    customer.setup.pass(1);
    customer.close_one().await;
    let received = customer.received();
    assert_eq!(received[0].headers["webhook-signature"].split(' ').count(), 2);
    assert!(is_signed_with(&received[0], &old) && is_signed_with(&received[0], &new));
    assert_eq!(received[1].headers["webhook-signature"].split(' ').count(), 1);
    assert!(!is_signed_with(&received[1], &old) && is_signed_with(&received[1], &new));
}

#[tokio::test]
async fn a_finished_delivery_can_be_sent_again() {
    let customer = Customer::new().await;
    customer.close_one().await;
    customer.setup.pass(DAY);
    let id = customer.delivery().await.id;
    let again = customer.change("POST", &format!("/logs/{id}/redeliver"), Value::Null).await;
    assert_eq!(again["state"], "ready");
    customer.setup.settle().await;
    let received = customer.received();
    assert_eq!((received.len(), events(&received).len()), (2, 1));
    assert_eq!(received[0].body, received[1].body);
    assert_ne!(received[0].headers["webhook-timestamp"], received[1].headers["webhook-timestamp"]);
    // A dead delivery that is sent again gets the whole schedule of retries.
    customer.answers(Behaviour::Sequence(vec![Behaviour::Answer(410), Behaviour::Answer(500)]));
    customer.change("POST", &format!("/logs/{id}/redeliver"), Value::Null).await;
    customer.setup.settle().await;
    assert_eq!(customer.delivery().await.state, DeliveryState::Dead);
    let path = customer.path(&format!("/logs/{id}/redeliver"));
    let refused = customer.setup.ask(&customer.org, "POST", &path, &Value::Null).await;
    assert_eq!(failure(&refused), (409, vec![r#"["path","webhook_id"] webhook_disabled"#.into()]));
    customer.change("PUT", "", json!({"enabled": true})).await;
    customer.change("POST", &format!("/logs/{id}/redeliver"), Value::Null).await;
    customer.setup.settle().await;
    let delivery = customer.delivery().await;
    assert_eq!((delivery.state, delivery.tries, delivery.attempts), (DeliveryState::Waiting, 1, 4));
}

#[tokio::test]
async fn a_test_event_reaches_its_webhook() {
    let customer = Customer::new().await;
    let made = customer.change("POST", "/test", Value::Null).await;
    assert_eq!((&made["event"], &made["state"]), (&json!("webhook.test"), &json!("ready")));
    customer.setup.settle().await;
    let received = customer.received();
    let wanted = format!(
        r#"{{"id":{},"object":"event","event":"webhook.test","created_at":"2026-02-01T12:00:00.000Z","data":{{"webhook_id":{}}}}}"#,
        made["event_id"], customer.webhook["id"]
    );
    assert_eq!(String::from_utf8_lossy(&received[0].body), wanted);
    assert!(is_signed_with(&received[0], &customer.webhook["secret"]));
    assert_eq!(customer.delivery().await.id.to_string(), id_of(&made));
}

/// Answers the first look-up with the first address, and every later one with the second.
#[derive(Debug)]
struct Turns([IpAddr; 2], AtomicUsize);

impl Lookup for Turns {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let turn = self.1.fetch_add(1, Ordering::SeqCst).min(1);
        Box::pin(async move { Ok(vec![self.0[turn]]) })
    }
}

#[tokio::test]
async fn a_rebound_name_is_not_connected_to() {
    let machine = TcpListener::bind("127.0.0.1:0").unwrap();
    machine.set_nonblocking(true).unwrap();
    let endpoint = format!("https://rebound.example.com:{}/hook", machine.local_addr().unwrap().port());
    for there in ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1"] {
        let lookup = Turns(["93.184.215.14", there].map(|address| address.parse().unwrap()), AtomicUsize::default());
        let network = Network::new(Reach::Public, Arc::new(lookup), PATIENT);
        let setup = Setup::with(|settings| Settings { network, ..settings }).await;
        let org = setup.org().await;
        let webhook = setup.post(&org, "/api/v1/outbound_webhook", json!({"endpoint": endpoint})).await;
        let assistant = setup.assistant(&org, &webhook).await;
        setup.converse(&org, &assistant, 1).await;
        setup.settle().await;
        let delivery = setup.outbox(&org, &webhook).await.remove(0);
        let outcome = (delivery.state, delivery.status, delivery.error.as_deref());
        assert_eq!(outcome, (DeliveryState::Waiting, None, Some("address not allowed")), "{there}");
        assert!(!format!("{delivery:?}").contains(there), "the delivery shows the address");
        let no_connection = machine.accept().unwrap_err();
        assert_eq!(no_connection.kind(), io::ErrorKind::WouldBlock);
    }
}

#[tokio::test]
async fn a_webhook_secret_appears_only_in_its_own_row() {
    let log = Log::default();
    let _guard = log.listen(Level::INFO);
    let customer = Customer::new().await;
    let secrets = [
        customer.webhook["secret"].clone(),
        customer.change("POST", "/rotate_secret", Value::Null).await["secret"].clone(),
    ];
    for behaviour in [Behaviour::Answer(200), Behaviour::DropConnection, Behaviour::Answer(500), Behaviour::Answer(410)]
    {
        customer.answers(behaviour);
        customer.close_one().await;
        customer.setup.minutes(2).await;
    }
    let setup = &customer.setup;
    let shown = [
        ("a delivery", setup.ask(&customer.org, "GET", &customer.path("/logs"), &Value::Null).await.body),
        ("the webhook", setup.ask(&customer.org, "GET", &customer.path(""), &Value::Null).await.body),
        ("the list", setup.ask(&customer.org, "GET", "/api/v1/outbound_webhook/list", &Value::Null).await.body),
        ("what was sent", format!("{:?}", customer.received())),
        ("the log", log.text()),
    ];
    let webhooks = format!("ORG#{}#LIST#WEBHOOK#ROWS", customer.org.id);
    let others =
        everything(&setup.stack).await.into_iter().filter(|item| item["pk"] != AttributeValue::S(webhooks.clone()));
    let table = format!("{:?}", others.collect::<Vec<_>>());
    assert!(log.text().contains("consumer=\"send-delivery\""), "the log is not listened to");
    for (place, text) in shown.iter().map(|(place, text)| (*place, text)).chain([("the table", &table)]) {
        for secret in &secrets {
            let secret = secret.as_str().unwrap().strip_prefix("whsec_").unwrap();
            assert!(!text.contains(secret), "a secret is in {place}");
        }
        assert!(!text.contains(&customer.org.key), "a key is in {place}");
    }
}

#[tokio::test]
async fn a_delivery_missing_from_the_index_is_sent() {
    // The deliveries are due now, or in some hours, after many failures.
    join_all([0, 8].map(async |hours| {
        let customer = Customer::new().await;
        customer.answers(Behaviour::Answer(500));
        for _ in 0..4 {
            customer.close_one().await;
        }
        for _ in 0..hours {
            customer.setup.pass(HOUR);
            // A tick tries one of them.
            customer.setup.minutes(5).await;
        }
        customer.answers(Behaviour::Answer(200));
        // The test removes the deferred ones from the index. They stay in the table.
        let is_deferred = |item: &BTreeMap<String, AttributeValue>| {
            item.get("due_pk").is_some_and(|due| due.as_s().unwrap().starts_with("DEFERRED"))
        };
        let held: Vec<_> = everything(&customer.setup.stack).await.into_iter().filter(is_deferred).collect();
        for item in &held {
            let update =
                customer.setup.stack.client.update_item().table_name(TABLE_NAME).update_expression("REMOVE due_pk");
            update.key("pk", item["pk"].clone()).key("sk", item["sk"].clone()).send().await.unwrap();
        }
        customer.setup.minutes(10).await;
        assert!(!held.is_empty());
        assert_eq!(states(&customer.outbox().await).get("waiting"), Some(&held.len()));
        for _ in 0..3 {
            customer.setup.pass(HOUR + HOUR / 6);
            customer.setup.minutes(10).await;
        }
        let outbox = customer.outbox().await;
        assert_eq!(states(&outbox), BTreeMap::from([("delivered", 4)]), "{hours}");
        // A healthy endpoint leaves the queue of the tick, and its item is deleted.
        customer.setup.pass(HOUR);
        customer.setup.minutes(1).await;
        let left = everything(&customer.setup.stack).await;
        assert!(left.iter().all(|item| item["sk"].as_s().unwrap() != "ENDPOINT_HEALTH"), "{hours}");
    }))
    .await;
}

#[tokio::test]
async fn a_failure_counts_once_after_a_lost_database_answer() {
    let (stack, faults) = with_faults(empty()).await;
    let table = faulty_acme(&stack);
    let now = Timestamp::from_unix_millis(NOW);
    let endpoint = EndpointId(Uuid::from_u128(7));
    let failed = Observed { failures: 1, failing_since: Some(now), ..Observed::default() };
    faults.plan(|_, number| if number == 0 { Fault::BreakAnswer } else { Fault::None });
    let healthy = EndpointHealth::healthy(endpoint);
    let health = delivery::health::keep(&table, &healthy, &failed, now, now).await.unwrap();
    assert_eq!((health.failures, faults.requests()), (1, vec!["PutItem".to_owned(); 2]));
    faults.end();
    assert_eq!(delivery::health::of(&table, endpoint).await.unwrap(), health);
    // The next failure counts too.
    let health = delivery::health::keep(&table, &healthy, &failed, now, now).await.unwrap();
    assert_eq!(health.failures, 2);
}

/// Crashes the process of each look-up of `deadly.test`, after three seconds.
#[derive(Debug)]
struct Deadly {
    clock: Clock,
    begun: AtomicBool,
    tries: AtomicUsize,
}

impl Lookup for Deadly {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        if host == "deadly.test" && self.begun.load(Ordering::SeqCst) {
            self.tries.fetch_add(1, Ordering::SeqCst);
            self.clock.set(self.clock.now().plus_seconds(3));
            panic!("as the test wants it");
        }
        Box::pin(async move { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

#[tokio::test]
async fn a_delivery_that_crashes_the_process_fails_after_ten_attempts() {
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    let deadly = Arc::new(Deadly { clock: clock.clone(), begun: AtomicBool::default(), tries: AtomicUsize::default() });
    let network = Network::new(Reach::Loopback, Arc::<Deadly>::clone(&deadly), PATIENT);
    let setup = Setup::with(|settings| Settings { network, clock, lanes: None, ..settings }).await;
    let (mut webhooks, mut open) = (Vec::new(), Vec::new());
    for number in 0..12 {
        let org = setup.org().await;
        let host = if number == 6 { "deadly.test" } else { "127.0.0.1" };
        let endpoint = format!("{}/hook", setup.receiver.url.replace("127.0.0.1", host));
        let webhook = setup.post(&org, "/api/v1/outbound_webhook", json!({"endpoint": endpoint})).await;
        let assistant = setup.assistant(&org, &webhook).await;
        let conversations = if number == 6 { 1 } else { 8 };
        for _ in 0..conversations {
            open.push((org.clone(), setup.open(&org, &assistant).await));
        }
        webhooks.push((org, webhook));
    }
    for (org, conversation) in &open {
        setup.close(org, conversation).await;
    }
    deadly.begun.store(true, Ordering::SeqCst);
    let begun = setup.clock.now();
    setup.settle().await;
    let mut minutes = 0;
    let (org, webhook) = &webhooks[6];
    let given_up = loop {
        let delivery = setup.outbox(org, webhook).await.remove(0);
        if delivery.state == DeliveryState::Dead {
            break delivery;
        }
        // A tick that crashes returns an error.
        setup.pass(60);
        let _ = setup.stack.minute().await;
        setup.settle().await;
        minutes += 1;
        assert!(minutes < 60, "{delivery:?}");
    };
    assert_eq!(given_up.error.as_deref(), Some("no attempt came to an end"));
    // Ten attempts are counted. Lambda makes some more before it has isolated the delivery among a hundred changes.
    let tries = deadly.tries.load(Ordering::SeqCst);
    assert!((10..=20).contains(&tries), "{tries}");
    for (number, (org, webhook)) in webhooks.iter().enumerate().filter(|(number, _)| *number != 6) {
        let outbox = setup.outbox(org, webhook).await;
        assert_eq!(states(&outbox), BTreeMap::from([("delivered", 8)]), "{number}");
        for attempt in outbox.iter().flat_map(|delivery| &delivery.log) {
            assert!(attempt.at <= begun.plus_seconds(60), "{number}: {attempt:?}");
        }
    }
}
