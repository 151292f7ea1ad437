//! `POST /api/v1/call/{widget_id}`: calls a telephone number.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;

use crate::support::fixture::{ACME, data, id, kind, post, stack};
use crate::support::records::{TEST_TIME, changes, conflict, detail, items, nothing, wrong};
use crate::support::sender::{Sender, event};
use crate::support::sending::{Setup, events, is_signed_with};

const TO: &str = "+49 151 2345678";

/// An organisation without a contact, whose widget makes calls by its connector.
async fn caller() -> Sender {
    Sender::of(Setup::start().await, WidgetType::TelnyxCall, true, 0).await
}

fn path(caller: &Sender) -> String {
    format!("/api/v1/call/{}", caller.widget.id)
}

/// Starts a call with these variables, as they are written, and returns the answer.
async fn start(caller: &Sender, variables: &str) -> Value {
    let body = format!(r#"{{"to":"{TO}","prompt_dynamic_variables":{variables}}}"#);
    let answer = caller.setup.stack.answer(&post(&path(caller), &caller.org.key, body)).await;
    data(&answer)
}

#[tokio::test]
async fn each_attempt_sends_the_variables_as_written() {
    let caller = caller().await;
    caller.setup.receiver.behave("/connector", Behaviour::Recovering { failures: 2, then: 200 });
    let variables = r#"{ "name" : "Zoë", "": [1e0, null], "a": 1, "a": 2 }"#;
    let made = start(&caller, variables).await;
    caller.setup.settle().await;
    caller.setup.minutes(8).await;
    let received = caller.received();
    assert_eq!((received.len(), events(&received).len()), (3, 1));
    assert!(received.iter().all(|request| request.body == received[0].body));
    assert!(received.iter().all(|request| is_signed_with(request, &caller.webhook["secret"])));
    let text = String::from_utf8_lossy(&received[0].body);
    assert!(text.contains(&format!(r#""prompt_dynamic_variables":{variables}"#)), "{text}");
    let mut sent = event(&received[0]);
    assert_eq!((&sent["event"], &sent["id"]), (&json!("call.requested"), &made["event_id"]));
    assert_eq!(sent["created_at"], TEST_TIME);
    let data = sent["data"].as_object_mut().unwrap();
    data.remove("prompt_dynamic_variables").unwrap();
    assert_eq!(data.remove("contact").unwrap()["phone_number"], "+491512345678");
    let wanted = json!({
        "widget_id": caller.widget.id,
        "assistant_id": caller.assistant["id"],
        "conversation_id": made["conversation_id"],
        "contact_id": made["contact_id"],
        "to": "+491512345678",
        "message_id": null,
        "message": null,
    });
    assert_eq!((sent["data"].clone(), &made["message_id"]), (wanted, &Value::Null));
}

#[tokio::test]
async fn only_the_connector_gets_the_variables() {
    let caller = caller().await;
    let (setup, org) = (&caller.setup, &caller.org);
    let made = start(&caller, r#"{"pin":"unlikely-to-be-anywhere"}"#).await;
    let conversation = made["conversation_id"].as_str().unwrap();
    let mut answers = Vec::new();
    for path in [
        "/api/v1/conversation".to_owned(),
        format!("/api/v1/conversation/{conversation}"),
        format!("/api/v1/conversation/{conversation}/transcript"),
        format!("/api/v1/conversation/by-contact/{}", made["contact_id"].as_str().unwrap()),
        format!("/api/v1/contact/{}", made["contact_id"].as_str().unwrap()),
    ] {
        answers.push(setup.get(org, &path).await);
    }
    answers.push(setup.close(org, &json!({"id": conversation})).await);
    setup.settle().await;
    answers.extend(setup.receiver.received("/webhook").iter().map(event));
    assert_eq!(answers.len(), 7);
    assert!(answers.iter().all(|answer| !answer.to_string().contains("unlikely")), "{answers:?}");
    // The call was requested before the close, so it is made.
    assert_eq!(event(&caller.received()[0])["data"]["prompt_dynamic_variables"]["pin"], "unlikely-to-be-anywhere");
}

#[tokio::test]
async fn each_call_starts_a_conversation_with_one_contact() {
    let caller = caller().await;
    let calls = join_all((0..5).map(|_| start(&caller, "null"))).await;
    let later = start(&caller, "{}").await;
    let all: Vec<&Value> = calls.iter().chain([&later]).collect();
    let distinct = |name: &str| all.iter().map(|made| made[name].to_string()).collect::<BTreeSet<_>>().len();
    assert_eq!(["contact_id", "conversation_id", "event_id"].map(distinct), [1, 6, 6]);
    assert!(caller.conversations().await.iter().all(|one| one["chat_count"] == 0 && one["status"] == "open"));
    caller.setup.minutes(2).await;
    let received = caller.received();
    assert_eq!(events(&received).len(), 6);
    assert!(received.iter().all(|request| event(request)["data"]["prompt_dynamic_variables"] == json!({})));
}

#[tokio::test]
async fn variables_of_32_kib_arrive() {
    const MOST: usize = 32 * 1024;
    let caller = caller().await;
    start(&caller, &format!(r#"{{"x":"{}"}}"#, "x".repeat(MOST - r#"{"x":""}"#.len()))).await;
    caller.setup.settle().await;
    assert!(caller.received()[0].body.len() > MOST);
}

#[tokio::test]
async fn refuses_a_widget_that_sends_messages_and_an_invalid_body() {
    let stack = stack().await;
    let before = items(&stack).await;
    let body = json!({"to": TO});
    let call = async |widget: u32, body: &Value| {
        let path = format!("/api/v1/call/{}", id('a', kind::WIDGET, widget));
        detail(&stack.answer(&post(&path, ACME, body.to_string())).await)
    };
    assert_eq!(call(3, &body).await, conflict("widget_id", "widget_sends_messages", "The widget sends messages"));
    let number = "value is not a valid phone number: 8 to 15 digits with the country code";
    assert_eq!(call(2, &json!({"to": "1234567"})).await, wrong("to", "value_error", number));
    let dictionary = wrong("prompt_dynamic_variables", "dict_type", "Input should be a valid dictionary");
    assert_eq!(call(2, &json!({"to": TO, "prompt_dynamic_variables": []})).await, dictionary);
    assert_eq!(changes(&stack, &before).await, nothing());
}
