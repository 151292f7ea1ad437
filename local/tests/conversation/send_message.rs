//! `POST /api/v1/messaging/{widget_id}`: sends a message to a telephone number.

use std::collections::BTreeSet;

use futures_util::future::{BoxFuture, join_all};
use local::Stack;
use local::faults::Fault;
use local::http::{Answer, Call};
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::assistant::Assistant;
use shared::records::conversation::{Conversation, MAX_MESSAGES};
use shared::records::delivery::{Delivery, DeliveryState};
use shared::records::widget::{Widget, WidgetType};
use shared::values::id::{AssistantId, ConversationId, WidgetId};
use uuid::Uuid;

use crate::support::fixture::{ACME, acme, data, get, id, kind, post, stack};
use crate::support::records::{TEST_TIME, changes, conflict, detail, issue, items, not_found, nothing, wrong};
use crate::support::sender::{Sender, event, within_the_rate};
use crate::support::sending::{Setup, events, id_of, is_signed_with};

/// Widgets of the demo set. The web chat has no connector.
const CHAT: u32 = 1;
const PHONE: u32 = 2;
const SMS: u32 = 3;

const TO: &str = "+49 (151) 234-5678";

async fn send(stack: &Stack, widget: u32, body: &Value) -> Answer {
    let path = format!("/api/v1/messaging/{}", id('a', kind::WIDGET, widget));
    stack.answer(&post(&path, ACME, body.to_string())).await
}

/// An organisation without a contact, whose widget sends messages to its connector.
async fn sender() -> Sender {
    Sender::of(Setup::start().await, WidgetType::Sms, true, 0).await
}

fn path(sender: &Sender) -> String {
    format!("/api/v1/messaging/{}", sender.widget.id)
}

/// Sends a message and returns the answer.
async fn message(sender: &Sender, to: &str, text: &str) -> Value {
    sender.setup.post(&sender.org, &path(sender), json!({"to": to, "message": text})).await
}

/// The texts of a conversation.
async fn said(sender: &Sender, conversation: &Value) -> Vec<String> {
    sender.transcript(conversation).await.into_iter().map(|message| message.text.into_string()).collect()
}

/// The deliveries to the connector.
async fn outbox(sender: &Sender) -> Vec<Delivery> {
    sender.setup.outbox(&sender.org, &json!({"id": sender.widget.id})).await
}

#[tokio::test]
async fn the_connector_gets_the_signed_message_with_the_contact() {
    let sender = sender().await;
    let (setup, org) = (&sender.setup, &sender.org);
    let answer = setup.ask(org, "POST", &path(&sender), &json!({"to": TO, "message": "Grüß Gott"})).await;
    let sent = data(&answer);
    setup.settle().await;

    let contact = setup.get(org, &format!("/api/v1/contact/{}", sent["contact_id"].as_str().unwrap())).await;
    assert_eq!((&contact["phone_number"], &contact["first_name"]), (&json!("+491512345678"), &Value::Null));
    let conversations = sender.conversations().await;
    assert_eq!(conversations.len(), 1);
    let names = ["id", "widget_id", "assistant_id", "contact_id", "status", "chat_count"];
    let fields = [
        sent["conversation_id"].clone(),
        json!(sender.widget.id),
        sender.assistant["id"].clone(),
        contact["id"].clone(),
        json!("open"),
        json!(1),
    ];
    assert_eq!(names.map(|name| conversations[0][name].clone()), fields);
    let messages = sender.transcript(&sent["conversation_id"]).await;
    let [message] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!((json!(message.id), json!(message.sender_type)), (sent["message_id"].clone(), json!("bot")));

    let received = sender.received();
    assert_eq!(received.len(), 1);
    assert!(is_signed_with(&received[0], &sender.webhook["secret"]));
    assert_eq!(received[0].headers["webhook-id"], sent["event_id"]);
    let wanted = json!({
        "id": sent["event_id"],
        "object": "event",
        "event": "message.requested",
        "created_at": TEST_TIME,
        "data": {
            "widget_id": sender.widget.id,
            "assistant_id": sender.assistant["id"],
            "conversation_id": sent["conversation_id"],
            "contact_id": contact["id"],
            "to": "+491512345678",
            "message_id": sent["message_id"],
            "message": "Grüß Gott",
            "prompt_dynamic_variables": null,
            "contact": contact,
        },
    });
    assert_eq!(event(&received[0]), wanted);
    assert_eq!(outbox(&sender).await[0].state, DeliveryState::Delivered);
    assert_eq!(setup.due().len(), 0);
}

#[tokio::test]
async fn each_attempt_sends_the_same_event() {
    let sender = sender().await;
    sender.setup.receiver.behave("/connector", Behaviour::Recovering { failures: 2, then: 200 });
    message(&sender, TO, "Hello").await;
    sender.setup.settle().await;
    message(&sender, "+4915111111111", "Hello, you").await;
    sender.setup.minutes(8).await;
    let received = sender.received();
    assert!(events(&received).values().sum::<usize>() == 4 && events(&received).len() == 2, "{:?}", events(&received));
    for request in &received {
        let same = received.iter().find(|other| other.headers["webhook-id"] == request.headers["webhook-id"]);
        assert_eq!(request.body, same.unwrap().body);
        assert!(is_signed_with(request, &sender.webhook["secret"]));
    }
    assert!(outbox(&sender).await.iter().all(|delivery| delivery.state == DeliveryState::Delivered));
}

#[tokio::test]
async fn a_retry_keeps_the_number_after_the_contact_changes() {
    let sender = sender().await;
    let (setup, org) = (&sender.setup, &sender.org);
    setup.receiver.behave("/connector", Behaviour::Recovering { failures: 1, then: 200 });
    let sent = message(&sender, TO, "Your code is 1234").await;
    setup.settle().await;
    let path = format!("/api/v1/contact/{}", sent["contact_id"].as_str().unwrap());
    let new_fields = json!({
        "first_name": "Another", "last_name": "Name", "email": "other@example.com", "phone_number": "+4915199999999",
        "attributes": {"changed": true},
    });
    setup.pass(1);
    let changed = data(&setup.ask(org, "PUT", &path, &new_fields).await);
    setup.minutes(2).await;

    let [first, second] = &sender.received()[..] else { panic!("not two attempts") };
    let (first, mut second) = (event(first), event(second));
    assert_eq!(second["data"]["to"], "+491512345678");
    // The event has the current contact with the former number, which another contact may have by now.
    let contact = second["data"]["contact"].take();
    let number = |contact: &Value| contact["phone_number"].clone();
    assert_eq!((number(&first["data"]["contact"]), number(&contact)), (json!("+491512345678"), json!("+491512345678")));
    let with_its_number = json!({"phone_number": changed["phone_number"]});
    assert_eq!(merged(contact, &with_its_number), changed);
    // The rest of the event is the same.
    second["data"]["contact"] = first["data"]["contact"].clone();
    assert_eq!(second, first);
}

/// `object` with the members of `members`.
fn merged(mut object: Value, members: &Value) -> Value {
    object.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    object
}

#[tokio::test]
async fn continues_the_open_conversation_of_contact_and_widget() {
    let sender = sender().await;
    let (setup, org) = (&sender.setup, &sender.org);
    let first = message(&sender, TO, "One").await;
    let second = message(&sender, "49 151 2345678", "Two").await;
    for name in ["conversation_id", "contact_id"] {
        assert_eq!(first[name], second[name]);
    }
    for name in ["message_id", "event_id"] {
        assert_ne!(first[name], second[name]);
    }
    assert_eq!(said(&sender, &first["conversation_id"]).await, ["One", "Two"]);
    // A campaign continues it as well.
    let campaign = json!({"contact_ids": [first["contact_id"]], "message": "Three"});
    setup.post(org, &format!("/api/v1/messaging/{}/contacts", sender.widget.id), campaign).await;
    setup.minutes(1).await;
    message(&sender, TO, "Four").await;
    assert_eq!(said(&sender, &first["conversation_id"]).await, ["One", "Two", "Three", "Four"]);
    assert_eq!(sender.conversations().await.len(), 1);
    // A newer conversation is closed, and the stream has yet to deliver this.
    let newer = json!({"assistant_id": sender.assistant["id"], "widget_id": sender.widget.id, "contact_id": first["contact_id"]});
    let newer = setup.post(org, "/api/v1/conversation", newer).await;
    setup.close(org, &newer).await;
    assert_eq!(message(&sender, TO, "Five").await["conversation_id"], first["conversation_id"]);

    let other = json!({"widget_type": "whatsapp", "assistant_id": sender.assistant["id"], "connector_url": sender.widget.connector_url});
    let other = setup.post(org, "/api/v1/widget", other).await;
    let body = json!({"to": TO, "message": "Here too"});
    let elsewhere = setup.post(org, &format!("/api/v1/messaging/{}", id_of(&other)), body).await;
    assert_eq!(elsewhere["contact_id"], first["contact_id"]);
    assert_ne!(elsewhere["conversation_id"], first["conversation_id"]);
}

#[tokio::test]
async fn starts_a_new_conversation_after_a_closed_or_full_one() {
    let sender = sender().await;
    let first = message(&sender, TO, "One").await;
    sender.setup.close(&sender.org, &json!({"id": first["conversation_id"]})).await;
    let second = message(&sender, TO, "Two").await;
    let id = ConversationId(second["conversation_id"].as_str().unwrap().parse().unwrap());
    let fill = |conversation: &mut Conversation| conversation.chat_count = MAX_MESSAGES;
    sender.org.table.change(id, Uuid::max(), fill).await.unwrap();
    let third = message(&sender, TO, "Three").await;
    let all = [first, second, third];
    let distinct: BTreeSet<_> = all.iter().map(|sent| sent["conversation_id"].to_string()).collect();
    assert_eq!((distinct.len(), all.iter().all(|sent| sent["contact_id"] == all[0]["contact_id"])), (3, true));
    sender.setup.settle().await;
    assert_eq!(events(&sender.received()).len(), 3);
}

#[tokio::test]
async fn concurrent_messages_to_an_unknown_number_make_one_contact() {
    let sender = sender().await;
    let texts: Vec<String> = (0..6).map(|number| format!("{number}")).collect();
    let sent = join_all(texts.iter().map(|text| message(&sender, TO, text))).await;
    let distinct = |name: &str| sent.iter().map(|sent| sent[name].to_string()).collect::<BTreeSet<_>>().len();
    let names = ["contact_id", "conversation_id", "message_id", "event_id"];
    assert_eq!(names.map(distinct), [1, 1, 6, 6]);
    let mut said = said(&sender, &sent[0]["conversation_id"]).await;
    said.sort();
    assert_eq!(said, texts);
    assert_eq!(sender.list("/api/v1/contact").await.len(), 1);
    sender.setup.minutes(2).await;
    assert_eq!(events(&sender.received()).len(), 6);
}

#[tokio::test]
async fn a_delivery_names_the_record_that_was_deleted_before_it() {
    type Take = for<'a> fn(&'a Sender, &'a Value) -> BoxFuture<'a, ()>;
    let cases: [(&str, Take); 5] = [
        ("the contact is gone", |sender, sent| {
            Box::pin(async move {
                sender.delete(&format!("contact/{}", sent["contact_id"].as_str().unwrap())).await;
            })
        }),
        ("the conversation is gone", |sender, sent| {
            Box::pin(async move {
                let conversation = json!({"id": sent["conversation_id"]});
                sender.setup.close(&sender.org, &conversation).await;
                sender.delete(&format!("conversation/{}", id_of(&conversation))).await;
            })
        }),
        ("the widget has no connector", |sender, _| {
            let disconnect = |widget: &mut Widget| widget.connector_url = None;
            Box::pin(
                async move { drop(sender.org.table.change(sender.widget.id, Uuid::max(), disconnect).await.unwrap()) },
            )
        }),
        ("the widget's assistant has no webhook, whose secret would sign", |sender, _| {
            Box::pin(async move { drop(sender.delete(&format!("assistant/{}", id_of(&sender.assistant))).await) })
        }),
        ("the widget is gone", |sender, _| {
            // Removes the row only: the stream adds no removal.
            Box::pin(async move { drop(sender.org.table.remove::<Widget>(sender.widget.id).await.unwrap()) })
        }),
    ];
    for tried in [false, true] {
        for (reason, take) in cases {
            let sender = sender().await;
            sender.setup.receiver.behave("/connector", Behaviour::Answer(503));
            let sent = message(&sender, TO, "Hello").await;
            if tried {
                sender.setup.settle().await;
            }
            let known = sender.received().len();
            take(&sender, &sent).await;
            if reason == "the widget is gone" {
                sender.setup.stack.stream.drain_for("send-delivery").await.unwrap();
                if !tried {
                    let [delivery] = &outbox(&sender).await[..] else { panic!("the delivery is gone too") };
                    let wanted = (DeliveryState::Dead, Some(reason));
                    assert_eq!((delivery.state, delivery.error.as_deref()), wanted);
                }
            }
            sender.setup.minutes(8).await;
            let left = outbox(&sender).await;
            let outcomes: Vec<_> = left.iter().map(|delivery| (delivery.state, delivery.error.as_deref())).collect();
            // The deliveries of a widget are deleted with it.
            let wanted =
                if reason == "the widget is gone" { vec![] } else { vec![(DeliveryState::Dead, Some(reason))] };
            assert_eq!((outcomes, sender.received().len()), (wanted, known), "{reason}, tried: {tried}");
        }
    }
}

#[tokio::test]
async fn refuses_a_widget_that_cannot_send_and_changes_nothing() {
    let stack = stack().await;
    let table = acme(&stack);
    let body = json!({"to": TO, "message": "Hello"});
    let sms = WidgetId(id('a', kind::WIDGET, SMS).parse().unwrap());
    let assistant = AssistantId(id('a', kind::ASSISTANT, 1).parse().unwrap());
    let before = items(&stack).await;
    assert_eq!(detail(&send(&stack, 99, &body).await), not_found("widget_id"));
    let calls = conflict("widget_id", "widget_makes_calls", "The widget makes calls");
    assert_eq!(detail(&send(&stack, PHONE, &body).await), calls);
    let unconnected = conflict("widget_id", "no_connector", "The widget has no connector");
    assert_eq!(detail(&send(&stack, CHAT, &body).await), unconnected);
    assert_eq!(changes(&stack, &before).await, nothing());

    // These refusals come while places are reserved, and the first reservation begins the list.
    data(&send(&stack, SMS, &json!({"to": "+31200002", "message": "Hello"})).await);
    let silent = |assistant: &mut Assistant| assistant.webhook_id = None;
    table.change(assistant, Uuid::max(), silent).await.unwrap();
    // A secret of the widget signs without a webhook. The widget may be older than these secrets.
    data(&send(&stack, SMS, &json!({"to": "+31200002", "message": "Hello"})).await);
    table.change(sms, Uuid::max(), |widget: &mut Widget| widget.secrets.clear()).await.unwrap();
    let unsigned = "The widget's assistant has no webhook, whose secret would sign";
    let alone = conflict("widget_id", "no_assistant", "The widget has no assistant");
    let known = json!({"to": "+31200001", "message": "Hello"});
    for (step, wanted) in [conflict("widget_id", "no_webhook", unsigned), alone.clone(), alone].into_iter().enumerate()
    {
        if step == 1 {
            table.remove::<Assistant>(assistant).await.unwrap();
        } else if step == 2 {
            let without = |widget: &mut Widget| widget.assistant_id = None;
            table.change(sms, Uuid::max(), without).await.unwrap();
        }
        let before = items(&stack).await;
        for body in [&body, &known] {
            assert_eq!(detail(&send(&stack, SMS, body).await), wanted, "{step}");
        }
        assert_eq!(changes(&stack, &before).await, nothing(), "{step}");
    }
}

#[tokio::test]
async fn lists_every_issue_of_number_and_message() {
    let stack = stack().await;
    let before = items(&stack).await;
    let missing = |field: &str| issue(&json!(["body", field]), "missing", "Field required");
    let number = "value is not a valid phone number: 8 to 15 digits with the country code";
    let empty = wrong("message", "string_too_short", "String should have at least 1 character");
    for (body, wanted) in [
        (json!({}), (422, json!([missing("to"), missing("message")]))),
        (json!({"to": TO}), (422, json!([missing("message")]))),
        (json!({"to": "0151 2345678", "message": "Hello"}), wrong("to", "value_error", number)),
        (
            json!({"to": 491_512_345_678_u64, "message": "Hello"}),
            wrong("to", "string_type", "Input should be a valid string"),
        ),
        (json!({"to": TO, "message": ""}), empty),
    ] {
        assert_eq!(detail(&send(&stack, SMS, &body).await), wanted, "{}", body["to"]);
    }
    assert_eq!(changes(&stack, &before).await, nothing());
    let longest = json!({"to": TO, "message": "😀".repeat(32_768)});
    let sent = data(&send(&stack, SMS, &longest).await);
    let path = format!("/api/v1/conversation/{}/transcript", sent["conversation_id"].as_str().unwrap());
    let said = get(&stack, &path).await;
    assert_eq!((&said["items"][0]["text"], &said["items"][0]["char_count"]), (&longest["message"], &json!(32_768)));
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_after_the_widget_changed() {
    let sender = sender().await;
    let (setup, org) = (&sender.setup, &sender.org);
    let request = post(&path(&sender), &org.key, json!({"to": TO, "message": "Hello"}).to_string());
    let headers = [("idempotency-key".to_owned(), "once".to_owned())].into();
    let request = Call { headers, ..request };
    // The process crashes after its transaction, before it stores the answer.
    setup.faults.plan(|action, _| if action == "TransactWriteItems" { Fault::LoseAnswer } else { Fault::None });
    assert!(setup.faults.kill(setup.stack.answer(&request)).await);
    setup.faults.end();
    let [conversation] = &sender.conversations().await[..] else { panic!("the conversation was not written") };
    let disconnect = |widget: &mut Widget| widget.connector_url = None;
    org.table.change(sender.widget.id, Uuid::max(), disconnect).await.unwrap();
    setup.pass(30);
    let repeated = data(&setup.stack.answer(&request).await);
    let [delivery] = &outbox(&sender).await[..] else { panic!("another delivery, or none") };
    let wanted = json!({
        "conversation_id": conversation["id"],
        "contact_id": conversation["contact_id"],
        "message_id": sender.transcript(&conversation["id"]).await[0].id,
        "event_id": delivery.event_id,
    });
    assert_eq!(repeated, wanted);
}

#[tokio::test]
async fn the_rate_of_the_widget_limits_deliveries_but_no_request() {
    const COUNT: usize = 35;
    const RATE: usize = 10;
    let sender = sender().await;
    let (setup, start) = (&sender.setup, sender.setup.clock.now());
    for number in 0..COUNT {
        message(&sender, &format!("+4915100000{number:03}"), "Hello").await;
    }
    assert_eq!(setup.clock.now(), start);
    setup.settle().await;
    setup.minutes(2).await;
    let received = sender.received();
    assert_eq!((events(&received).len(), received.len()), (COUNT, COUNT));
    let seconds = received.iter().map(|request| request.headers["webhook-timestamp"].parse::<i64>().unwrap());
    // Timestamps are cut to whole seconds, so each is taken as the end of its second.
    within_the_rate(start.unix_millis(), seconds.map(|second| second * 1000 + 999), RATE);
}
