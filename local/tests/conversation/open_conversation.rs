//! `POST /api/v1/conversation`: opens a conversation with an assistant.

use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, data, get, id, kind, member, post, stack};
use crate::support::records::{
    FRESH, NO_UUID, NOBODYS, TEST_TIME, changes, detail, head, issue, items, key, nothing, row, stored, wrong,
};

fn assistant() -> String {
    id('a', kind::ASSISTANT, 1)
}

async fn open(stack: &Stack, body: impl ToString) -> Answer {
    stack.answer(&post("/api/v1/conversation", ACME, body.to_string())).await
}

/// The id of the first new conversation; the demo set has two.
fn first_id() -> String {
    format!("{}00000002", &FRESH[0][..28])
}

/// The conversation that a body with only an assistant makes.
fn defaults() -> Value {
    json!({
        "id": first_id(),
        "status": "open",
        "chat_count": 0,
        "closed_at": null,
        "close_reason": null,
        "created_at": TEST_TIME,
        "updated_at": TEST_TIME,
        "assistant_id": assistant(),
        "widget_id": null,
        "contact_id": null,
        "device_type": null,
        "attributes": {},
        "summary": null,
        "rating": null,
        "outcome": null,
        "result": null,
        "includes_voice": false,
    })
}

/// A body with every field.
fn full_body() -> Value {
    json!({
        "assistant_id": assistant(),
        "widget_id": id('a', kind::WIDGET, 3),
        "contact_id": id('a', kind::CONTACT, 24),
        "device_type": "tablet",
        "attributes": {"": [1, {"deep": null}]},
    })
}

#[tokio::test]
async fn stores_every_field_and_pointer_and_defaults_null_fields() {
    let nulls = json!({"widget_id": null, "contact_id": null, "device_type": null, "attributes": null});
    let mut said = defaults();
    said.as_object_mut().unwrap().extend(full_body().as_object().unwrap().clone());
    for (mut body, wanted) in [
        (json!({}), defaults()),
        (nulls, defaults()),
        (json!({"id": NOBODYS, "status": "closed", "chat_count": 7}), defaults()),
        (full_body(), said),
    ] {
        body["assistant_id"] = assistant().into();
        let stack = stack().await;
        let before = items(&stack).await;
        let answer = open(&stack, &body).await;
        assert_eq!(data(&answer), wanted, "{body}");
        let row = row("CONVERSATION", 2);
        let mut new = head("CONVERSATION", 3);
        let mut item = stored(&wanted, &["attributes"], &row);
        item["text_bytes"] = 0.into();
        new.insert(row, item);
        if wanted != defaults() {
            let (widget, contact) = (id('a', kind::WIDGET, 3), id('a', kind::CONTACT, 24));
            let thread = key(&format!("THREAD#{widget}#{contact}"), &first_id());
            new.insert(thread.clone(), json!({"pk": thread.0, "sk": thread.1, "id": first_id()}));
        }
        assert_eq!(changes(&stack, &before).await, (head("CONVERSATION", 2), new), "{body}");
    }
}

#[tokio::test]
async fn stores_any_device_type_as_sent() {
    let stack = stack().await;
    for device in ["mobile", "native", "desktop", "tablet", "phone", "Smart-TV", ""] {
        let opened = open(&stack, json!({"assistant_id": assistant(), "device_type": device})).await;
        assert_eq!(data(&opened)["device_type"], device);
    }
}

#[tokio::test]
async fn answers_attributes_as_written() {
    let stack = stack().await;
    let attributes = r#"{ "" : 1e0, "big": 123456789012345678901234567890, "half": "\ud800", "twice": 1, "twice": 2 }"#;
    let body = format!(r#"{{"assistant_id":"{}","attributes":{attributes}}}"#, assistant());
    let opened = open(&stack, body).await;
    let path = format!("/api/v1/conversation/{}", first_id());
    let read = stack.answer(&call("GET", &path, ACME)).await;
    let listed = stack.answer(&call("GET", "/api/v1/conversation", ACME)).await;
    for answer in [opened, read] {
        assert_eq!(member(&member(&answer.body, "data"), "attributes"), attributes);
    }
    assert!(listed.body.contains(attributes), "{}", listed.body);
}

#[tokio::test]
async fn refuses_an_unknown_assistant_widget_or_contact() {
    let stack = stack().await;
    let before = items(&stack).await;
    for field in ["assistant_id", "widget_id", "contact_id"] {
        // This id belongs to a tag.
        let mut body = full_body();
        body[field] = id('a', kind::TAG, 1).into();
        assert_eq!(detail(&open(&stack, &body).await), wrong(field, "not_found", "Not found"), "{body}");
    }
    // Of several unknown records, the answer names the first.
    let none = json!({"assistant_id": NOBODYS, "widget_id": NOBODYS, "contact_id": NOBODYS});
    assert_eq!(detail(&open(&stack, &none).await), wrong("assistant_id", "not_found", "Not found"));
    assert_eq!(changes(&stack, &before).await, nothing());
}

#[tokio::test]
async fn lists_every_issue_before_it_reads_records() {
    let stack = stack().await;
    let required = wrong("assistant_id", "missing", "Field required");
    assert_eq!(detail(&open(&stack, json!({})).await), required);
    let not_text = "UUID input should be a string, bytes or UUID object";
    let wanted = json!([
        issue(&json!(["body", "assistant_id"]), "uuid_type", not_text),
        issue(&json!(["body", "widget_id"]), "uuid_parsing", NO_UUID),
        issue(&json!(["body", "contact_id"]), "uuid_type", not_text),
        issue(&json!(["body", "device_type"]), "string_type", "Input should be a valid string"),
        issue(&json!(["body", "attributes"]), "dict_type", "Input should be a valid dictionary"),
    ]);
    let body = json!({"attributes": [], "device_type": 1, "contact_id": 7, "widget_id": "x", "assistant_id": null});
    assert_eq!(detail(&open(&stack, body).await), (422, wanted));
    let wanted = wrong("device_type", "string_type", "Input should be a valid string");
    assert_eq!(detail(&open(&stack, json!({"assistant_id": NOBODYS, "device_type": 1})).await), wanted);
}

#[tokio::test]
async fn concurrent_conversations_get_distinct_places() {
    let stack = stack().await;
    let body = json!({"assistant_id": assistant()});
    let answers = futures_util::future::join_all((0..12).map(|_| open(&stack, &body))).await;
    let mut ids: Vec<Value> = answers.iter().map(|answer| data(answer)["id"].clone()).collect();
    let place = |id: &Value| id.as_str().unwrap()[28..].to_owned();
    ids.sort_by_key(place);
    assert_eq!(ids.iter().map(place).collect::<Vec<_>>(), (2..14).map(|n| format!("{n:08x}")).collect::<Vec<_>>());
    let page = get(&stack, "/api/v1/conversation").await;
    let listed: Vec<Value> = page["items"].as_array().unwrap()[2..].iter().map(|row| row["id"].clone()).collect();
    assert_eq!(listed, ids);
}
