//! Every event in `events/`, replayed: the answers stand in `answers/`. `UPDATE=1 cargo test` records both anew.

use std::collections::BTreeSet;

use local::gateway::{Call, endpoint};
use local::{Settings, Stack};
use serde_json::Value;
use shared::routes;

use crate::contract::{generated, names_in, updating};
use crate::fixture::{ACME, ACME_READ_ONLY, call, id, kind, post, root, settings, stack, valid_call};

/// More events of a function, the failures worth keeping above all: `<function>.<case>`.
fn cases() -> Vec<(&'static str, Call)> {
    let widget = |number| format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, number));
    let agency = |number, rest: &str| format!("/api/v1/agency/billing/{}/{rest}", id('a', kind::AGENCY, number));
    let webhook = |number, rest: &str| format!("/api/v1/outbound_webhook/{}{rest}", id('a', kind::WEBHOOK, number));
    let conversation =
        |number, rest: &str| format!("/api/v1/conversation/{}{rest}", id('a', kind::CONVERSATION, number));
    let tag = |id: &str| format!("/api/v1/tag/{id}");
    let unknown = format!(r#"{{"contact_ids":["{}","{}"]}}"#, id('a', kind::CONTACT, 1), id('b', kind::CONTACT, 1));
    let silent = format!(r#"{{"contact_ids":["{}"]}}"#, id('a', kind::CONTACT, 1));
    vec![
        (
            "create-assistant.with-webhook",
            post("/api/v1/assistant", ACME, format!(r#"{{"webhook_id":"{}"}}"#, id('a', kind::WEBHOOK, 1))),
        ),
        (
            "create-assistant.invalid",
            post(
                "/api/v1/assistant",
                ACME,
                r#"{"voice":"maybe","voice_languages":["en-GB","english"],"assistant_type":"robot","webhook_id":"x"}"#,
            ),
        ),
        ("create-assistant.not-json", post("/api/v1/assistant", ACME, r#"{"name": "Reception",}"#)),
        ("create-assistant.read-only-key", post("/api/v1/assistant", ACME_READ_ONLY, "{}")),
        (
            "create-agency.other-organisation",
            post("/api/v1/agency", ACME, r#"{"org_id":"01900000-0000-7000-8000-b00000000001"}"#),
        ),
        (
            "create-agency-billing-plan.incomplete",
            post(&agency(1, "billing_plan"), ACME, r#"{"name":"Pro","bots_count":-1}"#),
        ),
        ("run-campaign.unknown-contact", post(&widget(1), ACME, unknown)),
        ("run-campaign.nothing-to-say", post(&widget(3), ACME, silent)),
        ("get-agent-list.no-key", Call { query: String::new(), ..call("GET", "/api/v1/user/get_agent_list/", "") }),
        (
            "get-agent-list.page-out-of-bounds",
            Call {
                query: format!("api_key={ACME}&page=0&size=101"),
                ..call("GET", "/api/v1/user/get_agent_list/", "")
            },
        ),
        (
            "create-webhook.not-public",
            post("/api/v1/outbound_webhook", ACME, r#"{"endpoint":"https://169.254.169.254/latest"}"#),
        ),
        ("send-test-event.disabled", post(&webhook(0, "/test"), ACME, "")),
        (
            "open-conversation.unknown-contact",
            post(
                "/api/v1/conversation",
                ACME,
                format!(
                    r#"{{"assistant_id":"{}","contact_id":"{}"}}"#,
                    id('a', kind::ASSISTANT, 1),
                    id('b', kind::CONTACT, 1)
                ),
            ),
        ),
        (
            "add-message.closed",
            post(&conversation(0, "/message"), ACME, r#"{"sender_type":"user","text":"One more thing"}"#),
        ),
        ("close-conversation.closed", post(&conversation(0, "/close"), ACME, "")),
        (
            "list-conversations.open-ones",
            Call { query: format!("api_key={ACME}&status=open"), ..call("GET", "/api/v1/conversation", "") },
        ),
        ("setup-payment-webhook.not-configured", call("GET", &agency(2, "setup_payment_webhook"), ACME)),
        ("delete-tag.not-found", call("DELETE", &tag(&id('b', kind::TAG, 1)), ACME)),
        ("delete-tag.not-a-uuid", call("DELETE", &tag("vip"), ACME)),
        ("delete-tag.bad-key", call("DELETE", &tag(&id('a', kind::TAG, 1)), "in-wrong")),
    ]
}

/// As `curl` would send it.
fn with_headers(call: Call) -> Call {
    let mut headers = vec![("accept", "*/*"), ("host", "localhost"), ("user-agent", "curl/8")];
    if !call.body.is_empty() {
        headers.push(("content-type", "application/json"));
    }
    Call { headers: headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect(), ..call }
}

async fn record() {
    let folder = root().join("target/recorded-events");
    // What an earlier run left there would not be replaced.
    let _ = std::fs::remove_dir_all(&folder);
    for (name, call) in routes::ALL.iter().map(|route| (route.name, valid_call(route, 'a', ACME))).chain(cases()) {
        let recording = Stack::start(Settings { record: Some(folder.clone()), ..settings() }).await.unwrap();
        recording.answer(&with_headers(call)).await;
        let function = name.split('.').next().unwrap();
        std::fs::rename(folder.join(format!("{function}.json")), root().join(format!("events/{name}.json"))).unwrap();
    }
}

#[tokio::test]
async fn every_event_answers_as_it_did() {
    if updating() {
        record().await;
    }
    let mut replayed = BTreeSet::new();
    let mut files: Vec<_> =
        std::fs::read_dir(root().join("events")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let function = name.split('.').next().unwrap();
        let event: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let endpoint = endpoint(function).unwrap_or_else(|| panic!("events/{name}.json is for no function"));
        let stack = stack().await;
        let answer = stack.gateway.invoke(endpoint, event).await;
        let headers: String = answer.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        // The local stack's own port is in the address that the payment provider is given.
        let body = answer.body.replace(&stack.url, "http://localhost");
        let body: Value = serde_json::from_str(&body).unwrap();
        let shown = format!("{}\n{headers}\n{}\n", answer.status, serde_json::to_string_pretty(&body).unwrap());
        generated(&format!("local/tests/answers/{name}.txt"), &shown);
        replayed.insert(name);
    }
    let wanted: BTreeSet<_> = routes::ALL
        .iter()
        .map(|route| route.name)
        .chain(cases().iter().map(|case| case.0))
        .map(str::to_owned)
        .collect();
    assert_eq!(replayed, wanted, "events/ does not hold what it should");
    let answers = names_in("local/tests/answers").into_iter().map(|file| file.trim_end_matches(".txt").to_owned());
    assert_eq!(answers.collect::<BTreeSet<_>>(), wanted, "local/tests/answers/ does not hold what it should");
}
