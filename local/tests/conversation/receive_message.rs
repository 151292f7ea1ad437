//! `POST /api/v1/widget/{widget_id}/inbound`: adds a person's message, whose answers leave through the connector.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::records::conversation::{Conversation, MAX_MESSAGES};
use shared::records::delivery::DeliveryState;
use shared::records::widget::{Widget, WidgetType};
use shared::values::id::ConversationId;
use uuid::Uuid;

use crate::support::crashes::crashes_everywhere;
use crate::support::fixture::{ACME, GLOBEX, data, get, id, kind, post, stack};
use crate::support::keyed::{KEY, keyed};
use crate::support::records::{TEST_TIME, changes, conflict, detail, issue, items, not_found, nothing};
use crate::support::sender::{Sender, event};
use crate::support::sending::{Setup, id_of, is_signed_with};

/// Widgets of the demo set. The web chat has no connector.
const CHAT: u32 = 1;
const PHONE: u32 = 2;
const SMS: u32 = 3;

const FROM: &str = "+49 (151) 234-5678";
const NUMBER: &str = "+491512345678";
/// So many requests at the same moment.
const MANY: usize = 64;
/// Longer than a crashed process keeps its claim of an idempotency key.
const LEASE: i64 = 31;

/// An organisation without a contact, whose widget has a connector.
async fn sender() -> Sender {
    Sender::of(Setup::start().await, WidgetType::Sms, true, 0).await
}

fn inbound(sender: &Sender) -> String {
    format!("/api/v1/widget/{}/inbound", sender.widget.id)
}

fn from(number: &str, text: &str, external_id: &str) -> Value {
    json!({"from": number, "text": text, "external_id": external_id})
}

/// Brings in a message and returns the answer.
async fn bring(sender: &Sender, text: &str, external_id: &str) -> Value {
    sender.setup.post(&sender.org, &inbound(sender), from(FROM, text, external_id)).await
}

/// The same. A request that is answered 503, because others write the same records, is sent again.
async fn bring_at_last(sender: &Sender, text: &str, external_id: &str) -> Value {
    loop {
        let body = from(FROM, text, external_id);
        let answer = sender.setup.ask(&sender.org, "POST", &inbound(sender), &body).await;
        if answer.status != 503 {
            return data(&answer);
        }
    }
}

/// Adds a message to the conversation of `received`.
async fn add(sender: &Sender, received: &Value, who: &str, text: &str) -> Value {
    let path = format!("/api/v1/conversation/{}/message", received["conversation_id"].as_str().unwrap());
    sender.setup.post(&sender.org, &path, json!({"sender_type": who, "text": text})).await
}

/// The texts of a conversation.
async fn said(sender: &Sender, conversation: &Value) -> Vec<String> {
    sender.transcript(conversation).await.into_iter().map(|message| message.text.into_string()).collect()
}

/// What the connector got, in the order of the texts.
async fn sent(sender: &Sender) -> Vec<String> {
    sender.setup.minutes(2).await;
    let text = |request| event(request)["data"]["message"].as_str().unwrap().to_owned();
    let mut texts: Vec<String> = sender.received().iter().map(text).collect();
    texts.sort();
    texts
}

async fn deliveries(sender: &Sender) -> usize {
    sender.setup.outbox(&sender.org, &json!({"id": sender.widget.id})).await.len()
}

/// How many different values the member `name` has.
fn distinct(answers: &[Value], name: &str) -> usize {
    answers.iter().map(|answer| answer[name].to_string()).collect::<BTreeSet<_>>().len()
}

async fn change_widget(sender: &Sender, change: fn(&mut Widget)) {
    sender.org.table.change(sender.widget.id, Uuid::max(), change).await.unwrap();
}

#[tokio::test]
async fn messages_go_in_a_circle_through_the_connector() {
    let sender = sender().await;
    let (setup, org) = (&sender.setup, &sender.org);
    let asked = bring(&sender, "Is my table ready?", "SM-1").await;
    let contact = setup.get(org, &format!("/api/v1/contact/{}", asked["contact_id"].as_str().unwrap())).await;
    assert_eq!((&contact["phone_number"], &asked["is_new"]), (&json!(NUMBER), &json!(true)));
    let [conversation] = &sender.conversations().await[..] else { panic!("not one conversation") };
    let names = ["id", "contact_id", "widget_id", "assistant_id", "status", "chat_count"];
    let wanted = json!([asked["conversation_id"], contact["id"], sender.widget.id, sender.assistant["id"], "open", 1]);
    assert_eq!(json!(names.map(|name| conversation[name].clone())), wanted);
    let [message] = &sender.transcript(&asked["conversation_id"]).await[..] else { panic!("not one message") };
    let wanted = json!([asked["message_id"], "user", "text", "Is my table ready?"]);
    assert_eq!(json!([message.id, message.sender_type, message.message_type, message.text]), wanted);
    setup.settle().await;
    assert_eq!(sender.received().len(), 0);

    let answered = add(&sender, &asked, "bot", "In ten minutes.").await;
    setup.settle().await;
    let received = sender.received();
    assert_eq!(received.len(), 1);
    assert!(is_signed_with(&received[0], &sender.webhook["secret"]));
    let wanted = json!({
        "id": answered["id"],
        "object": "event",
        "event": "message.requested",
        "created_at": TEST_TIME,
        "data": {
            "widget_id": sender.widget.id,
            "assistant_id": sender.assistant["id"],
            "conversation_id": asked["conversation_id"],
            "contact_id": contact["id"],
            "to": NUMBER,
            "message_id": answered["id"],
            "message": "In ten minutes.",
            "prompt_dynamic_variables": null,
            "contact": contact,
        },
    });
    assert_eq!(event(&received[0]), wanted);

    let thanks = bring(&sender, "Thank you", "SM-2").await;
    assert_eq!(thanks["conversation_id"], asked["conversation_id"]);
    let all = ["Is my table ready?", "In ten minutes.", "Thank you"];
    assert_eq!(said(&sender, &asked["conversation_id"]).await, all);
}

#[tokio::test]
async fn only_written_answers_leave() {
    let sender = sender().await;
    let asked = bring(&sender, "Hello", "SM-1").await;
    for who in ["bot", "agent", "user", "tool"] {
        add(&sender, &asked, who, who).await;
    }
    add(&sender, &asked, "bot", "").await;
    let path = format!("/api/v1/conversation/{}/message", asked["conversation_id"].as_str().unwrap());
    let spoken = json!({"sender_type": "bot", "text": "spoken", "message_type": "voice"});
    sender.setup.post(&sender.org, &path, spoken).await;
    assert_eq!(sent(&sender).await, ["agent", "bot"]);
    // What send-message adds leaves once.
    let path = format!("/api/v1/messaging/{}", sender.widget.id);
    sender.setup.post(&sender.org, &path, json!({"to": FROM, "message": "campaign"})).await;
    assert_eq!(sent(&sender).await, ["agent", "bot", "campaign"]);
}

#[tokio::test]
async fn answers_stay_where_no_message_came_in() {
    let sender = sender().await;
    let path = format!("/api/v1/messaging/{}", sender.widget.id);
    let reminded = sender.setup.post(&sender.org, &path, json!({"to": FROM, "message": "A reminder"})).await;
    add(&sender, &reminded, "bot", "Stored only").await;
    assert_eq!(sent(&sender).await, ["A reminder"]);
    // The person answers, in the same conversation.
    let answer = bring(&sender, "What?", "SM-1").await;
    assert_eq!(answer["conversation_id"], reminded["conversation_id"]);
    add(&sender, &answer, "bot", "The reminder").await;
    assert_eq!(sent(&sender).await, ["A reminder", "The reminder"]);
}

#[tokio::test]
async fn answers_go_to_the_number_of_the_latest_message() {
    let sender = sender().await;
    let (setup, org) = (&sender.setup, &sender.org);
    let asked = bring(&sender, "Hello", "SM-1").await;
    let path = format!("/api/v1/contact/{}", asked["contact_id"].as_str().unwrap());
    data(&setup.ask(org, "PUT", &path, &json!({"phone_number": "+4915199999999"})).await);
    add(&sender, &asked, "bot", "One").await;
    let again = setup.post(org, &inbound(&sender), from("+4915199999999", "Hello again", "SM-2")).await;
    assert_eq!(again["conversation_id"], asked["conversation_id"]);
    add(&sender, &asked, "bot", "Two").await;
    sent(&sender).await;
    let to: BTreeSet<_> = sender.received().iter().map(|request| event(request)["data"]["to"].to_string()).collect();
    assert_eq!(to, BTreeSet::from([format!("{NUMBER:?}"), "\"+4915199999999\"".to_owned()]));
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_for_35_days() {
    const DAY: i64 = 86_400;
    let sender = sender().await;
    let first = bring(&sender, "Hello", "SM-1").await;
    let mut repeated = first.clone();
    repeated["is_new"] = json!(false);
    for days in [0, 1, 33] {
        sender.setup.pass(days * DAY);
        // The identifier counts, not the text.
        assert_eq!(bring(&sender, "Hello, hello", "SM-1").await, repeated);
    }
    let path = format!("/api/v1/widget/{}", id_of(&other_widget(&sender).await)) + "/inbound";
    let elsewhere = sender.setup.post(&sender.org, &path, from(FROM, "Hello", "SM-1")).await;
    assert_eq!((&elsewhere["is_new"], &elsewhere["contact_id"]), (&json!(true), &first["contact_id"]));
    assert_ne!(elsewhere["conversation_id"], first["conversation_id"]);
    assert_eq!(said(&sender, &first["conversation_id"]).await, ["Hello"]);
    sender.setup.pass(2 * DAY);
    assert_eq!(bring(&sender, "Hello", "SM-1").await["is_new"], true);
    assert_eq!(said(&sender, &first["conversation_id"]).await, ["Hello", "Hello"]);
}

/// Another widget of the organisation, with the same connector.
async fn other_widget(sender: &Sender) -> Value {
    let connector = &sender.widget.connector_url;
    let other = json!({"widget_type": "whatsapp", "assistant_id": sender.assistant["id"], "connector_url": connector});
    sender.setup.post(&sender.org, "/api/v1/widget", other).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_equal_requests_at_once_one_adds_the_message() {
    let sender = sender().await;
    let received = join_all((0..MANY).map(|_| bring_at_last(&sender, "Hello", "SM-1"))).await;
    assert_eq!(["contact_id", "conversation_id", "message_id"].map(|name| distinct(&received, name)), [1; 3]);
    assert_eq!(received.iter().filter(|answer| answer["is_new"] == true).count(), 1);
    assert_eq!(said(&sender, &received[0]["conversation_id"]).await, ["Hello"]);
    assert_eq!((sender.conversations().await.len(), sender.list("/api/v1/contact").await.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_at_once_share_a_contact_and_a_conversation() {
    let texts: Vec<String> = (0..MANY).map(|number| format!("{number:02}")).collect();
    for is_known in [false, true] {
        let sender = sender().await;
        if is_known {
            sender.setup.post(&sender.org, "/api/v1/contact/upsert", json!({"phone_number": NUMBER})).await;
        }
        let received = join_all(texts.iter().map(|text| bring_at_last(&sender, text, text))).await;
        let counts = ["contact_id", "conversation_id", "message_id"].map(|name| distinct(&received, name));
        assert_eq!(counts, [1, 1, MANY], "{is_known}");
        assert!(received.iter().all(|answer| answer["is_new"] == true));
        let mut said = said(&sender, &received[0]["conversation_id"]).await;
        said.sort();
        assert_eq!(said, texts);
        assert_eq!((sender.conversations().await.len(), sender.list("/api/v1/contact").await.len()), (1, 1));
    }
}

#[tokio::test]
async fn opens_a_new_conversation_after_a_closed_or_full_one() {
    let sender = sender().await;
    let first = bring(&sender, "One", "SM-1").await;
    sender.setup.close(&sender.org, &json!({"id": first["conversation_id"]})).await;
    let second = bring(&sender, "Two", "SM-2").await;
    let id = ConversationId(second["conversation_id"].as_str().unwrap().parse().unwrap());
    let fill = |conversation: &mut Conversation| conversation.chat_count = MAX_MESSAGES;
    sender.org.table.change(id, Uuid::max(), fill).await.unwrap();
    let third = bring(&sender, "Three", "SM-3").await;
    sender.setup.close(&sender.org, &json!({"id": third["conversation_id"]})).await;
    let fourth = bring(&sender, "Four", "SM-4").await;
    let all = [first, second, third, fourth];
    assert_eq!((distinct(&all, "conversation_id"), distinct(&all, "contact_id")), (4, 1));
    add(&sender, &all[3], "bot", "Answer").await;
    assert_eq!(sent(&sender).await, ["Answer"]);
}

#[tokio::test]
async fn a_widget_without_connector_keeps_an_open_conversation() {
    let sender = sender().await;
    let asked = bring(&sender, "Hello", "SM-1").await;
    let changes: [fn(&mut Widget); 2] =
        [|widget| widget.connector_url = None, |widget| widget.widget_type = WidgetType::Phone];
    for change in changes {
        change_widget(&sender, change).await;
        add(&sender, &asked, "bot", "Stored only").await;
    }
    assert_eq!((sent(&sender).await.len(), deliveries(&sender).await), (0, 0));
    change_widget(&sender, |widget| widget.widget_type = WidgetType::Sms).await;
    bring(&sender, "Still here", "SM-2").await;
    let all = ["Hello", "Stored only", "Stored only", "Still here"];
    assert_eq!(said(&sender, &asked["conversation_id"]).await, all);
    sender.setup.close(&sender.org, &json!({"id": asked["conversation_id"]})).await;
    let refused = sender.setup.ask(&sender.org, "POST", &inbound(&sender), &from(FROM, "Hello?", "SM-3")).await;
    assert_eq!(detail(&refused), conflict("widget_id", "no_connector", "The widget has no connector"));
}

#[tokio::test]
async fn a_message_comes_in_once_wherever_the_process_dies() {
    let work = async |sender: &Sender| drop(bring(sender, "Hello", "SM-1").await);
    let look = async |sender: &Sender, case: String| {
        let received = bring(sender, "Hello", "SM-1").await;
        assert_eq!(said(sender, &received["conversation_id"]).await, ["Hello"], "{case}");
        let counts = (sender.conversations().await.len(), sender.list("/api/v1/contact").await.len());
        assert_eq!(counts, (1, 1), "{case}");
    };
    crashes_everywhere(sender, |sender| &sender.setup, work, look).await;
}

#[tokio::test]
async fn an_answer_leaves_once_wherever_the_process_dies() {
    let prepare = async || {
        let sender = sender().await;
        bring(&sender, "Hello", "SM-1").await;
        sender
    };
    let answer = async |sender: &Sender| {
        let conversation = sender.conversations().await.remove(0);
        let path = format!("/api/v1/conversation/{}/message", id_of(&conversation));
        let body = json!({"sender_type": "bot", "text": "Hi"}).to_string();
        sender.setup.stack.answer(&keyed(post(&path, &sender.org.key, body), KEY)).await
    };
    let look = async |sender: &Sender, case: String| {
        sender.setup.pass(LEASE);
        let message = data(&answer(sender).await);
        assert_eq!(said(sender, &message["conversation_id"]).await, ["Hello", "Hi"], "{case}");
        assert_eq!((sent(sender).await, deliveries(sender).await), (vec!["Hi".to_owned()], 1), "{case}");
    };
    crashes_everywhere(prepare, |sender| &sender.setup, async |sender| drop(answer(sender).await), look).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_at_once_leave_once_each() {
    const COUNT: usize = 16;
    let sender = sender().await;
    let asked = bring(&sender, "Hello", "SM-1").await;
    let texts: Vec<String> = (0..COUNT).map(|number| format!("{number:02}")).collect();
    join_all(texts.iter().map(|text| add(&sender, &asked, "bot", text))).await;
    assert_eq!(sent(&sender).await, texts);
    let outbox = sender.setup.outbox(&sender.org, &json!({"id": sender.widget.id})).await;
    assert!(outbox.len() == COUNT && outbox.iter().all(|delivery| delivery.state == DeliveryState::Delivered));
}

#[tokio::test]
async fn refuses_what_cannot_come_in_and_changes_nothing() {
    let stack = stack().await;
    let before = items(&stack).await;
    let bring = async |widget: String, key: &str, body: &Value| {
        let path = format!("/api/v1/widget/{widget}/inbound");
        detail(&stack.answer(&post(&path, key, body.to_string())).await)
    };
    let of_acme = |widget: u32| id('a', kind::WIDGET, widget);
    let hello = from(FROM, "Hello", "SM-1");
    assert_eq!(bring(of_acme(99), ACME, &hello).await, not_found("widget_id"));
    assert_eq!(bring(of_acme(SMS), GLOBEX, &hello).await, not_found("widget_id"));
    let calls = conflict("widget_id", "widget_makes_calls", "The widget makes calls");
    assert_eq!(bring(of_acme(PHONE), ACME, &hello).await, calls);
    let unconnected = conflict("widget_id", "no_connector", "The widget has no connector");
    assert_eq!(bring(of_acme(CHAT), ACME, &hello).await, unconnected);
    let short = "String should have at least 1 character";
    let number = "value is not a valid phone number: 8 to 15 digits with the country code";
    let body = |field: &str, kind: &str, msg: &str| issue(&json!(["body", field]), kind, msg);
    let wanted = json!([
        body("from", "value_error", number),
        body("text", "string_too_short", short),
        body("external_id", "string_too_short", short),
    ]);
    assert_eq!(bring(of_acme(SMS), ACME, &from("0151 2345678", "", "")).await, (422, wanted));
    let missing = ["from", "text", "external_id"].map(|field| body(field, "missing", "Field required"));
    assert_eq!(bring(of_acme(SMS), ACME, &json!({})).await, (422, json!(missing)));
    assert_eq!(changes(&stack, &before).await, nothing());

    let longest = from(FROM, &"😀".repeat(32_768), &"😀".repeat(256));
    let path = format!("/api/v1/widget/{}/inbound", of_acme(SMS));
    let received = data(&stack.answer(&post(&path, ACME, longest.to_string())).await);
    let path = format!("/api/v1/conversation/{}/transcript", received["conversation_id"].as_str().unwrap());
    assert_eq!(get(&stack, &path).await["items"][0]["text"], longest["text"]);
}
