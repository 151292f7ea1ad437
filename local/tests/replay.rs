//! Tests of the program `replay` against local stacks: it passes on a sound service and names each failed call.

use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};

use local::faults::{Fault, Faults};
use local::replay::report::{Outcome, ReplayReport};
use local::replay::{ReplayOptions, run};
use local::{Settings, Stack};
use repository::{names_in, read, root};
use serde_json::{Value, json};
use shared::request::route::Access;
use shared::routes;
use shared::values::id::Ids;
use shared::values::time::Clock;

use crate::support::fixture::{ACME, ACME_READ_ONLY, empty, everything, settings};

/// A service with the machine's clock and random ids, like a deployed one.
async fn service(settings: Settings) -> Stack {
    Stack::start(Settings { clock: Clock::System, ids: Ids::Random, ..settings }).await.unwrap()
}

fn options(stack: &Stack, key: &str) -> ReplayOptions {
    ReplayOptions { root: root(), base_url: stack.url.clone(), api_key: key.to_owned(), ..ReplayOptions::default() }
}

/// A full key of a new organisation of `stack`.
async fn new_key(stack: &Stack) -> String {
    let answer = stack
        .gateway
        .invoke_by_name("issue-api-key", json!({"name": "First", "role": "admin"}).to_string().as_bytes())
        .await;
    let issued: Value = serde_json::from_str(&answer.body).unwrap();
    issued["api_key"].as_str().unwrap().to_owned()
}

/// The names of the calls with a wrong answer or none.
fn failed(report: &ReplayReport) -> Vec<&str> {
    let fails = |outcome: &Outcome| matches!(outcome, Outcome::Differs { .. } | Outcome::NoAnswer(_));
    report.rows.iter().filter(|row| fails(&row.outcome)).map(|row| row.name.as_str()).collect()
}

fn not_sent(report: &ReplayReport) -> Vec<&str> {
    let rows = report.rows.iter().filter(|row| matches!(row.outcome, Outcome::NotSent(_)));
    rows.map(|row| row.name.as_str()).collect()
}

/// The events that make a record in an empty service: a POST of an operation that writes, whose valid input names no
/// record.
fn creates() -> BTreeSet<String> {
    let creates = |file: String| {
        let name = file.strip_suffix(".json").unwrap().to_owned();
        let event: Value = serde_json::from_str(&read(&format!("events/{file}"))).unwrap();
        let (method, path) = (event["httpMethod"].as_str()?, event["path"].as_str()?);
        let route = routes::find(method, path)?;
        let writes = route.access == Access::Write && method == "POST" && route.parameters().next().is_none();
        // A call with values of custom fields is not sent.
        let left_out = ["-7000-8000-", "\"custom_fields\":{\""];
        let body = event["body"].as_str().unwrap_or_default();
        let is_left_out = left_out.iter().any(|part| body.contains(part));
        let answer = read(&format!("local/tests/answers/{name}.txt"));
        // 409 is a conflict with a record of the demo set.
        let is_valid = ["200", "201", "409"].contains(&answer.lines().next()?);
        (writes && !is_left_out && is_valid).then_some(name)
    };
    let names: BTreeSet<_> = names_in("events").into_iter().filter_map(creates).collect();
    let creating = routes::ALL.iter().filter(|route| route.name.starts_with("create-")).map(|route| route.name);
    assert!(creating.filter(|name| names.contains(*name)).count() > 5, "{names:?}");
    names
}

/// The calls whose answers depend on the custom fields of the organisation, in their order.
const OF_CUSTOM_FIELDS: [&str; 4] = [
    "update-contact.custom-fields",
    "update-contact.wrong-custom-fields",
    "upsert-contact.custom-fields",
    "upsert-contact.wrong-custom-fields",
];

#[tokio::test]
async fn a_read_only_replay_reaches_every_function_without_a_change() {
    let stack = service(settings()).await;
    let before = everything(&stack).await;
    let report = run(&ReplayOptions { read_only: true, ..options(&stack, ACME) }, |_, _, _| ()).await.unwrap();
    assert!(report.holds(), "{report}");
    assert_eq!(report.not_reached(), [""; 0], "each function needs a recorded event that fails without a record");
    // One event has a second key, two make keys, the answer to one depends on the key, and the answers to four on the
    // organisation's custom fields. A deletion of many succeeds whatever it deletes.
    let more = [
        "create-assistant.read-only-key",
        "create-key",
        "create-key.with-scopes",
        "delete-contacts",
        "delete-contacts.unknown",
        "delete-conversations",
        "delete-conversations.open",
        "delete-forms",
        "delete-tags",
        "read-own-user",
    ];
    let left_out = creates().into_iter().chain(more.into_iter().chain(OF_CUSTOM_FIELDS).map(str::to_owned)).collect();
    assert_eq!(not_sent(&report).into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), left_out);
    assert_eq!(everything(&stack).await, before);
}

#[tokio::test]
async fn a_replay_against_an_empty_service_passes() {
    let stack = service(empty()).await;
    let key = new_key(&stack).await;
    let report = run(&options(&stack, &key), |_, _, _| ()).await.unwrap();
    assert!(report.holds(), "{report}");
    let wanted: Vec<_> =
        ["read-own-user", "create-assistant.read-only-key"].into_iter().chain(OF_CUSTOM_FIELDS).collect();
    assert_eq!(not_sent(&report), wanted);
    assert_eq!(report.not_reached(), [""; 0]);
}

#[tokio::test]
async fn a_replay_against_a_second_service_finds_a_difference() {
    let (stack, other) = (service(settings()).await, service(settings()).await);
    let against = |stack: &Stack| ReplayOptions { against: Some(other.url.clone()), ..options(stack, ACME) };
    let deletes = vec!["delete-".to_owned()];
    let report = run(&ReplayOptions { skip: deletes.clone(), ..against(&stack) }, |_, _, _| ()).await.unwrap();
    assert!(report.holds(), "{report}");
    assert!(report.left_out > 0 && report.rows.iter().all(|row| !row.name.starts_with("delete-")), "{report}");
    assert_eq!(not_sent(&report), [""; 0]);
    let report = run(&ReplayOptions { only: deletes, ..against(&stack) }, |_, _, _| ()).await.unwrap();
    assert!(report.holds(), "{report}");
    // The records are now deleted on both sides. A service that still has them answers differently.
    let fresh = service(settings()).await;
    let report =
        run(&ReplayOptions { only: vec!["delete-form".to_owned()], ..against(&fresh) }, |_, _, _| ()).await.unwrap();
    assert_eq!(failed(&report), ["delete-form"], "{report}");
}

#[tokio::test]
async fn a_replay_names_functions_that_cannot_write() {
    let faults = Faults::default();
    let stack = service(Settings { faults: faults.clone(), ..empty() }).await;
    let key = new_key(&stack).await;
    faults.plan(|action, _| if action == "UpdateItem" { Fault::ServerError } else { Fault::None });
    let report = run(&options(&stack, &key), |_, _, _| ()).await.unwrap();
    assert!(!report.holds(), "{report}");
    let failed = failed(&report);
    assert_eq!(failed.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), creates(), "{report}");
    let text = report.to_string();
    assert!(text.contains("503  201, DIFFERS") && text.contains(&format!("{} not", failed.len())), "{text}");
}

fn program(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_replay"));
    let Output { status, stdout, stderr } = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_replay_program_exits_with_its_verdict() {
    let stack = service(settings()).await;
    let call = async |key: &str| {
        let (url, key) = (stack.url.clone(), key.to_owned());
        tokio::task::spawn_blocking(move || program(&["--base-url", &url, "--api-key", &key, "--read-only"]))
            .await
            .unwrap()
    };
    let (code, stdout, stderr) = call(ACME).await;
    assert!(code == Some(0) && stderr.starts_with("1 of ") && !stderr.contains(ACME), "{code:?} {stdout} {stderr}");
    assert!(stdout.ends_with("\nThe service answers as it should.\n"), "{stdout}");
    assert!(!stdout.contains(ACME), "the output shows the key");
    let unknown = format!("in-{}", "x".repeat(43));
    let (code, stdout, stderr) = call(&unknown).await;
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("refuses the key (401)") && !stderr.contains(&unknown), "{stderr}");
    let (code, _, stderr) = call(ACME_READ_ONLY).await;
    assert_eq!(code, Some(2));
    assert!(stderr.contains("do everything (403)"), "{stderr}");
    stack.stop().await;
    let (code, _, stderr) = program(&["--base-url", "http://127.0.0.1:1", "--api-key", ACME]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("http://127.0.0.1:1/api/v1/api_key") && !stderr.contains(ACME), "{stderr}");
}
