//! Replays every event in `events/` and compares the answers with `answers/`. `cargo generate` records both.

use std::collections::BTreeSet;
use std::path::PathBuf;

use local::gateway::endpoint;
use local::http::Call;
use local::{Settings, Stack};
use repository::functions::names_of_functions;
use repository::{names_in, root};
use serde_json::{Value, json};
use shared::routes;

use crate::exercises::EXERCISES;
use crate::support::agents::{STATELESS, request};
use crate::support::fixture::{ACME, NOW, data, demo_id, id, kind, portable, settings, stack, streaming, valid_call};
use crate::support::generated::{generated, generating};
use crate::support::sweep::cases;

/// The requests whose events are recorded, with the names of the events.
fn requests() -> impl Iterator<Item = (String, Call)> {
    let documents = routes::DOCUMENTS.iter().map(|route| {
        (route.name.to_owned(), Call { method: route.method.into(), path: route.path.into(), ..Call::default() })
    });
    let operations = EXERCISES.iter().flat_map(|exercise| {
        let name = exercise.route.name;
        let cases = (exercise.recorded)().into_iter().map(move |(case, call)| (format!("{name}.{case}"), call));
        [(name.to_owned(), valid_call(exercise.route, 'a', ACME))].into_iter().chain(cases)
    });
    let server = request(STATELESS, ACME, "server/discover", json!({}));
    operations.chain(documents).chain([(routes::MCP.name.to_owned(), server)])
}

/// The call with the headers of `curl`.
fn with_headers(call: Call) -> Call {
    let mut headers = vec![("accept", "*/*"), ("host", "localhost"), ("user-agent", "curl/8")];
    if !call.body.is_empty() {
        headers.push(("content-type", "application/json"));
    }
    let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Call { headers: headers.chain(call.headers).collect(), ..call }
}

/// The payloads with which operators invoke their functions.
fn tasks() -> [(&'static str, Value); 7] {
    let org = "01900000-0000-7000-8000-a00000000001";
    let key = "01900000-0000-7000-8000-a00e00000001";
    [
        ("get-organisation-use", json!({"org_id": org})),
        ("issue-api-key", json!({"name": "First"})),
        ("list-api-keys", json!({"org_id": org})),
        ("revoke-api-key", json!({"org_id": org, "id": key})),
        ("update-api-key", json!({"org_id": org, "id": key, "requests_per_second": 200, "burst": 400})),
        ("redrive", json!({"all": true})),
        (
            "note-upload",
            json!({
                "key": format!("{org}/{}", demo_id('a', "datasourcefile_id")),
                "size_bytes": 9120,
                "put_at": "2026-02-01T12:00:00Z",
            }),
        ),
    ]
}

/// The names of the events of the stream and of schedules: the function, and a suffix if it has several events.
const EVENTS: [&str; 8] = [
    "record-changed",
    "send-delivery",
    "send-delivery.every-minute",
    "release-deliveries",
    "run-exports",
    "send-campaigns",
    "remove-payment-webhooks",
    "redrive.every-five-minutes",
];

/// The folder of recorded events before they get their names.
fn folder() -> PathBuf {
    root().join("target/recorded-events")
}

/// Stores the recorded event of `function` under its name.
fn keep(function: &str, name: &str) {
    let recorded = std::fs::read_to_string(folder().join(format!("{function}.json"))).unwrap();
    generated(&format!("events/{name}.json"), &recorded);
}

async fn record() {
    for (name, call) in requests() {
        // A recording does not replace an older file.
        let _ = std::fs::remove_dir_all(folder());
        let recording = Stack::start(Settings { record: Some(folder()), ..settings() }).await.unwrap();
        recording.answer(&with_headers(call)).await;
        keep(name.split('.').next().unwrap(), &name);
    }
    for (name, payload) in tasks() {
        let text = serde_json::to_string_pretty(&payload).unwrap() + "\n";
        generated(&format!("events/{name}.json"), &text);
    }
    record_events().await;
}

/// Records the events of a closed conversation, of its delivery, and of a minute.
async fn record_events() {
    let stack = Stack::start(Settings { record: Some(folder()), ..streaming() }).await.unwrap();
    stack.settle().await.unwrap();
    let _ = std::fs::remove_dir_all(folder());
    stack.answer(&with_headers(valid_call(&routes::CLOSE_CONVERSATION, 'a', ACME))).await;
    for function in ["record-changed", "send-delivery"] {
        stack.stream.drain_for(function).await.unwrap();
        let file = folder().join(format!("{function}.json"));
        let event: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        std::fs::write(&file, serde_json::to_string_pretty(&with_fixed_ids(event)).unwrap() + "\n").unwrap();
        keep(function, function);
    }
    for name in &EVENTS[2..] {
        let function = name.split('.').next().unwrap();
        let _ = std::fs::remove_dir_all(folder());
        stack.tick(function).await.unwrap();
        let file = folder().join(format!("{function}.json"));
        let event: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        std::fs::write(&file, serde_json::to_string_pretty(&event).unwrap() + "\n").unwrap();
        keep(function, name);
    }
}

/// A batch of the stream with fixed ids and times.
fn with_fixed_ids(mut batch: Value) -> Value {
    for (number, record) in (1..).zip(batch["Records"].as_array_mut().unwrap()) {
        record["eventID"] = format!("{number:032x}").into();
        record["dynamodb"]["SequenceNumber"] = format!("{number:021}").into();
        record["dynamodb"]["ApproximateCreationDateTime"] = (NOW / 1000).into();
    }
    batch
}

/// The deliveries of the recorded conversation's webhook.
async fn deliveries(stack: &Stack) -> Value {
    data(&stack.answer(&valid_call(&routes::LIST_DELIVERIES, 'a', ACME)).await)
}

#[tokio::test]
async fn a_repeated_event_of_a_close_makes_one_delivery() {
    let stack = stack().await;
    let event = std::fs::read(root().join("events/record-changed.json")).unwrap();
    for _ in 0..2 {
        assert_eq!(stack.gateway.invoke_by_name("record-changed", &event).await.status, 200);
        let found = deliveries(&stack).await;
        assert_eq!((&found["total"], &found["items"][1]["state"]), (&json!(2), &json!("ready")));
        assert_eq!(found["items"][1]["conversation_id"], id('a', kind::CONVERSATION, 1));
    }
}

#[tokio::test]
async fn every_event_gets_its_recorded_answer() {
    if generating() {
        record().await;
    }
    let mut files: Vec<_> =
        std::fs::read_dir(root().join("events")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name_of = |file: &PathBuf| file.file_stem().unwrap().to_str().unwrap().to_owned();
    let names: BTreeSet<_> = files.iter().map(name_of).collect();
    for file in cases(files) {
        let name = name_of(&file);
        let function = name.split('.').next().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let stack = stack().await;
        let answer = match endpoint(function) {
            Some(endpoint) => stack.gateway.invoke(endpoint, serde_json::from_str(&text).unwrap()).await,
            None => stack.gateway.invoke_by_name(function, text.as_bytes()).await,
        };
        assert!(endpoint(function).is_some() || answer.status == 200, "events/{name}.json is for no function");
        let mut headers: String = answer.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        let body = portable(&stack, &answer.body);
        let body: Value = if routes::DOCUMENTS.iter().any(|route| route.name == function) {
            headers = headers.replace(&answer.headers["etag"], "…");
            // The rest of the document has its own file. A page is no JSON.
            let document: Value = serde_json::from_str(&body).unwrap_or_default();
            json!({"openapi": document["openapi"], "servers": document["servers"]})
        } else {
            serde_json::from_str(&body).unwrap()
        };
        let shown = format!("{}\n{headers}\n{}\n", answer.status, serde_json::to_string_pretty(&body).unwrap());
        generated(&format!("local/tests/answers/{name}.txt"), &shown);
    }
    let others = tasks().into_iter().map(|task| task.0).chain(EVENTS);
    let wanted: BTreeSet<_> = requests().map(|request| request.0).chain(others.map(str::to_owned)).collect();
    assert_eq!(names, wanted, "events/ has other files than wanted");
    let answers = names_in("local/tests/answers").into_iter().map(|file| file.trim_end_matches(".txt").to_owned());
    assert_eq!(answers.collect::<BTreeSet<_>>(), wanted, "local/tests/answers/ has other files than wanted");
    let functions: BTreeSet<_> = wanted.iter().map(|name| name.split('.').next().unwrap().to_owned()).collect();
    assert_eq!(functions, names_of_functions(), "a function has no recorded event");
}

#[tokio::test]
async fn a_custom_domain_with_a_base_path_gets_the_same_answers() {
    for (name, call) in cases(requests()) {
        let text = std::fs::read_to_string(root().join(format!("events/{name}.json"))).unwrap();
        let event: Value = serde_json::from_str(&text).unwrap();
        let mut behind = event.clone();
        behind["path"] = format!("/base{}", call.path).into();
        behind["requestContext"]["path"] = behind["path"].clone();
        behind["requestContext"]["domainName"] = "api.example.com".into();
        let endpoint = endpoint(name.split('.').next().unwrap()).unwrap();
        let mut answers = Vec::new();
        for event in [event, behind] {
            let stack = stack().await;
            let answer = stack.gateway.invoke(endpoint, serde_json::from_value(event).unwrap()).await;
            answers.push((answer.status, portable(&stack, &answer.body)));
        }
        assert_eq!(answers[0], answers[1], "{name}");
    }
}
