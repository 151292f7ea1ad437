//! `POST /api/v1/suppression`: suppresses a telephone number or an e-mail address.

use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;

use crate::support::fixture::{ACME, GLOBEX, call, contact_id, data, failure, get, id, kind, post, stack};
use crate::support::records::{detail, issue};
use crate::support::sender::Sender;
use crate::support::sending::{Setup, id_of};

/// Widgets of the demo set.
const PHONE: u32 = 2;
const SMS: u32 = 3;

const PATH: &str = "/api/v1/suppression";

async fn suppress(stack: &Stack, body: Value) -> Answer {
    stack.answer(&post(PATH, ACME, body.to_string())).await
}

async fn message(stack: &Stack, to: &str) -> Answer {
    let path = format!("/api/v1/messaging/{}", id('a', kind::WIDGET, SMS));
    stack.answer(&post(&path, ACME, json!({"to": to, "message": "Hello"}).to_string())).await
}

async fn start_call(stack: &Stack, to: &str) -> Answer {
    let path = format!("/api/v1/call/{}", id('a', kind::WIDGET, PHONE));
    stack.answer(&post(&path, ACME, json!({"to": to}).to_string())).await
}

fn suppressed() -> (u16, Value) {
    (409, json!([issue(&json!(["body", "to"]), "suppressed", "The telephone number is suppressed")]))
}

#[tokio::test]
async fn a_number_has_one_suppression_and_its_channels_add_up() {
    let stack = stack().await;
    let first = suppress(&stack, json!({"phone_number": "+49 (151) 234-5678", "channel": "call"})).await;
    let made = data(&first);
    assert_eq!((first.status, &made["phone_number"], &made["channel"]), (201, &json!("+491512345678"), &json!("call")));
    let cases = [
        ("call", json!("ignored"), "call", Value::Null),
        ("message", json!("By letter"), "all", json!("By letter")),
        ("message", json!("ignored"), "all", json!("By letter")),
        ("all", Value::Null, "all", json!("By letter")),
    ];
    for (channel, reason, wanted, why) in cases {
        let body = json!({"phone_number": "49151.2345678", "channel": channel, "reason": reason});
        let answer = suppress(&stack, body).await;
        let again = data(&answer);
        assert_eq!(
            (answer.status, &again["id"], &again["channel"], &again["reason"]),
            (200, &made["id"], &json!(wanted), &why)
        );
    }
    let listed = get(&stack, &format!("{PATH}?phone_number=%2B491512345678")).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(get(&stack, &format!("{PATH}/{}", id_of(&made))).await, listed["items"][0]);
}

#[tokio::test]
async fn an_address_is_compared_without_upper_and_lower_case() {
    let stack = stack().await;
    let made = data(&suppress(&stack, json!({"email": "Ada@Example.com"})).await);
    let again = suppress(&stack, json!({"email": "ada@example.COM"})).await;
    assert_eq!((again.status, data(&again)), (200, made.clone()));
    assert_eq!(get(&stack, &format!("{PATH}?email=ADA@example.com")).await["items"], json!([made]));
}

#[tokio::test]
async fn a_suppression_is_about_one_number_or_one_address() {
    let stack = stack().await;
    let both = suppress(&stack, json!({"phone_number": "+4915123456", "email": "ada@example.com"})).await;
    let says = "A suppression has a telephone number or an e-mail address, not both";
    assert_eq!(detail(&both), (422, json!([issue(&json!(["body", "email"]), "value_error", says)])));
    let none = suppress(&stack, json!({"reason": "None"})).await;
    assert_eq!(failure(&none).0, 422);
}

#[tokio::test]
async fn a_suppressed_number_gets_no_message_and_no_call() {
    for (channel, is_message, is_call) in [("message", false, true), ("call", true, false), ("all", false, false)] {
        let stack = stack().await;
        let made = data(&suppress(&stack, json!({"phone_number": "+49 151 2345678", "channel": channel})).await);
        let contacts = get(&stack, "/api/v1/contact").await["total"].clone();
        for (answer, is_sent) in
            [(message(&stack, "491512345678").await, is_message), (start_call(&stack, "491512345678").await, is_call)]
        {
            if is_sent {
                assert_eq!(answer.status, 200, "{channel}");
            } else {
                assert_eq!(detail(&answer), suppressed(), "{channel}");
            }
        }
        if !is_message && !is_call {
            assert_eq!(get(&stack, "/api/v1/contact").await["total"], contacts, "a refused send made a contact");
        }
        // The number of another organisation is not suppressed, nor is any other number.
        let path = format!("/api/v1/messaging/{}", id('b', kind::WIDGET, SMS));
        let others = stack.answer(&post(&path, GLOBEX, r#"{"to":"491512345678","message":"Hello"}"#)).await;
        assert_eq!((others.status, message(&stack, "491512345679").await.status), (200, 200));
        stack.answer(&call("DELETE", &format!("{PATH}/{}", id_of(&made)), ACME)).await;
        assert_eq!(
            (message(&stack, "491512345678").await.status, start_call(&stack, "491512345678").await.status),
            (200, 200)
        );
    }
}

#[tokio::test]
async fn a_suppression_stays_when_its_contact_is_deleted() {
    let stack = stack().await;
    let made = data(&suppress(&stack, json!({"phone_number": "+31200001"})).await);
    let gone = stack.answer(&call("DELETE", &format!("/api/v1/contact/{}", contact_id(1)), ACME)).await;
    assert_eq!(gone.status, 200);
    stack.settle().await.unwrap();
    assert_eq!(get(&stack, &format!("{PATH}/{}", id_of(&made))).await, made);
    assert_eq!(detail(&message(&stack, "+31200001").await), suppressed());
}

#[tokio::test]
async fn a_suppression_that_is_answered_first_refuses_the_message() {
    // The number has no suppression when the message is prepared, or one against calls.
    for before in [None, Some("call")] {
        let sender = Sender::of(Setup::start().await, WidgetType::Sms, true, 0).await;
        let (setup, org) = (&sender.setup, &sender.org);
        let suppress = async |channel: &str| {
            let body = json!({"phone_number": "+4915123456789", "channel": channel});
            setup.post(org, PATH, body).await
        };
        if let Some(channel) = before {
            suppress(channel).await;
        }
        let pause = setup.faults.pause_at(|action, _| action == "TransactWriteItems");
        let path = format!("/api/v1/messaging/{}", sender.widget.id);
        let body = json!({"to": "+4915123456789", "message": "Hello"});
        let meanwhile = async {
            pause.reached().await;
            suppress("message").await;
            pause.end();
        };
        let (sent, ()) = tokio::join!(setup.ask(org, "POST", &path, &body), meanwhile);
        assert_eq!(detail(&sent), suppressed(), "{before:?}");
        assert_eq!(sender.conversations().await, Vec::<Value>::new());
    }
}
