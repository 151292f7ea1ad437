//! Records an event of every type to which a webhook can subscribe, as its endpoint receives it: the examples of the
//! events in `openapi.json`.

use std::collections::BTreeMap;

use local::Settings;
use local::openapi::EVENTS;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::event::{EventId, EventKind};
use shared::records::export::{Export, ExportProgress};
use shared::routes;
use shared::values::id::ExportId;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::fixture::{ACME, NOW, acme, id, kind, streaming, tenant, valid_call};
use crate::support::generated::{generated, generated_between};
use crate::support::sending::{Org, Setup, id_of};

/// A part of each secret that the records of this test have.
const SECRETS: [&str; 6] = ["whsec_", "sk_demo", "token=", "in-demo", "sealed", "secrets"];

/// The demo set, with a webhook for every event at `/all`.
async fn listening() -> (Setup, Org) {
    let setup = Setup::with(|settings| Settings { data: streaming().data, ..settings }).await;
    let org = Org { id: tenant().org(), key: ACME.to_owned(), table: acme(&setup.stack) };
    let all = json!({"endpoint": format!("{}/all?token=1", setup.receiver.url), "events": ["*"]});
    setup.post(&org, "/api/v1/outbound_webhook", all).await;
    setup.settle().await;
    (setup, org)
}

/// Calls every operation that writes: what it makes before what it changes, and what it removes at last.
async fn write_everything(setup: &Setup) {
    let all = routes::SIGNED.iter().chain(routes::ALL).filter(|route| route.method != "GET");
    // The keys are those of the test.
    let mut all: Vec<_> = all.filter(|route| !route.path.starts_with("/api/v1/api_key")).collect();
    all.sort_by_key(|route| ["POST", "PUT", "DELETE"].iter().position(|method| *method == route.method));
    for route in all {
        setup.stack.answer(&valid_call(route, 'a', ACME)).await;
        setup.settle().await;
        // The tick sends the event for a change of an open conversation.
        if route.name == routes::ADD_MESSAGE.name {
            setup.minutes(2).await;
        }
    }
}

/// Sends a campaign to a contact, from its start to its end, and deletes it.
async fn send_campaign(setup: &Setup, org: &Org) {
    let connector = format!("{}/connector?token=1", setup.receiver.url);
    let assistant = id('a', kind::ASSISTANT, 1);
    let widget = json!({"widget_type": "whatsapp", "connector_url": connector, "assistant_id": assistant});
    let widget = setup.post(org, "/api/v1/widget", widget).await;
    let body = json!({"contact_ids": [id('a', kind::CONTACT, 0)], "message": "We open an hour earlier this week."});
    let campaign = setup.post(org, &format!("/api/v1/messaging/{}/contacts", id_of(&widget)), body).await;
    setup.settle().await;
    setup.minutes(3).await;
    let path = format!("/api/v1/campaign/{}", campaign["campaign_id"].as_str().unwrap());
    let deleted = setup.ask(org, "DELETE", &path, &Value::Null).await;
    assert_eq!(deleted.status, 200, "{}", deleted.body);
}

/// Makes a webhook whose server wants no event any more.
async fn lose_a_webhook(setup: &Setup, org: &Org) {
    setup.receiver.behave("/gone", Behaviour::Answer(410));
    let gone = json!({"endpoint": format!("{}/gone?token=1", setup.receiver.url), "events": ["tag.created"]});
    setup.post(org, "/api/v1/outbound_webhook", gone).await;
    setup.settle().await;
    setup.post(org, "/api/v1/tag", json!({"name": "VIP"})).await;
    setup.settle().await;
}

/// The last event of each type.
fn last_of_each(setup: &Setup) -> BTreeMap<String, Value> {
    // The receiver has another port in each run.
    let text = |body: &[u8]| String::from_utf8_lossy(body).replace(&setup.receiver.url, "https://example.com");
    let all = setup.receiver.received("/all");
    let mut received: Vec<Value> = all.iter().map(|one| serde_json::from_str(&text(&one.body)).unwrap()).collect();
    for event in &mut received {
        // The id depends on the order in which the functions on the stream write, and the time of a change that the
        // record does not show is the real one.
        let kind = EventKind::from_word(event["event"].as_str().unwrap()).unwrap();
        event["id"] = json!(EventId::of_change(kind, Uuid::nil(), ""));
        if kind.as_str().ends_with(".deleted") || event["data"]["updated_at"].as_str().is_none() {
            event["created_at"] = json!(Timestamp::from_unix_millis(NOW));
        }
    }
    let text = |value: &Value| value.to_string();
    received.sort_by_key(|event| (text(&event["created_at"]), text(&event["data"]), text(&event["sequence"])));
    received.into_iter().map(|event| (event["event"].as_str().unwrap().to_owned(), event)).collect()
}

/// Lets an export be given up, and lets another one expire.
async fn end_exports(setup: &Setup, org: &Org) {
    let made = setup.post(org, "/api/v1/export", json!({"records": ["tag"]})).await;
    let id = ExportId(id_of(&made).parse().unwrap());
    let export: Export = org.table.get(id).await.unwrap();
    let progress = ExportProgress { tries: 10, ..ExportProgress::default() };
    org.table.replace(id, &export, Export { progress, ..export.clone() }).await.unwrap().unwrap();
    setup.minutes(2).await;
    let export: Export = org.table.get(id).await.unwrap();
    let due_at = Some(setup.clock.now());
    org.table.replace(id, &export, Export { due_at, ..export.clone() }).await.unwrap().unwrap();
    setup.minutes(2).await;
}

#[tokio::test]
async fn an_event_of_every_emitted_type_is_recorded() {
    let (setup, org) = listening().await;
    send_campaign(&setup, &org).await;
    lose_a_webhook(&setup, &org).await;
    write_everything(&setup).await;
    setup.minutes(2).await;
    end_exports(&setup, &org).await;
    let last = last_of_each(&setup);
    let emitted: Vec<&str> = EventKind::emitted().map(EventKind::as_str).collect();
    let missing: Vec<_> = emitted.iter().filter(|kind| !last.contains_key(**kind)).collect();
    assert!(missing.is_empty(), "no event of {missing:?}");
    for (name, event) in last {
        let text = event.to_string();
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
        let kind = EventKind::from_word(&name).unwrap();
        // Another test records it, as the webhook of an assistant gets it.
        if kind == EventKind::CONVERSATION_CLOSED {
            continue;
        }
        generated(&format!("{EVENTS}/{name}.json"), &(serde_json::to_string_pretty(&event).unwrap() + "\n"));
    }
}

#[test]
fn the_page_of_events_lists_every_type() {
    let mut rows = BTreeMap::<_, Vec<String>>::new();
    for kind in EventKind::emitted() {
        rows.entry(kind.subject()).or_default().push(format!("`{kind}`"));
    }
    let rows = rows.into_iter().map(|(subject, types)| format!("| {subject} | {} |\n", types.join(", ")));
    let table = format!("| About | Types |\n| --- | --- |\n{}", rows.collect::<String>());
    generated_between("docs/WEBHOOKS.md", ("<!-- types -->\n", "\n<!-- /types -->"), &table);
}

/// A change shows the former value, which may be a secret too.
#[tokio::test]
async fn no_event_has_a_secret() {
    let (setup, org) = listening().await;
    let path = "/api/v1/outbound_webhook";
    let address = |token: &str| format!("{}/other?token={token}", setup.receiver.url);
    let webhook = setup.post(&org, path, json!({"endpoint": address("first"), "events": ["user.created"]})).await;
    let widget = setup.post(&org, "/api/v1/widget", json!({"widget_type": "chat"})).await;
    let agency = setup.post(&org, "/api/v1/agency", json!({"billing_plan": {"payment_api_key": "sk_demo_1"}})).await;
    for (path, body) in [
        (format!("{path}/{}", id_of(&webhook)), json!({"endpoint": address("second"), "name": "Events"})),
        (format!("/api/v1/widget/{}", id_of(&widget)), json!({"connector_url": address("third"), "name": "Shop"})),
        (format!("/api/v1/widget/{}", id_of(&widget)), json!({"connector_url": address("fourth"), "name": "Store"})),
        (format!("/api/v1/agency/{}", id_of(&agency)), json!({"billing_plan": {"payment_api_key": "sk_demo_2"}})),
    ] {
        let answer = setup.ask(&org, "PUT", &path, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        setup.settle().await;
    }
    for path in [format!("{path}/{}", id_of(&webhook)), format!("/api/v1/widget/{}", id_of(&widget))] {
        setup.post(&org, &format!("{path}/rotate_secret"), Value::Null).await;
        setup.ask(&org, "DELETE", &path, &Value::Null).await;
    }
    setup.settle().await;
    let received = setup.receiver.received("/all");
    let texts: Vec<_> = received.iter().map(|one| String::from_utf8_lossy(&one.body).into_owned()).collect();
    assert!(texts.len() >= 9, "{}", texts.len());
    for text in texts {
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
    }
}
