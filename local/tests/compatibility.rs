//! Published clients: what each of them requests, and whether its types read the answers. `docs/COMPATIBILITY.md` follows from it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use local::http::{Answer, Call};
use local::{Settings, Stack};
use repository::read;
use serde_json::{Value, json};
use shared::routes;
use shared::values::time::{Clock, Timestamp};

use crate::support::fixture::{ACME, NOW, demo_id, failure, filled, json, streaming};
use crate::support::generated::generated_between;
use crate::support::records::make_key;
use crate::support::sending::{Setup, id_of};

const FOLDER: &str = "local/tests/compatibility";
const MARKS: (&str, &str) = ("<!-- Generated: requests and events. -->", "<!-- End of the generated part. -->");

fn fixture(name: &str) -> Value {
    serde_json::from_str(&read(&format!("{FOLDER}/{name}.json"))).unwrap()
}

/// The schema `schema`, which may name the types of the clients.
fn with_types(mut schema: Value) -> Value {
    schema["$defs"] = fixture("types");
    schema
}

/// The schema of an answer's `data` for a row of the table.
fn wanted(row: &Value) -> Option<Value> {
    let of = |name: &Value| json!({"$ref": format!("#/$defs/{}", name.as_str().unwrap())});
    let each = |name: &Value| {
        let items = json!({"type": "array", "minItems": 1, "items": of(name)});
        json!({"type": "object", "required": ["items"], "properties": {"items": items}})
    };
    row.get("data").map(of).or_else(|| row.get("each").map(each)).map(with_types)
}

/// The request of `row` about the demo set's records, with `key` in the way of its client.
fn request(row: &Value, key: &str) -> Call {
    let (method, address) = row["request"].as_str().unwrap().split_once(' ').unwrap();
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let path = filled(path, |parameter| match parameter {
        // The campaign that waits for its time.
        "campaign_id" => "01900000-0000-7000-8000-a01500000002".to_owned(),
        parameter => demo_id('a', parameter),
    });
    let body = row.get("body").map(Value::to_string).unwrap_or_default();
    let in_header = row["client"] != "Activepieces";
    let query = if in_header { query.to_owned() } else { format!("{query}&api_key={key}") };
    let headers: BTreeMap<_, _> =
        in_header.then(|| ("authorization".to_owned(), format!("Bearer {key}"))).into_iter().collect();
    Call { method: method.to_owned(), path, query, headers, body: body.into() }
}

fn problem(row: &Value, answer: &Answer) -> Option<String> {
    let asked = format!("{} {}", row["client"], row["request"]);
    if row["status"] != answer.status {
        return Some(format!("{asked}: {} {:?}", answer.status, failure(answer)));
    }
    let body = json(answer);
    let validator = jsonschema::options().should_validate_formats(true).build(&wanted(row)?).unwrap();
    let wrong: Vec<_> = validator.iter_errors(&body["data"]).map(|error| error.to_string()).collect();
    (!wrong.is_empty()).then(|| format!("{asked}: {wrong:?}"))
}

#[tokio::test]
async fn each_request_of_a_published_client_is_answered_as_the_page_says() {
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    // The document describes answers with their nulls.
    let stack = Stack::start(Settings { clock, look: None, ..streaming() }).await.unwrap();
    let (key, _) = make_key(&stack, ACME, &json!({"name": "Client", "role": "admin", "omit_nulls": true})).await;
    let mut wrong = Vec::new();
    for row in fixture("requests").as_array().unwrap() {
        let answer = stack.answer(&request(row, &key)).await;
        wrong.extend(problem(row, &answer));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_event_of_a_published_client_has_its_type_or_a_difference() {
    for row in fixture("events").as_array().unwrap() {
        assert!(row["difference"].is_string(), "{row}");
        let Some(sent) = row["sent"].as_str() else { continue };
        let event: Value = serde_json::from_str(&read(&format!("local/tests/received/{sent}.json"))).unwrap();
        let schema = with_types(json!({"$ref": format!("#/$defs/{}", row["type"].as_str().unwrap())}));
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let wrong: Vec<_> = validator.iter_errors(&event).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{sent}: {wrong:?}");
    }
}

/// The client registers a webhook with these three fields, and then waits.
#[tokio::test]
async fn a_webhook_of_a_published_client_gets_what_it_waits_for() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let endpoint = format!("{}/client", setup.receiver.url);
    let fields = json!({"endpoint": endpoint, "name": "Client", "enabled": true});
    setup.post(&org, "/api/v1/outbound_webhook", fields).await;
    let assistant = setup.post(&org, "/api/v1/assistant", json!({})).await;
    let widget = json!({"name": "Shop", "widget_type": "chat", "assistant_id": assistant["id"]});
    let widget = setup.post(&org, "/api/v1/widget", widget).await;
    let contact = setup.post(&org, "/api/v1/contact/upsert", json!({"email": "ada@example.com"})).await;
    let between = json!({"assistant_id": assistant["id"], "widget_id": widget["id"], "contact_id": contact["id"], "device_type": "web"});
    let opened = setup.post(&org, "/api/v1/conversation", between).await;
    let said = format!("/api/v1/conversation/{}/message", id_of(&opened));
    setup.post(&org, &said, json!({"sender_type": "user", "text": "Hello"})).await;
    let form = json!({"name": "Appointment", "form_type": "simple", "fields": [{"name": "when", "type": "date"}]});
    let form = setup.post(&org, "/api/v1/form", form).await;
    let filled = json!({"form_id": form["id"], "field_values": {"when": "2030-01-31"}});
    setup.post(&org, &format!("/api/v1/conversation/{}/captured_form", id_of(&opened)), filled).await;
    setup.settle().await;
    setup.minutes(2).await;
    setup.close(&org, &opened).await;
    setup.settle().await;
    let received = setup.receiver.received("/client");
    let bodies: Vec<Value> = received.iter().map(|one| serde_json::from_slice(&one.body).unwrap()).collect();
    let of_type = [
        ("conversation.updated", "ConversationEvent"),
        ("conversation.closed", "ConversationEvent"),
        ("captured_form.created", "CapturedFormEvent"),
    ];
    for (name, its_type) in of_type {
        let schema = with_types(json!({"$ref": format!("#/$defs/{its_type}")}));
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let [event] = &bodies.iter().filter(|event| event["event"] == name).collect::<Vec<_>>()[..] else {
            panic!("{name}: {bodies:?}")
        };
        let wrong: Vec<_> = validator.iter_errors(event).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}

#[test]
fn each_answer_that_is_no_success_has_a_difference() {
    for row in fixture("requests").as_array().unwrap() {
        let refused = row["status"].as_u64().unwrap() >= 400;
        assert!(!refused || row["difference"].is_string(), "{row}");
    }
}

#[test]
fn the_page_of_the_clients_is_up_to_date() {
    let cell = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().replace('|', "\\|");
    let mut page =
        String::from("\n| Client | Does | Request | Answered | Difference |\n| --- | --- | --- | --- | --- |\n");
    for row in fixture("requests").as_array().unwrap() {
        let asked = row["request"].as_str().unwrap().split('?').next().unwrap();
        let (method, path) = asked.split_once(' ').unwrap();
        let operation = routes::find(method, path).map(|route| format!("`{}`, ", route.name)).unwrap_or_default();
        // A literal id of the demo set says no more than its kind.
        let asked =
            asked.split('/').map(|part| if part.len() == 36 { "{id}" } else { part }).collect::<Vec<_>>().join("/");
        let answered = format!("{operation}{}", row["status"]);
        writeln!(
            page,
            "| {} | {} | `{asked}` | {answered} | {} |",
            cell(row, "client"),
            cell(row, "does"),
            cell(row, "difference")
        )
        .unwrap();
    }
    page.push_str("\n| Client | Event | Difference |\n| --- | --- | --- |\n");
    for row in fixture("events").as_array().unwrap() {
        writeln!(page, "| {} | `{}` | {} |", cell(row, "client"), cell(row, "event"), cell(row, "difference")).unwrap();
    }
    page.push('\n');
    generated_between("docs/COMPATIBILITY.md", MARKS, &page);
}
