//! `POST /api/v1/conversation/{conversation_id}/close`: closes a conversation once, and its webhook gets an event.

use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, data, get, id, kind, post, stack, streaming};
use crate::support::records::{
    DEMO_TIME, FRESH, Items, TEST_TIME, changes, conflict, detail, issue, items, key, nothing, row, stored,
};
use crate::support::sender::event;
use crate::support::sending::{Setup, id_of};

/// The demo set's open conversation.
const OPEN: u32 = 1;

async fn close(stack: &Stack, id: &str) -> Answer {
    stack.answer(&post(&format!("/api/v1/conversation/{id}/close"), ACME, "")).await
}

fn open_id() -> String {
    id('a', kind::CONVERSATION, OPEN)
}

fn already_closed() -> (u16, Value) {
    conflict("conversation_id", "conversation_closed", "The conversation is closed")
}

#[tokio::test]
async fn closes_the_conversation_and_changes_one_item() {
    let stack = stack().await;
    let before = items(&stack).await;
    let (assistant, contact) = (id('a', kind::ASSISTANT, 1), id('a', kind::CONTACT, 1));
    let widget = id('a', kind::WIDGET, 1);
    let closed = json!({
        "id": open_id(),
        "status": "closed",
        "chat_count": 1,
        "closed_at": TEST_TIME,
        "close_reason": null,
        "created_at": DEMO_TIME,
        "updated_at": TEST_TIME,
        "assistant_id": assistant,
        "widget_id": widget,
        "contact_id": contact,
        "device_type": "mobile",
        "attributes": {},
        "summary": null,
        "rating": null,
        "outcome": null,
        "result": null,
        "includes_voice": false,
    });
    let answer = close(&stack, &open_id()).await;
    assert_eq!(data(&answer), closed);

    let row = row("CONVERSATION", OPEN);
    // The row keeps the id of the request, so that a repeat of it gets the first answer.
    let mut item = stored(&closed, &["attributes"], &row);
    (item["changed_by"], item["version"]) = (FRESH[0].into(), 2.into());
    for hidden in ["text_bytes", "last_sender"] {
        item[hidden] = before[&row][hidden].clone();
    }
    let new = Items::from([(row.clone(), item)]);
    let gone = Items::from([(row.clone(), before[&row].clone())]);
    assert_eq!(changes(&stack, &before).await, (gone, new));
}

#[tokio::test]
async fn the_stream_deletes_the_pointer_to_a_closed_conversation() {
    let stack = Stack::start(streaming()).await.unwrap();
    let (widget, contact) = (id('a', kind::WIDGET, 1), id('a', kind::CONTACT, 1));
    let thread = key(&format!("THREAD#{widget}#{contact}"), &open_id());
    assert!(items(&stack).await.contains_key(&thread));
    close(&stack, &open_id()).await;
    stack.settle().await.unwrap();
    assert!(!items(&stack).await.contains_key(&thread));
}

#[tokio::test]
async fn one_of_several_requests_closes_and_the_others_get_409() {
    let stack = Stack::start(streaming()).await.unwrap();
    let id = open_id();
    let answers = futures_util::future::join_all((0..10).map(|_| close(&stack, &id))).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((won.len(), lost.len()), (1, 9));
    assert!(lost.iter().all(|answer| detail(answer) == already_closed()));
    stack.settle().await.unwrap();
    assert_eq!(get(&stack, "/api/v1/conversation?status=closed").await["total"], 2);
    let before = items(&stack).await;
    assert_eq!(detail(&close(&stack, &id).await), already_closed());
    assert_eq!(changes(&stack, &before).await, nothing());
}

#[tokio::test]
async fn a_message_during_the_close_is_stored_or_refused() {
    let stack = stack().await;
    let id = open_id();
    let path = format!("/api/v1/conversation/{id}/message");
    let says = post(&path, ACME, r#"{"sender_type":"user","text":"Wait!"}"#);
    let messages = futures_util::future::join_all((0..12).map(|_| stack.answer(&says)));
    let closing = futures_util::future::join_all((0..4).map(|_| close(&stack, &id)));
    let (said, closed) = tokio::join!(messages, closing);
    let accepted = said.iter().filter(|answer| answer.status == 201).count();
    assert!(said.iter().filter(|answer| answer.status != 201).all(|answer| detail(answer) == already_closed()));
    let closed: Vec<_> = closed.iter().filter(|answer| answer.status == 200).map(data).collect();
    assert_eq!(closed.len(), 1);
    // The answer counts every stored message.
    assert_eq!(closed[0]["chat_count"], accepted + 1);
    let path = format!("/api/v1/conversation/{id}");
    let read = get(&stack, &path).await;
    assert_eq!((&read["chat_count"], &read["transcript"]["total"]), (&json!(accepted + 1), &json!(accepted + 1)));
    assert_eq!(read["transcript"]["items"].as_array().unwrap().len(), accepted + 1);
}

/// Sends `reason` as the reason of the close.
async fn close_for(stack: &Stack, reason: &Value) -> Answer {
    let body = json!({"reason": reason}).to_string();
    stack.answer(&post(&format!("/api/v1/conversation/{}/close", open_id()), ACME, body)).await
}

#[tokio::test]
async fn keeps_the_first_reason_and_refuses_a_long_one() {
    let stack = stack().await;
    let too_long = close_for(&stack, &json!("é".repeat(201))).await;
    let msg = "String should have at most 200 characters";
    assert_eq!(detail(&too_long), (422, json!([issue(&json!(["body", "reason"]), "string_too_long", msg)])));
    let longest = json!("é".repeat(200));
    assert_eq!(data(&close_for(&stack, &longest).await)["close_reason"], longest);
    assert_eq!(detail(&close_for(&stack, &json!("another")).await), already_closed());
    assert_eq!(get(&stack, &format!("/api/v1/conversation/{}", open_id())).await["close_reason"], longest);
}

#[tokio::test]
async fn the_event_has_the_reason_the_answered_messages_and_their_sources() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/hook").await;
    let assistant = setup.assistant(&org, &webhook).await;
    let source = setup.post(&org, "/api/v1/datasource", json!({"name": "Hours", "ds_type": "pdf"})).await;
    for body in [json!({"reason": "solved"}), json!({"reason": null}), json!({})] {
        let opened = setup.open(&org, &assistant).await;
        let path = format!("/api/v1/conversation/{}", id_of(&opened));
        let asked = json!({"sender_type": "user", "text": "Until when are you open?"});
        let asked = setup.post(&org, &format!("{path}/message"), asked).await;
        let answer = json!({
            "sender_type": "bot", "text": "9 to 5", "in_reply_to": asked["id"], "data_source_ids": [source["id"]],
        });
        let answer = setup.post(&org, &format!("{path}/message"), answer).await;
        let closed = setup.post(&org, &format!("{path}/close"), body.clone()).await;
        setup.settle().await;
        let received = event(setup.receiver.received("/hook").last().unwrap());
        let reason = body.get("reason").unwrap_or(&Value::Null);
        assert_eq!((&received["data"]["reason"], &closed["close_reason"]), (reason, reason));
        let said = received["data"]["transcript"].as_array().unwrap();
        assert_eq!((&said[0]["in_reply_to"], &said[0]["data_sources"]), (&Value::Null, &json!([])));
        assert_eq!((&said[1]["id"], &said[1]["in_reply_to"]), (&answer["id"], &asked["id"]));
        assert_eq!(said[1]["data_sources"], json!([source["id"]]));
    }
}
