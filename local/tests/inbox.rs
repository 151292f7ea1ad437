//! Tests of the inbox of `cargo local`, which receives the events of the demo set and answers as planned.

use local::demo::Demo;
use local::http::Call;
use local::inbox::{self, Signature};
use local::{Settings, Stack};
use repository::root;
use serde_json::{Value, json};
use shared::routes;
use shared::values::limits::Limits;
use shared::values::time::Clock;

use crate::support::fixture::{ACME, GLOBEX, call, data, http_client, id, kind, path, streaming};

/// A stack with the demo set, whose webhooks and connectors point to the inbox. Its clock is the machine's, with which
/// the inbox compares signatures.
async fn connected() -> Stack {
    let stack = Stack::start(Settings { clock: Clock::System, demo: demo_file(), ..streaming() }).await.unwrap();
    inbox::connect(&stack.url, &stack.api).await.unwrap();
    stack
}

fn demo_file() -> Option<std::path::PathBuf> {
    Settings::of(&root()).demo
}

fn demo() -> Demo {
    Demo::read(&demo_file().unwrap()).unwrap()
}

fn put(path: &str, key: &str, body: &Value) -> Call {
    Call { method: "PUT".into(), body: body.to_string().into(), ..call("GET", path, key) }
}

fn post(path: &str, key: &str, body: &Value) -> Call {
    Call { method: "POST".into(), ..put(path, key, body) }
}

/// Closes a conversation of the demo set, and delivers its event.
async fn close(stack: &Stack) {
    let close = format!("/api/v1/conversation/{}/close", id('a', kind::CONVERSATION, 1));
    data(&stack.answer(&post(&close, ACME, &json!({}))).await);
    stack.settle().await.unwrap();
}

async fn items(stack: &Stack, path: &str, key: &str) -> Vec<Value> {
    data(&stack.answer(&call("GET", path, key)).await)["items"].as_array().unwrap().clone()
}

/// Number, address, signature and answer of each received event, oldest first.
fn came(stack: &Stack) -> Vec<(u64, String, Signature, u16)> {
    let one = |event: &inbox::Arrived| (event.number, event.to.clone(), event.signature.clone(), event.answered);
    stack.inbox.newest(usize::MAX).iter().rev().map(|event| one(event)).collect()
}

#[tokio::test]
async fn connect_replaces_only_the_endpoints_of_the_demo_set() {
    let stack = connected().await;
    let (webhooks, widgets) = (routes::LIST_WEBHOOKS.path, routes::LIST_WIDGETS.path);
    for (key, name) in [(ACME, "acme"), (GLOBEX, "globex")] {
        for (list, field, what) in [(webhooks, "endpoint", "webhook"), (widgets, "connector_url", "connector")] {
            let records = items(&stack, list, key).await;
            assert!(!records.is_empty());
            for (number, record) in records.iter().enumerate() {
                let wanted = format!("{}/inbox/events/{name}/{what}-{}", stack.url, number + 1);
                assert_eq!(record[field], wanted);
            }
        }
    }
    let webhook = path(&routes::UPDATE_WEBHOOK, |_| id('a', kind::WEBHOOK, 0));
    let own = json!({"endpoint": "https://93.184.215.15/own"});
    let changed = data(&stack.answer(&put(&webhook, ACME, &own)).await);
    let before = (items(&stack, webhooks, ACME).await, items(&stack, widgets, GLOBEX).await);
    inbox::connect(&stack.url, &stack.api).await.unwrap();
    assert_eq!((items(&stack, webhooks, ACME).await, items(&stack, widgets, GLOBEX).await), before);
    assert!(before.0.contains(&changed));
}

#[tokio::test]
async fn connect_takes_no_tokens_of_a_key() {
    let key_limits = Limits::new(5, 5);
    let stack = Stack::start(Settings { demo: demo_file(), key_limits, ..streaming() }).await.unwrap();
    inbox::connect(&stack.url, &stack.api).await.unwrap();
    // `connect` took no tokens, so the user's five requests pass. The clock stands still, so no token comes back.
    for wanted in [200, 200, 200, 200, 200, 429] {
        assert_eq!(stack.answer(&call("GET", routes::LIST_WEBHOOKS.path, ACME)).await.status, wanted);
    }
}

#[tokio::test]
async fn a_verified_event_gets_the_planned_answer() {
    let stack = connected().await;
    stack.inbox.answer_next(serde_json::from_value(json!({"count": 1, "status": 503})).unwrap());
    close(&stack).await;
    let org = demo().organisations[0].org_id;
    let event = |number, status| (number, "acme/webhook-2".to_owned(), Signature::Verified(org), status);
    assert_eq!(came(&stack), [event(1, 503)]);
    let deliveries = path(&routes::LIST_DELIVERIES, |_| id('a', kind::WEBHOOK, 1));
    let failed = items(&stack, &deliveries, ACME).await.pop().unwrap();
    assert_eq!(failed["status"], 503, "{failed}");
    let again = format!("{deliveries}/{}/redeliver", failed["id"].as_str().unwrap());
    data(&stack.answer(&post(&again, ACME, &json!({}))).await);
    stack.settle().await.unwrap();
    assert_eq!(came(&stack), [event(1, 503), event(2, 200)]);
    let bodies: Vec<_> = stack.inbox.newest(usize::MAX).iter().map(|event| event.body.clone()).collect();
    assert_eq!(bodies[0], bodies[1]);
    assert_eq!(bodies[0]["data"]["conversation_id"], id('a', kind::CONVERSATION, 1));
}

#[tokio::test]
async fn the_inbox_lists_events_and_refuses_pages_of_another_host() {
    let stack = Stack::start(streaming()).await.unwrap();
    let client = http_client();
    let address = |path: &str| format!("{}/inbox{path}", stack.url);
    let send = async |body: &str, signature: Option<&str>| {
        let request = client.post(address("/events/any/where")).body(body.to_owned());
        let request = signature.iter().fold(request, |request, text| request.header("webhook-signature", *text));
        request.send().await.unwrap().status().as_u16()
    };
    let set_plan = async |body: Value, origin: Option<&str>| {
        let request = client.put(address("/answers")).body(body.to_string());
        let request = origin.iter().fold(request, |request, origin| request.header("origin", *origin));
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let plan = json!({"count": 2, "status": 500, "delay_milliseconds": 1});
    assert_eq!(set_plan(plan.clone(), None).await, (200, plan));
    for wrong in [
        json!({"count": 1, "status": 99}),
        json!({"count": -1}),
        json!([]),
        json!({"count": 1, "delay_milliseconds": 60_001}),
    ] {
        let (status, body) = set_plan(wrong.clone(), None).await;
        assert!(status == 400 && body["error"].is_string(), "{wrong} {body}");
    }
    assert_eq!(set_plan(json!({"count": 0}), Some("http://page.example")).await.0, 403);
    assert_eq!(set_plan(json!({"count": 2, "status": 502}), Some(&stack.url)).await.0, 200);
    let answers = [send("{\"a\":1}", None).await, send("text", Some("v1,AAAA")).await, send("third", None).await];
    assert_eq!(answers, [502, 502, 200]);
    let listed: Value = client.get(address("")).send().await.unwrap().json().await.unwrap();
    let shown: Vec<_> = listed["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (&event["number"], &event["body"], &event["signature"]))
        .collect();
    let (one, two, three) = (json!(1), json!(2), json!(3));
    let (first, missing, wrong) = (json!({"a": 1}), json!("missing"), json!("wrong"));
    assert_eq!(shown, [(&three, &json!("third"), &missing), (&two, &json!("text"), &wrong), (&one, &first, &missing)]);
}

#[tokio::test]
async fn the_inbox_keeps_the_last_thousand_events() {
    let stack = Stack::start(streaming()).await.unwrap();
    let client = http_client();
    for _ in 0..1002 {
        client.post(format!("{}/inbox/events/x", stack.url)).send().await.unwrap().error_for_status().unwrap();
    }
    let kept: Vec<_> = came(&stack).into_iter().map(|(number, ..)| number).collect();
    assert_eq!(kept, (3..=1002).collect::<Vec<_>>());
    // The inbox keeps fewer large events: these have 60 MiB each.
    let large = "x".repeat(60 * 1024 * 1024);
    for _ in 0..5 {
        client.post(format!("{}/inbox/events/x", stack.url)).body(large.clone()).send().await.unwrap();
    }
    let kept: Vec<_> = came(&stack).into_iter().map(|(number, ..)| number).collect();
    assert_eq!(kept, [1004, 1005, 1006, 1007]);
}
