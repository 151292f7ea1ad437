//! `POST /api/v1/link_tag_entity`: links a tag to an entity once.

use futures_util::future::join_all;
use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, data, get, id, json, kind, post, stack};
use crate::support::records::{NOBODYS, TEST_TIME, changes, detail, issue, items, nothing, wrong};

async fn link(stack: &Stack, body: &Value) -> Answer {
    stack.answer(&post("/api/v1/link_tag_entity", ACME, body.to_string())).await
}

/// The body that links the newsletter tag to a widget.
fn body() -> Value {
    json!({"tag_id": id('a', kind::TAG, 2), "entity_type": "widget", "entity_id": id('a', kind::WIDGET, 1)})
}

async fn total(stack: &Stack) -> Value {
    get(stack, "/api/v1/link_tag_entity/list").await["total"].clone()
}

#[tokio::test]
async fn a_repeated_link_gets_the_first_answer() {
    let stack = stack().await;
    let first = link(&stack, &body()).await;
    let answered = data(&first);
    let mut wanted = body();
    for (name, value) in [("id", answered["id"].clone()), ("created_by_id", Value::Null)] {
        wanted[name] = value;
    }
    (wanted["created_at"], wanted["updated_at"]) = (TEST_TIME.into(), TEST_TIME.into());
    let envelope = json!({"message": "Data created successfully", "meta": {}, "data": wanted});
    assert_eq!((first.status, json(&first)), (201, envelope));
    let before = items(&stack).await;
    // The ids may have another form.
    let mut upper = body();
    for name in ["tag_id", "entity_id"] {
        upper[name] = format!("{{{}}}", upper[name].as_str().unwrap().to_uppercase()).into();
    }
    for same in [body(), upper] {
        let again = link(&stack, &same).await;
        assert_eq!((again.status, &again.body), (201, &first.body));
    }
    assert_eq!(changes(&stack, &before).await, nothing());
    assert_eq!(total(&stack).await, 251);
}

#[tokio::test]
async fn concurrent_requests_make_one_link() {
    let stack = stack().await;
    let body = body();
    let answers = join_all((0..8).map(|_| link(&stack, &body))).await;
    assert!(answers.iter().all(|answer| (answer.status, &answer.body) == (201, &answers[0].body)), "{answers:?}");
    assert_eq!(total(&stack).await, 251);
}

#[tokio::test]
async fn each_tag_and_entity_gets_its_own_link() {
    let stack = stack().await;
    let mut ids = Vec::new();
    for (tag, entity_type, entity) in [
        (2, "widget", id('a', kind::WIDGET, 1)),
        (1, "widget", id('a', kind::WIDGET, 1)),
        (2, "widget", id('a', kind::WIDGET, 2)),
        (2, "campaign", id('a', kind::CAMPAIGN, 0)),
    ] {
        let body = json!({"tag_id": id('a', kind::TAG, tag), "entity_type": entity_type, "entity_id": entity});
        ids.push(data(&link(&stack, &body).await)["id"].clone());
    }
    assert_eq!(total(&stack).await, 254);
    let path = format!("/api/v1/link_tag_entity/{}", ids[0].as_str().unwrap());
    assert_eq!(stack.answer(&call("DELETE", &path, ACME)).await.status, 200);
    assert_eq!(stack.answer(&call("DELETE", &path, ACME)).await.status, 404);
    assert_eq!(total(&stack).await, 253);
    let again = data(&link(&stack, &body()).await);
    assert!(!ids.contains(&again["id"]), "{again}");
    assert_eq!(total(&stack).await, 254);
}

#[tokio::test]
async fn refuses_an_unknown_tag_or_entity() {
    let stack = stack().await;
    let before = items(&stack).await;
    // The id of another kind of record, and texts that are no ids.
    let (contact, long) = (id('a', kind::CONTACT, 1), "é".repeat(8192));
    let entities = [NOBODYS, &contact, "widget-1", "", &long].map(|entity| ("entity_id", entity));
    for (field, value) in [("tag_id", NOBODYS)].into_iter().chain(entities) {
        let mut body = body();
        body[field] = value.into();
        assert_eq!(detail(&link(&stack, &body).await), wrong(field, "not_found", "Not found"), "{value}");
    }
    let missing = |name: &str| issue(&json!(["body", name]), "missing", "Field required");
    let wanted = json!([missing("entity_id"), missing("entity_type"), missing("tag_id")]);
    assert_eq!(detail(&link(&stack, &json!({})).await), (422, wanted));
    assert_eq!(changes(&stack, &before).await, nothing());
}
