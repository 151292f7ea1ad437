//! `POST /api/v1/conversation/{conversation_id}/message`: adds a message to an open conversation.

use aws_sdk_dynamodb::types::AttributeValue;
use local::Stack;
use local::database::TABLE_NAME;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, data, id, kind, post, stack};
use crate::support::keyed::{KEY, keyed};
use crate::support::records::{
    FRESH, NOBODYS, TEST_TIME, changes, conflict, detail, issue, items, key, nothing, row, stored,
};

/// Conversations of the demo set. The open one has a message.
const CLOSED: u32 = 0;
const OPEN: u32 = 1;

fn path(id: &str) -> String {
    format!("/api/v1/conversation/{id}/message")
}

async fn say(stack: &Stack, conversation: u32, body: &Value) -> Answer {
    stack.answer(&post(&path(&id('a', kind::CONVERSATION, conversation)), ACME, body.to_string())).await
}

async fn read(stack: &Stack) -> Value {
    let path = format!("/api/v1/conversation/{}", id('a', kind::CONVERSATION, OPEN));
    let call = call("GET", &path, ACME);
    data(&stack.answer(&local::http::Call { query: format!("{}&size=100", call.query), ..call }).await)
}

#[tokio::test]
async fn stores_the_message_and_updates_the_conversation() {
    for (body, message_type) in [
        (json!({"sender_type": "user", "text": "Hi"}), "text"),
        (json!({"sender_type": "user", "text": "Hi", "message_type": null, "char_count": 9, "id": NOBODYS}), "text"),
        (json!({"sender_type": "user", "text": "Hi", "message_type": "voice"}), "voice"),
    ] {
        let stack = stack().await;
        let before = items(&stack).await;
        let conversation = id('a', kind::CONVERSATION, OPEN);
        let message = json!({
            "id": format!("{}00000001", &FRESH[0][..28]),
            "conversation_id": conversation,
            "sender_type": "user",
            "message_type": message_type,
            "text": "Hi",
            "char_count": 2,
            "created_at": TEST_TIME,
            "updated_at": TEST_TIME,
        });
        let answer = say(&stack, OPEN, &body).await;
        assert_eq!(data(&answer), message, "{body}");
        let (gone, mut new) = changes(&stack, &before).await;
        let item = new.remove(&key(&format!("MESSAGE#{conversation}"), "0000000001")).unwrap();
        assert_eq!(item, stored(&message, &[], &key(&format!("MESSAGE#{conversation}"), "0000000001")));
        let row = row("CONVERSATION", OPEN);
        let mut larger = gone[&row].clone();
        (larger["chat_count"], larger["updated_at"], larger["version"]) = (2.into(), TEST_TIME.into(), 2.into());
        larger["includes_voice"] = json!(message_type == "voice");
        larger["text_bytes"] = (larger["text_bytes"].as_u64().unwrap() + 2).into();
        assert_eq!((gone.len(), new), (1, [(row, larger)].into()));
    }
}

#[tokio::test]
async fn messages_of_every_sender_type_keep_their_order() {
    let stack = stack().await;
    let mut said = vec!["Hello, how can we help?".to_owned()];
    for sender in ["bot", "agent", "user", "tool"].into_iter().cycle().take(10) {
        let text = format!("{sender} {}", said.len());
        let message = data(&say(&stack, OPEN, &json!({"sender_type": sender, "text": text})).await);
        assert_eq!(message["sender_type"], sender);
        said.push(text);
        let read = read(&stack).await;
        let texts = read["transcript"]["items"].as_array().unwrap().iter().map(|message| message["text"].clone());
        assert_eq!(json!(texts.collect::<Vec<_>>()), json!(said));
        assert_eq!((&read["chat_count"], &read["transcript"]["total"]), (&json!(said.len()), &json!(said.len())));
    }
}

#[tokio::test]
async fn char_count_counts_characters() {
    let stack = stack().await;
    for (text, characters) in [("", 0), (" \n", 2), ("é", 1), ("e\u{301}", 2), ("😀", 1), ("👩‍👩‍👧", 5), ("\0", 1)]
    {
        let message = data(&say(&stack, OPEN, &json!({"sender_type": "user", "text": text})).await);
        assert_eq!((&message["text"], &message["char_count"]), (&json!(text), &json!(characters)));
    }
}

#[tokio::test]
async fn refuses_a_closed_conversation_after_the_issues_of_the_body() {
    let stack = stack().await;
    let before = items(&stack).await;
    let closed = conflict("conversation_id", "conversation_closed", "The conversation is closed");
    assert_eq!(detail(&say(&stack, CLOSED, &json!({"sender_type": "user", "text": "Hi"})).await), closed);
    let senders = "Input should be 'bot', 'agent', 'user' or 'tool'";
    let missing = |field| issue(&json!(["body", field]), "missing", "Field required");
    let wanted = json!([missing("sender_type"), missing("text")]);
    assert_eq!(detail(&say(&stack, CLOSED, &json!({})).await), (422, wanted));
    for wrong in [json!("User"), json!(null), json!(1)] {
        let wanted = json!([
            issue(&json!(["body", "sender_type"]), "enum", senders),
            issue(&json!(["body", "message_type"]), "enum", "Input should be 'voice' or 'text'"),
            issue(&json!(["body", "text"]), "string_type", "Input should be a valid string"),
        ]);
        let body = json!({"text": null, "message_type": "video", "sender_type": wrong});
        assert_eq!(detail(&say(&stack, 99, &body).await), (422, wanted), "{wrong}");
    }
    assert_eq!(changes(&stack, &before).await, nothing());
}

#[tokio::test]
async fn refuses_a_closed_conversation_with_an_idempotency_key_too() {
    let stack = stack().await;
    let body = json!({"sender_type": "user", "text": "One more thing"}).to_string();
    let call = keyed(post(&path(&id('a', kind::CONVERSATION, CLOSED)), ACME, body), KEY);
    let wanted = conflict("conversation_id", "conversation_closed", "The conversation is closed");
    assert_eq!(detail(&stack.answer(&call).await), wanted);
}

#[tokio::test]
async fn concurrent_messages_get_distinct_places() {
    let stack = stack().await;
    let bodies: Vec<_> = (0..20).map(|number| json!({"sender_type": "user", "text": format!("{number}")})).collect();
    let answers = futures_util::future::join_all(bodies.iter().map(|body| say(&stack, OPEN, body))).await;
    let mut said: Vec<Value> = answers.iter().map(data).collect();
    said.sort_by_key(|message| message["id"].as_str().unwrap()[28..].to_owned());
    let read = read(&stack).await;
    assert_eq!((&read["chat_count"], &read["transcript"]["total"]), (&json!(21), &json!(21)));
    assert_eq!(read["transcript"]["items"].as_array().unwrap()[1..], said);
    let places: Vec<_> = said.iter().map(|message| message["id"].as_str().unwrap()[28..].to_owned()).collect();
    assert_eq!(places, (1..21).map(|place| format!("{place:08x}")).collect::<Vec<_>>());
}

/// Sets the count of messages and bytes of the open conversation.
async fn has(stack: &Stack, messages: u64, bytes: u64) {
    let (pk, sk) = row("CONVERSATION", OPEN);
    let text = |text: String| AttributeValue::S(text);
    let update = stack.client.update_item().table_name(TABLE_NAME).key("pk", text(pk)).key("sk", text(sk));
    let update = update.update_expression("SET chat_count = :messages, text_bytes = :bytes");
    let update = update.expression_attribute_values(":messages", AttributeValue::N(messages.to_string()));
    update.expression_attribute_values(":bytes", AttributeValue::N(bytes.to_string())).send().await.unwrap();
}

#[tokio::test]
async fn a_full_conversation_refuses_messages_but_answers_a_repeat() {
    const MOST: u64 = 4 * 1024 * 1024;
    let full = conflict("conversation_id", "conversation_full", "The conversation has no room for this message");
    let body = json!({"sender_type": "user", "text": "é"});
    for (messages, bytes) in [(9_999, 0), (1, MOST - 2)] {
        let stack = stack().await;
        has(&stack, messages, bytes).await;
        let first = post(&path(&id('a', kind::CONVERSATION, OPEN)), ACME, body.to_string());
        let first = local::http::Call { headers: [("idempotency-key".to_owned(), "k".to_owned())].into(), ..first };
        let said = stack.answer(&first).await;
        assert_eq!(said.status, 201, "{}", said.body);
        assert_eq!(stack.answer(&first).await.body, said.body);
        assert_eq!(detail(&say(&stack, OPEN, &body).await), full);
        assert_eq!(read(&stack).await["chat_count"], messages + 1);
    }
    for (messages, bytes) in [(10_000, 0), (1, MOST - 1)] {
        let stack = stack().await;
        has(&stack, messages, bytes).await;
        assert_eq!(detail(&say(&stack, OPEN, &body).await), full);
    }
}
