//! `POST /api/v1/campaign/run/{widget_id}`: queues a message or a call to each contact of a list.

use std::sync::atomic::Ordering;

use aws_sdk_dynamodb::types::AttributeValue;
use local::Stack;
use local::database::TABLE_NAME;
use local::http::Answer;
use serde_json::{Value, json};
use shared::values::time::Clock;

use crate::support::fixture::{ACME, contact_id, data, get, id, kind, post, settings, stack};
use crate::support::records::{
    FRESH, Key, NO_UUID, NOBODYS, TEST_TIME, changes, detail, fresh, head, issue, items, key, not_found, nothing, row,
    wrong,
};
use crate::support::sender::counts;

/// Widgets of the demo set. The SMS one has no opening message.
const CHAT: u32 = 1;
const PHONE: u32 = 2;
const SMS: u32 = 3;

fn contact(number: u32) -> String {
    contact_id(number)
}

async fn run(stack: &Stack, widget: u32, body: impl ToString) -> Answer {
    let path = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, widget));
    stack.answer(&post(&path, ACME, body.to_string())).await
}

/// `body` with the contact `number`.
fn to(number: u32, mut body: Value) -> Value {
    body["contact_ids"] = json!([contact(number)]);
    body
}

/// The campaign of the answered run.
async fn campaign(stack: &Stack, answer: &Answer) -> Value {
    let id = data(answer)["campaign_id"].as_str().unwrap().to_owned();
    get(stack, &format!("/api/v1/campaign/get/{id}")).await
}

/// The campaign of a run to three contacts, as it is stored.
fn stored_campaign() -> Value {
    json!({
        "record": "Campaign",
        "id": fresh(0, 3),
        "name": null,
        "type": "message",
        "widget_id": id('a', kind::WIDGET, CHAT),
        "assistant_id": id('a', kind::ASSISTANT, 1),
        "message": null,
        "start_new_conversation": false,
        "status": "queued",
        "counts": counts([("queued", 3)]),
        "outcomes": {},
        "retry_policy": null,
        "start_time": null,
        "interval": null,
        "execution_weekdays": [],
        "time_window_start": null,
        "time_window_end": null,
        "time_zone": "UTC",
        "enabled": false,
        "attributes": "{}",
        "next_run_at": null,
        "last_run_at": null,
        "created_at": TEST_TIME,
        "updated_at": TEST_TIME,
        // The sender finds the campaign by these, and begins with its first contact.
        "next_place": 0,
        "unscheduled": false,
        "round": 0,
        "text_version": 0,
        "has_pointers": false,
        "spreads_contacts": true,
        "lists_waiting": true,
        "due_pk": "CAMPAIGN#3",
        "due_at": TEST_TIME,
    })
}

#[tokio::test]
async fn a_run_stores_a_campaign_and_a_record_per_contact() {
    let stack = stack().await;
    let before = items(&stack).await;
    // The id of contact 4 comes three times, in three forms.
    let [a, b, c] = [4, 9, 2].map(contact);
    let body = json!({"contact_ids": [a, b, a.to_uppercase(), c, a.replace('-', "")], "message": "Hi"});
    let answer = run(&stack, CHAT, body).await;
    let wanted = json!({"campaign_id": fresh(0, 3), "status": "queued", "contacts": 3});
    assert_eq!(data(&answer), wanted);

    let of_run = |sk: &str| key(&format!("CAMPAIGN_RUN#{}", FRESH[0]), sk);
    let mut wanted = vec![
        (row("CAMPAIGN", 3), stored_campaign()),
        // This pointer leads from a contact to its campaign.
        (of_run("CAMPAIGN"), json!({"id": fresh(0, 3)})),
        // The text has its own item, because the campaign changes often.
        (of_run("CAMPAIGN_TEXT"), json!({"text": "Hi"})),
    ];
    wanted.extend([a, b, c].into_iter().enumerate().map(|(place, contact)| {
        // The id of a campaign's contact is the beginning of the campaign's id and the contact's place, from 1 on.
        let id = format!("{}{:08x}", &FRESH[0][..28], place + 1);
        let key = key(&format!("CAMPAIGN_CONTACT#{}#00", FRESH[0]), &id);
        let item = json!({
            "id": id,
            "campaign_id": FRESH[0],
            "contact_id": contact,
            "status": "queued",
            "conversation_id": null,
            "error": null,
            "result": null,
            "attempts": 0,
            "next_attempt_at": null,
            "created_at": TEST_TIME,
            "updated_at": TEST_TIME,
        });
        (key, item)
    }));
    let with_key = |((pk, sk), mut item): (Key, Value)| {
        (item["pk"], item["sk"]) = (pk.as_str().into(), sk.as_str().into());
        ((pk, sk), item)
    };
    let wanted = head("CAMPAIGN", 4).into_iter().chain(wanted.into_iter().map(with_key)).collect();
    let (gone, mut new) = changes(&stack, &before).await;
    // The item that stores the request is no record.
    new.retain(|(pk, _), _| !pk.contains("#RUN#"));
    assert_eq!((gone, new), (head("CAMPAIGN", 3), wanted));
}

#[tokio::test]
async fn a_chat_has_a_message_and_a_call_has_none() {
    let stack = stack().await;
    let opening = json!("Hello, how can we help?");
    let cases = [
        (CHAT, json!({}), opening.clone(), false),
        (CHAT, json!({"message": null, "start_new_conversation": null}), opening, false),
        (CHAT, json!({"message": "Hi"}), json!("Hi"), false),
        (CHAT, json!({"message": "Hi", "start_new_conversation": true}), json!("Hi"), true),
        (SMS, json!({"message": "Hi", "start_new_conversation": "yes"}), json!("Hi"), true),
        (SMS, json!({"message": "Hi", "start_new_conversation": false}), json!("Hi"), false),
        (PHONE, json!({}), Value::Null, true),
        (PHONE, json!({"message": "Hi", "start_new_conversation": false}), Value::Null, true),
        (PHONE, json!({"message": null, "start_new_conversation": true}), Value::Null, true),
    ];
    for (number, (widget, body, message, anew)) in (0..).zip(cases) {
        let stored = campaign(&stack, &run(&stack, widget, to(number, body.clone())).await).await;
        let found = (&stored["message"], &stored["start_new_conversation"]);
        assert_eq!(found, (&message, &json!(anew)), "{widget} {body}");
    }
}

#[tokio::test]
async fn each_widget_type_makes_calls_or_requires_a_message() {
    const CHATS: [&str; 9] =
        ["chat", "html", "fb_messenger", "instagram", "whatsapp", "sms", "telegram", "leadconnector", "render_form"];
    const CALLS: [&str; 7] =
        ["phone", "html_call", "web_call", "sip", "plivo_call", "telnyx_call", "leadconnector_call"];
    let stack = stack().await;
    let (pk, sk) = row("WIDGET", SMS);
    let wordless = json!([issue(&json!(["body", "message"]), "missing", "Field required")]);
    for (number, word) in (0..).zip(CHATS.into_iter().chain(CALLS)) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let update = stack.client.update_item().table_name(TABLE_NAME).key("pk", text(&pk)).key("sk", text(&sk));
        let update = update.update_expression("SET widget_type = :word");
        update.expression_attribute_values(":word", text(word)).send().await.unwrap();
        let before = items(&stack).await;
        let silent = run(&stack, SMS, to(number, json!({}))).await;
        if CALLS.contains(&word) {
            assert_eq!(campaign(&stack, &silent).await["start_new_conversation"], true, "{word}");
            continue;
        }
        assert_eq!(detail(&silent), (422, wordless.clone()), "{word}");
        let silent = run(&stack, SMS, to(number, json!({"message": null}))).await;
        assert_eq!(detail(&silent), (422, wordless.clone()), "{word}");
        assert_eq!(changes(&stack, &before).await, nothing(), "{word}");
        let with_message = run(&stack, SMS, to(number, json!({"message": "Hi"}))).await;
        assert_eq!(campaign(&stack, &with_message).await["start_new_conversation"], false, "{word}");
    }
}

#[tokio::test]
async fn lists_every_issue_and_queues_nothing() {
    let stack = stack().await;
    let before = items(&stack).await;
    let many = |count| json!({"contact_ids": vec![contact(0); count]});
    let list = |kind: &str, msg: &str| json!([issue(&json!(["body", "contact_ids"]), kind, msg)]);
    let no_list = list("list_type", "Input should be a valid list");
    let not_text = "UUID input should be a string, bytes or UUID object";
    // This id belongs to a widget.
    let widget = id('a', kind::WIDGET, 1);
    for (body, wanted) in [
        (json!({}), list("missing", "Field required")),
        (json!({"contact_ids": null}), no_list.clone()),
        (json!({"contact_ids": contact(0)}), no_list),
        (many(0), list("too_short", "List should have at least 1 item after validation, not 0")),
        (many(10_001), list("too_long", "List should have at most 10000 items after validation, not 10001")),
        (
            json!({"contact_ids": [contact(0), NOBODYS, contact(1), widget, contact(99), NOBODYS]}),
            json!([1, 3, 4, 5].map(|index| issue(&json!(["body", "contact_ids", index]), "not_found", "Not found"))),
        ),
        // Malformed ids are refused before unknown ones are looked up.
        (
            json!({"start_new_conversation": 2, "message": 1, "contact_ids": ["x", contact(0), 12, NOBODYS, null]}),
            json!([
                issue(&json!(["body", "contact_ids", 0]), "uuid_parsing", NO_UUID),
                issue(&json!(["body", "contact_ids", 2]), "uuid_type", not_text),
                issue(&json!(["body", "contact_ids", 4]), "uuid_type", not_text),
                issue(&json!(["body", "message"]), "string_type", "Input should be a valid string"),
                issue(
                    &json!(["body", "start_new_conversation"]),
                    "bool_parsing",
                    "Input should be a valid boolean, unable to interpret input"
                ),
            ]),
        ),
    ] {
        assert_eq!(detail(&run(&stack, CHAT, body).await), (422, wanted));
    }
    // The widget is checked before the contacts.
    assert_eq!(detail(&run(&stack, 99, json!({"contact_ids": [NOBODYS]})).await), not_found("widget_id"));
    assert_eq!(changes(&stack, &before).await, nothing());
    assert_eq!(data(&run(&stack, CHAT, many(10_000)).await)["contacts"], 1);
}

#[tokio::test]
async fn a_repeat_within_ten_minutes_answers_the_first_run() {
    const TEN_MINUTES: i64 = 600_000;
    let settings = settings();
    let Clock::Manual(clock) = settings.clock.clone() else { panic!("the tests' clock is set by hand") };
    let stack = Stack::start(settings).await.unwrap();
    let (a, b) = (contact(0), contact(1));
    let first = data(&run(&stack, CHAT, format!(r#"{{"contact_ids":["{a}","{b}"]}}"#)).await);
    let before = items(&stack).await;
    clock.fetch_add(TEN_MINUTES - 1, Ordering::SeqCst);
    for repeat in [
        format!(r#"{{"contact_ids":["{a}","{b}"]}}"#),
        format!(r#"{{ "start_new_conversation" : false, "message" : null, "contact_ids" : ["{a}", "{b}"] }}"#),
        format!(r#"{{"contact_ids":["{}","{b}","{a}"],"other":1}}"#, a.to_uppercase()),
        format!(r#"{{"contact_ids":["{b}","{a}"]}}"#),
    ] {
        assert_eq!(data(&run(&stack, CHAT, &repeat).await), first, "{repeat}");
    }
    assert_eq!(changes(&stack, &before).await, nothing());
    clock.fetch_add(1, Ordering::SeqCst);
    let second = data(&run(&stack, CHAT, format!(r#"{{"contact_ids":["{a}","{b}"]}}"#)).await);
    assert_ne!(second["campaign_id"], first["campaign_id"]);
    let (_, new) = changes(&stack, &before).await;
    let contacts = new.keys().filter(|(pk, _)| pk.contains("#CAMPAIGN_CONTACT#")).count();
    assert_eq!(contacts, 2);
}

#[tokio::test]
async fn a_repeat_after_a_cancellation_starts_one_new_run() {
    let stack = stack().await;
    let body = json!({"contact_ids": [contact(0), contact(1)]});
    let cancel = async |run: &Value| {
        let path = format!("/api/v1/campaign/{}/cancel", run["campaign_id"].as_str().unwrap());
        assert_eq!(stack.answer(&post(&path, ACME, String::new())).await.status, 200);
    };
    let first = data(&run(&stack, CHAT, &body).await);
    cancel(&first).await;
    let (second, third) = tokio::join!(run(&stack, CHAT, &body), run(&stack, CHAT, &body));
    let second = data(&second);
    assert_ne!(second["campaign_id"], first["campaign_id"]);
    assert_eq!(data(&third), second, "two concurrent requests start two runs");
    assert_eq!(data(&run(&stack, CHAT, &body).await), second);
    cancel(&second).await;
    assert_ne!(data(&run(&stack, CHAT, &body).await)["campaign_id"], second["campaign_id"]);
}

#[tokio::test]
async fn each_different_request_starts_another_run() {
    let stack = stack().await;
    let mut ids = Vec::new();
    for (widget, contacts, message, anew) in [
        (CHAT, &[0, 1][..], Some("Hi"), false),
        (CHAT, &[0, 1], Some("Hi!"), false),
        (CHAT, &[0, 1], Some(""), false),
        (CHAT, &[0, 1], None, false),
        (CHAT, &[0, 1], Some("Hi"), true),
        (CHAT, &[0], Some("Hi"), false),
        (CHAT, &[0, 2], Some("Hi"), false),
        (CHAT, &[0, 1, 2], Some("Hi"), false),
        (SMS, &[0, 1], Some("Hi"), false),
    ] {
        let contacts: Vec<_> = contacts.iter().copied().map(contact).collect();
        let body = json!({"contact_ids": contacts, "message": message, "start_new_conversation": anew});
        ids.push(data(&run(&stack, widget, body).await)["campaign_id"].to_string());
    }
    let runs = ids.len();
    assert!(ids.is_sorted(), "{ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), runs);
}

#[tokio::test]
async fn a_refused_request_does_not_block_a_repeat() {
    let stack = stack().await;
    let body = json!({"contact_ids": [contact(0)]});
    assert_eq!(run(&stack, SMS, &body).await.status, 422);
    assert_eq!(run(&stack, SMS, &body).await.status, 422);
    assert_eq!(run(&stack, CHAT, &body).await.status, 200);
}

#[tokio::test]
async fn refuses_more_than_32_768_characters_of_any_byte_length() {
    let stack = stack().await;
    // They take one, two, three and four bytes and, as escapes, six and twelve.
    for character in ["x", "é", "€", "😀", r"\u20ac", r"\ud83d\ude00"] {
        let body = |count: usize| {
            let (contact, message) = (contact(0), character.repeat(count));
            format!(r#"{{"contact_ids":["{contact}"],"message":"{message}"}}"#)
        };
        let longest = campaign(&stack, &run(&stack, CHAT, body(32_768)).await).await;
        assert_eq!(longest["message"].as_str().unwrap().chars().count(), 32_768, "{character}");
        let before = items(&stack).await;
        for count in [32_769, 500_000 / character.len(), 900_000 / character.len()] {
            let wanted = wrong("message", "string_too_long", "String should have at most 32768 characters");
            assert_eq!(detail(&run(&stack, CHAT, body(count.max(32_769))).await), wanted, "{character} {count}");
        }
        assert_eq!(changes(&stack, &before).await, nothing(), "{character}");
    }
}
