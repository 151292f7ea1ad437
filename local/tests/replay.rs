//! Tests of the program `replay` against local stacks: it passes on a sound service and names each failed call.

use std::process::{Command, Output, Stdio};

use local::faults::{Fault, Faults};
use local::replay::report::{Outcome, ReplayReport};
use local::replay::{ReplayOptions, run};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::values::id::Ids;
use shared::values::time::Clock;

use crate::support::fixture::{ACME, ACME_READ_ONLY, empty, everything, root, settings};

/// A service with the machine's clock and random ids, like a deployed one.
async fn service(settings: Settings) -> Stack {
    Stack::start(Settings { clock: Clock::System, ids: Ids::Random, ..settings }).await.unwrap()
}

fn options(stack: &Stack, key: &str) -> ReplayOptions {
    ReplayOptions { root: root(), base_url: stack.url.clone(), api_key: key.to_owned(), ..ReplayOptions::default() }
}

/// A full key of a new organisation of `stack`.
async fn new_key(stack: &Stack) -> String {
    let answer = stack.gateway.invoke_by_name("issue-api-key", json!({"name": "First"}).to_string().as_bytes()).await;
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

#[tokio::test]
async fn a_read_only_replay_reaches_every_function_without_a_change() {
    let stack = service(settings()).await;
    let before = everything(&stack).await;
    let report = run(&ReplayOptions { read_only: true, ..options(&stack, ACME) }, |_, _, _| ()).await.unwrap();
    assert!(report.holds(), "{report}");
    assert_eq!(report.not_reached(), [""; 0], "each function needs a recorded event that fails without a record");
    let left_out = [
        "create-agency",
        "create-assistant",
        "create-assistant.read-only-key",
        "create-campaign.once",
        "create-datasource",
        "create-form",
        "create-intent",
        "create-tag",
        "create-user",
        "create-user.taken",
        "create-webhook",
        "import-contacts",
        "upsert-contact",
        "upsert-contact.existing",
        "upsert-contact.of-two-contacts",
        "upsert-contact.query",
    ];
    assert_eq!(not_sent(&report), left_out);
    assert_eq!(everything(&stack).await, before);
}

#[tokio::test]
async fn a_replay_against_an_empty_service_passes() {
    let stack = service(empty()).await;
    let key = new_key(&stack).await;
    let report = run(&options(&stack, &key), |_, _, _| ()).await.unwrap();
    assert!(report.holds(), "{report}");
    assert_eq!(not_sent(&report), ["create-assistant.read-only-key"]);
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
    for created in ["create-agency", "create-assistant", "create-webhook"] {
        assert!(failed.contains(&created), "{created}: {report}");
    }
    let updates = |call: &&str| {
        let creates = ["create-", "upsert-", "import-"].iter().any(|begin| call.starts_with(begin));
        creates || call == &"open-conversation"
    };
    assert!(failed.iter().all(updates), "{report}");
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
    assert!(stderr.contains("nothing but read (403)"), "{stderr}");
    stack.stop().await;
    let (code, _, stderr) = program(&["--base-url", "http://127.0.0.1:1", "--api-key", ACME]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("http://127.0.0.1:1/api/v1/assistant") && !stderr.contains(ACME), "{stderr}");
}
