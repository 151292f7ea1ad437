//! Tests of the functions on the table's stream, which the harness invokes by Lambda's rules.

use std::collections::BTreeSet;
use std::time::Duration;

use local::faults::Fault;
use local::http::Call;
use local::stream::Stream;
use local::{Settings, Stack};
use repository::root;
use serde_json::{Value, json};
use shared::records::tag::{EntityType, Link};
use shared::request::event::EventContext;
use shared::runtime::stream::StreamEvent;
use shared::table::change::Change;
use shared::table::version::Version;
use shared::values::id::{LinkId, TagId};
use shared::values::time::Timestamp;
use shared::{reactions, routes};
use uuid::Uuid;

use crate::support::crashes::unreliable_stream;
use crate::support::fixture::{
    ACME, GLOBEX, NOW, acme, call, data, demo_id, everything, few_streaming, handle, id, kind, make, post, streaming,
    valid_call, with_faults,
};
use crate::support::sweep::cases;

async fn links(stack: &Stack, key: &str) -> Value {
    data(&stack.answer(&call("GET", "/api/v1/link_tag_entity/list", key)).await)
}

/// Gives the newsletter tag a link of its own, behind the 250 of the VIP tag.
async fn one_more_link(stack: &Stack) -> Vec<Link> {
    let [tag, new] = [2, 99].map(|number| id('a', kind::TAG, number).parse::<Uuid>().unwrap());
    let link = |_: usize, id: LinkId| Link {
        id,
        entity_id: "a form".to_owned().into(),
        entity_type: EntityType::Form,
        tag_id: TagId(tag),
        created_at: Timestamp::from_unix_millis(NOW),
        updated_at: Timestamp::from_unix_millis(NOW),
        created_by_id: None,
        version: Version::default(),
    };
    // No operation links a tag to a missing record, so the test stores the link.
    acme(stack).insert_all((), &[new], link).await.unwrap()
}

#[tokio::test]
async fn a_deleted_tag_removes_only_its_own_links() {
    let stack = Stack::start(streaming()).await.unwrap();
    let kept = one_more_link(&stack).await;
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
    stack.settle().await.unwrap();
    let left = links(&stack, ACME).await;
    assert_eq!((&left["total"], &left["items"]), (&json!(1), &json!(kept)));
    assert_eq!(links(&stack, GLOBEX).await["total"], 2);
    assert!(!format!("{:?}", everything(&stack).await).contains("TAG#01900000-0000-7000-8000-a00100000001"));
    assert_eq!(stack.stream.given_up(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_redelivered_record_changes_nothing() {
    let stack = Stack::start(streaming()).await.unwrap();
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
    stack.settle().await.unwrap();
    let (once, kept) = (everything(&stack).await, one_more_link(&stack).await);
    let text = |text: &str| json!({"S": text});
    let key = json!({"pk": text("ORG#01900000-0000-7000-8000-a00000000001#LIST#TAG#ROWS"), "sk": text("0000000001")});
    let tag = json!({
        "record": text("Tag"),
        "id": text(&id('a', kind::TAG, 1)),
        "name": text("VIP"),
        "created_at": text("2026-01-01T00:00:00.000Z"),
        "updated_at": text("2026-01-01T00:00:00.000Z"),
    });
    let images = json!({"Keys": key, "OldImage": tag, "SequenceNumber": "1"});
    let record = json!({"eventName": "REMOVE", "dynamodb": images});
    handle(&stack, &[record.clone(), record]).await;
    assert_eq!(links(&stack, ACME).await["items"], json!(kept));
    assert_eq!(everything(&stack).await.len(), once.len() + 3, "the link and what points to it");
}

#[tokio::test]
async fn a_failing_database_delays_a_change_without_losing_it() {
    let fails: [fn(usize) -> bool; 2] = [
        // Three of every ten requests fail: each attempt of the batch removes some more links.
        |number| number % 10 < 3,
        // Thirty-three failed requests would use up the eleven attempts of the event source.
        |number| number < 100,
    ];
    for fails in fails {
        let (stack, faults) = with_faults(few_streaming()).await;
        let kept = one_more_link(&stack).await;
        stack.settle().await.unwrap();
        data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
        faults.plan(move |_, number| if fails(number) { Fault::Throttle } else { Fault::None });
        stack.settle().await.unwrap();
        faults.end();
        assert_eq!(links(&stack, ACME).await["items"], json!(kept));
        assert_eq!(stack.stream.given_up(), Vec::<Value>::new());
    }
}

#[tokio::test]
async fn a_batch_is_not_split_during_an_outage() {
    let (stack, faults) = with_faults(Settings { patience: Duration::ZERO, ..few_streaming() }).await;
    for _ in 0..5 {
        make(&stack, "/api/v1/assistant", json!({})).await;
    }
    let mut records = Stream::changes(&stack.database).unwrap();
    records.retain(|record| record["dynamodb"]["NewImage"]["record"]["S"] == "Assistant");
    let event: StreamEvent = serde_json::from_value(json!({"Records": records})).unwrap();
    let requests = async |batch: &[Change]| {
        faults.plan(|_, _| Fault::Throttle);
        let cx = EventContext { service: &stack.gateway.service };
        assert_eq!(reactions::react(&cx, batch).await.unwrap_err().at, 0);
        let requests = faults.requests().len();
        faults.end();
        requests
    };
    assert_eq!(event.records.len(), 5);
    assert_eq!(requests(&event.records).await, requests(&event.records[..1]).await);
}

#[tokio::test]
async fn a_given_up_record_does_not_stop_later_ones() {
    let (stack, faults) = with_faults(streaming()).await;
    // The other functions on the stream handle the changes of the demo set first.
    stack.settle().await.unwrap();
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
    faults.plan(|_, _| Fault::Throttle);
    stack.settle().await.unwrap();
    faults.end();
    let given_up = stack.stream.given_up();
    assert_eq!(given_up.len(), 1);
    assert_eq!(given_up[0]["eventName"], "REMOVE");
    assert_eq!(links(&stack, ACME).await["total"], 250);
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'b', GLOBEX)).await);
    stack.settle().await.unwrap();
    assert_eq!(links(&stack, GLOBEX).await["total"], 0);
}

#[tokio::test]
async fn links_are_removed_under_stream_faults() {
    for seed in cases(0..5) {
        let stack = Stack::start(few_streaming()).await.unwrap();
        stack.stream.set_faults(&unreliable_stream(seed, 0.5, 0.2));
        let kept = one_more_link(&stack).await;
        data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
        stack.settle().await.unwrap();
        assert_eq!(links(&stack, ACME).await["items"], json!(kept), "seed {seed}");
        assert_eq!(stack.stream.given_up(), Vec::<Value>::new(), "seed {seed}");
    }
}

#[tokio::test]
async fn the_background_removes_links_of_a_deleted_tag() {
    let stack = Stack::start(streaming()).await.unwrap();
    let background = stack.background();
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'b', GLOBEX)).await);
    let gone = async {
        while links(&stack, GLOBEX).await["total"] != 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), gone).await.unwrap();
    background.stop().await;
    stack.stop().await;
}

#[tokio::test]
async fn a_stream_function_can_be_invoked_by_name() {
    let stack = Stack::start(streaming()).await.unwrap();
    let answer = async |payload: &str| {
        let answer = stack.gateway.invoke_by_name("RecordChangedFunction", payload.as_bytes()).await;
        (answer.status, answer.headers.contains_key("x-amz-function-error"), answer.body)
    };
    let nothing = (200, false, json!({"batchItemFailures": []}).to_string());
    assert_eq!(answer(r#"{"Records": []}"#).await, nothing);
    assert_eq!(answer(r#"{"source": "aws.events"}"#).await, nothing);
    assert!(answer("{").await.1, "invalid JSON is a failure");
}

#[tokio::test]
async fn a_tick_invokes_a_function_by_its_name() {
    let stack = Stack::start(streaming()).await.unwrap();
    stack.tick("record-changed").await.unwrap();
    let trouble = stack.tick("delete-tag").await.unwrap_err();
    assert_eq!(trouble.to_string(), "no function delete-tag that takes events is built into this program");
    stack.minute().await.unwrap();
}

#[tokio::test]
async fn a_failure_of_one_organisation_loses_no_change() {
    let (stack, faults) = with_faults(streaming()).await;
    stack.settle().await.unwrap();
    let both = [('b', GLOBEX), ('a', ACME)];
    for (organisation, key) in both {
        data(&stack.answer(&valid_call(&routes::CLOSE_CONVERSATION, organisation, key)).await);
    }
    // Acme comes after Globex in the batch, but is handled first, and fails.
    faults.plan(|_, number| if number < 3 { Fault::Throttle } else { Fault::None });
    stack.stream.drain_for("record-changed").await.unwrap();
    faults.end();
    for (organisation, key) in both {
        let page = data(&stack.answer(&valid_call(&routes::LIST_DELIVERIES, organisation, key)).await);
        assert_eq!(page["total"], 2, "the demo set's, and one of the conversation that was closed: {page}");
    }
}

/// Creates, changes and removes records with filters. Returns all changes of the table.
async fn changes_of_filters(stack: &Stack) -> Vec<Value> {
    let ask = async |method: &str, path: &str, body: Value| {
        let body = body.to_string().into_bytes();
        data(&stack.answer(&Call { body, ..call(method, path, ACME) }).await)
    };
    let made = async |path: &str, body: Value| ask("POST", path, body).await["id"].as_str().unwrap().to_owned();
    let assistant = made("/api/v1/assistant", json!({})).await;
    for end in ["open", "closed", "deleted"] {
        let conversation = made("/api/v1/conversation", json!({"assistant_id": assistant})).await;
        let path = format!("/api/v1/conversation/{conversation}");
        ask("POST", &format!("{path}/message"), json!({"sender_type": "user", "text": "Hello"})).await;
        if end != "open" {
            ask("POST", &format!("{path}/close"), json!({})).await;
        }
        if end == "deleted" {
            ask("DELETE", &path, Value::Null).await;
        }
        if end == "open" {
            let filled = json!({"form_id": demo_id('a', "form_id"), "field_values": {}});
            made(&format!("{path}/captured_form"), filled).await;
            let recognised = json!({"intent_id": demo_id('a', "intent_id")});
            made(&format!("{path}/captured_intent"), recognised).await;
        }
        made(
            "/api/v1/contact/upsert",
            json!({"email": format!("{end}@example.com"), "custom_fields": {"plan": "gold"}}),
        )
        .await;
        let datasource = made("/api/v1/datasource", json!({"ds_type": "pdf"})).await;
        let path = format!("/api/v1/datasource/{datasource}");
        ask("POST", &format!("/api/v1/assistant/{assistant}/data_source/{datasource}"), Value::Null).await;
        if end != "open" {
            ask("PUT", &path, json!({"ds_status": "failed"})).await;
        }
        if end == "deleted" {
            ask("DELETE", &path, Value::Null).await;
        }
        let link = json!({"tag_id": id('a', kind::TAG, 2), "entity_type": "assistant", "entity_id": assistant});
        if end == "closed" {
            made("/api/v1/link_tag_entity", link).await;
        }
    }
    let widget = made("/api/v1/widget", json!({"widget_type": "chat", "assistant_id": assistant})).await;
    ask("DELETE", &format!("/api/v1/widget/{widget}"), Value::Null).await;
    stack.settle().await.unwrap();
    Stream::changes(&stack.database).unwrap()
}

#[tokio::test]
async fn replayed_changes_in_any_order_change_nothing() {
    let stack = Stack::start(Settings { lanes: None, ..streaming() }).await.unwrap();
    let mut changes = changes_of_filters(&stack).await;
    let wanted = everything(&stack).await;
    let filters = reactions::ALL.iter().filter(|reaction| reaction.name == "select-rows").count();
    let records = |changes: &[Value]| {
        let of = |change: &Value| change["dynamodb"]["NewImage"]["record"]["S"].as_str().map(str::to_owned);
        changes.iter().filter_map(of).collect::<BTreeSet<_>>()
    };
    assert!(changes.len() > 100 && records(&changes).len() >= filters, "{:?}", records(&changes));
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..3 {
        random.shuffle(&mut changes);
        for batch in changes.chunks(20) {
            handle(&stack, batch).await;
        }
        stack.settle().await.unwrap();
        assert_eq!(everything(&stack).await, wanted);
    }
}

#[tokio::test]
async fn a_given_up_change_can_be_handled_after_later_ones() {
    let (stack, faults) = with_faults(streaming()).await;
    stack.settle().await.unwrap();
    let total = async |status: &str| {
        let mut list = call("GET", "/api/v1/conversation", ACME);
        list.query += &format!("&status={status}");
        data(&stack.answer(&list).await)["total"].as_u64().unwrap()
    };
    let before = (total("open").await, total("closed").await);
    let body = json!({"assistant_id": id('a', kind::ASSISTANT, 1)}).to_string();
    let opened = data(&stack.answer(&post("/api/v1/conversation", ACME, body)).await);
    faults.plan(|_, _| Fault::Throttle);
    stack.settle().await.unwrap();
    faults.end();
    let given_up = stack.stream.given_up();
    assert_eq!(given_up.len(), 1, "{given_up:?}");
    let path = format!("/api/v1/conversation/{}", opened["id"].as_str().unwrap());
    data(&stack.answer(&post(&format!("{path}/close"), ACME, "")).await);
    stack.settle().await.unwrap();
    handle(&stack, &given_up).await;
    assert_eq!((total("open").await, total("closed").await), (before.0, before.1 + 1));
    data(&stack.answer(&call("DELETE", &path, ACME)).await);
    stack.settle().await.unwrap();
    handle(&stack, &given_up).await;
    assert_eq!((total("open").await, total("closed").await), before);
}

#[test]
fn every_record_with_a_filter_has_a_reaction() {
    let mut filtered = BTreeSet::new();
    for file in std::fs::read_dir(root().join("shared/src/records")).unwrap() {
        let file = file.unwrap().path();
        let text = if file.is_file() { std::fs::read_to_string(&file).unwrap() } else { String::new() };
        let text: String = text.lines().filter(|line| !line.starts_with("//!")).collect();
        for record in text
            .split("pub struct ")
            .skip(1)
            .filter(|record| ["(filter) ", "(sparse filter) ", ", terms "].iter().any(|mark| record.contains(mark)))
        {
            filtered.insert(record.split('(').next().unwrap().to_owned());
        }
    }
    let followed = reactions::ALL.iter().filter(|reaction| reaction.name == "select-rows");
    assert_eq!(filtered, followed.map(|reaction| reaction.record.to_owned()).collect());
    assert!(!filtered.is_empty());
}
