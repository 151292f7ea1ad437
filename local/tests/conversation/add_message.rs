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
            "in_reply_to": null,
            "data_source_ids": [],
            "created_at": TEST_TIME,
            "updated_at": TEST_TIME,
        });
        let answer = say(&stack, OPEN, &body).await;
        assert_eq!(data(&answer), message, "{body}");
        let (gone, mut new) = changes(&stack, &before).await;
        let item = new.remove(&key(&format!("MESSAGE#{conversation}"), "0000000001")).unwrap();
        let mut wanted = stored(&message, &[], &key(&format!("MESSAGE#{conversation}"), "0000000001"));
        wanted.as_object_mut().unwrap().retain(|name, _| !["in_reply_to", "data_source_ids"].contains(&&**name));
        assert_eq!(item, wanted);
        let row = row("CONVERSATION", OPEN);
        let mut larger = gone[&row].clone();
        (larger["chat_count"], larger["updated_at"], larger["version"]) = (2.into(), TEST_TIME.into(), 2.into());
        larger["includes_voice"] = json!(message_type == "voice");
        larger["last_sender"] = "user".into();
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

/// The first message of the open conversation.
fn question() -> String {
    id('a', kind::MESSAGE, 0)
}

/// A bot's answer to the message `of`.
fn answers(of: &str) -> Value {
    json!({"sender_type": "bot", "text": "9 to 5", "in_reply_to": of})
}

fn already_answered() -> (u16, Value) {
    let loc = json!(["body", "in_reply_to"]);
    (409, json!([issue(&loc, "already_answered", "Another message has answered this one")]))
}

#[tokio::test]
async fn exactly_one_of_64_answers_to_a_message_is_stored() {
    let stack = stack().await;
    let body = answers(&question());
    let answers = futures_util::future::join_all((0..64).map(|_| say(&stack, OPEN, &body))).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!((won.len(), lost.len()), (1, 63));
    assert!(lost.iter().all(|answer| detail(answer) == already_answered()), "{}", lost[0].body);
    let read = read(&stack).await;
    assert_eq!((&read["chat_count"], &read["transcript"]["items"][1]), (&json!(2), &data(won[0])));
    assert_eq!(read["transcript"]["items"][1]["in_reply_to"], question());
    // The answer itself can be answered, and a message without the field goes on.
    let next = answers_of(&data(won[0]));
    assert_eq!(data(&say(&stack, OPEN, &next).await)["in_reply_to"], data(won[0])["id"]);
    assert_eq!(say(&stack, OPEN, &json!({"sender_type": "bot", "text": "Bye"})).await.status, 201);
}

fn answers_of(message: &Value) -> Value {
    answers(message["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_repeat_of_an_answer_gets_its_first_result() {
    let stack = stack().await;
    let with_key = |key: &str| {
        let body = answers(&question()).to_string();
        keyed(post(&path(&id('a', kind::CONVERSATION, OPEN)), ACME, body), key)
    };
    let (winner, loser) = (with_key(KEY), with_key("6b2d0a52-1f5c-4c1e-9f0e-canary000002"));
    let first = stack.answer(&winner).await;
    assert_eq!(first.status, 201, "{}", first.body);
    assert_eq!(detail(&stack.answer(&loser).await), already_answered());
    for _ in 0..2 {
        assert_eq!(stack.answer(&winner).await.body, first.body);
        assert_eq!(detail(&stack.answer(&loser).await), already_answered());
    }
    assert_eq!(read(&stack).await["chat_count"], 2);
}

#[tokio::test]
async fn an_answer_changes_the_question_and_nothing_else() {
    let stack = stack().await;
    let (before, conversation) = (items(&stack).await, id('a', kind::CONVERSATION, OPEN));
    let said = data(&say(&stack, OPEN, &answers(&question())).await);
    let (gone, new) = changes(&stack, &before).await;
    let partition = format!("MESSAGE#{conversation}");
    let asked = key(&partition, "0000000000");
    let mut answered = before[&asked].clone();
    answered["answered_by"] = said["id"].clone();
    assert_eq!(new[&asked], answered);
    let changed: Vec<_> = new.keys().cloned().collect();
    let wanted = [row("CONVERSATION", OPEN), asked.clone(), key(&partition, "0000000001")];
    assert_eq!((changed, gone.len()), (wanted.to_vec(), 2));
    // An answer is not shown by the message that it answers.
    assert_eq!(read(&stack).await["transcript"]["items"][0].get("answered_by"), None);
}

#[tokio::test]
async fn refuses_an_answer_to_a_message_of_another_conversation() {
    let stack = stack().await;
    let opened = post("/api/v1/conversation", ACME, json!({"assistant_id": id('a', kind::ASSISTANT, 1)}).to_string());
    let other = data(&stack.answer(&opened).await);
    let elsewhere = post(&path(other["id"].as_str().unwrap()), ACME, r#"{"sender_type":"user","text":"Hi"}"#);
    let elsewhere = data(&stack.answer(&elsewhere).await);
    let before = items(&stack).await;
    let unknown = (422, json!([issue(&json!(["body", "in_reply_to"]), "not_found", "Not found")]));
    // The last ones have the place of the new message itself, and places after it.
    let places = ["00000001", "00000002", "ffffffff"].map(|place| format!("{}{place}", &question()[..28]));
    for of in places.iter().map(String::as_str).chain([
        elsewhere["id"].as_str().unwrap(),
        NOBODYS,
        &id('b', kind::MESSAGE, 0),
    ]) {
        assert_eq!(detail(&say(&stack, OPEN, &answers(of)).await), unknown, "{of}");
    }
    assert_eq!(changes(&stack, &before).await, nothing());
    let closed = conflict("conversation_id", "conversation_closed", "The conversation is closed");
    assert_eq!(detail(&say(&stack, CLOSED, &answers(&question())).await), closed);
}

#[tokio::test]
async fn refuses_what_only_a_bot_may_say_at_each_field() {
    let stack = stack().await;
    let before = items(&stack).await;
    let source = id('a', kind::DATASOURCE, 1);
    for sender in ["agent", "user", "tool"] {
        let body = json!({"sender_type": sender, "text": "", "in_reply_to": question(), "data_source_ids": [source]});
        let message = "Value error, only the message of a bot can have this field";
        let wrong = |field| issue(&json!(["body", field]), "value_error", message);
        let wanted = (422, json!([wrong("in_reply_to"), wrong("data_source_ids")]));
        assert_eq!(detail(&say(&stack, OPEN, &body).await), wanted, "{sender}");
    }
    assert_eq!(changes(&stack, &before).await, nothing());
    let body = json!({"sender_type": "user", "text": "", "in_reply_to": null, "data_source_ids": null});
    assert_eq!(say(&stack, OPEN, &body).await.status, 201);
}

#[tokio::test]
async fn stores_at_most_20_data_sources_of_the_organisation() {
    let stack = stack().await;
    let sources: Vec<String> = (0..2).map(|number| id('a', kind::DATASOURCE, number)).collect();
    let from = |sources: &Value| json!({"sender_type": "bot", "text": "9 to 5", "data_source_ids": sources});
    // A data source may be named twice.
    let most: Vec<&String> = sources.iter().cycle().take(20).collect();
    let said = data(&say(&stack, OPEN, &from(&json!(most))).await);
    assert_eq!(said["data_source_ids"], json!(most));
    assert_eq!(read(&stack).await["transcript"]["items"][1], said);

    let before = items(&stack).await;
    let more: Vec<&String> = sources.iter().cycle().take(21).collect();
    let msg = "List should have at most 20 items after validation, not 21";
    let wanted = (422, json!([issue(&json!(["body", "data_source_ids"]), "too_long", msg)]));
    assert_eq!(detail(&say(&stack, OPEN, &from(&json!(more))).await), wanted);
    let unknown = json!([sources[0], NOBODYS, sources[1], id('b', kind::DATASOURCE, 0)]);
    let missing = |index| issue(&json!(["body", "data_source_ids", index]), "not_found", "Not found");
    assert_eq!(detail(&say(&stack, OPEN, &from(&unknown)).await), (422, json!([missing(1), missing(3)])));
    assert_eq!(changes(&stack, &before).await, nothing());
}

/// A transcript must fit into the memory of the function that sends it.
#[tokio::test]
async fn data_sources_count_as_text_of_the_conversation() {
    let stack = stack().await;
    let from = json!({"sender_type": "bot", "text": "12345", "data_source_ids": [id('a', kind::DATASOURCE, 0)]});
    let before = items(&stack).await[&row("CONVERSATION", OPEN)]["text_bytes"].as_u64().unwrap();
    data(&say(&stack, OPEN, &from).await);
    assert_eq!(items(&stack).await[&row("CONVERSATION", OPEN)]["text_bytes"], before + 85);
    has(&stack, 2, 4 * 1024 * 1024 - 84).await;
    let full = conflict("conversation_id", "conversation_full", "The conversation has no room for this message");
    assert_eq!(detail(&say(&stack, OPEN, &from).await), full);
}
