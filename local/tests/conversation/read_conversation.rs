//! `GET /api/v1/conversation/{conversation_id}`: reads a conversation with a page of its transcript.

use serde_json::json;
use shared::records::conversation::{Changed, NewMessage, SenderType, add_message};
use shared::values::id::{ConversationId, MessageId};
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::demo_set::{self, message};
use crate::support::fixture::{ACME, NOW, acme, call, data, get, id, kind, stack};

#[tokio::test]
async fn a_conversation_has_its_transcript() {
    let answer =
        stack().await.answer(&call("GET", "/api/v1/conversation/01900000-0000-7000-8000-a00f00000000", ACME)).await;
    let said = [message(0, "bot", "Hello, how can we help?"), message(1, "user", "Until when are you open?")];
    let mut wanted = demo_set::conversation(0);
    wanted["transcript"] = json!({
        "items": said,
        "total": 2,
        "page": 1,
        "size": 50,
        "pages": 1,
        "previous_page": null,
        "next_page": null,
    });
    assert_eq!(data(&answer), wanted);
}

#[tokio::test]
async fn every_page_of_a_long_transcript_has_its_messages_in_order() {
    const SAID: usize = 130;
    let stack = stack().await;
    let (table, conversation) = (acme(&stack), id('a', kind::CONVERSATION, 1));
    let mut texts = vec!["Hello, how can we help?".to_owned()];
    for number in 1..SAID {
        texts.push(format!("{number}"));
        let new = NewMessage::text(SenderType::User, texts[number].as_str().into());
        let (conversation, now) = (ConversationId(conversation.parse().unwrap()), Timestamp::from_unix_millis(NOW));
        let once = (None, None);
        let said = add_message(&table, conversation, MessageId(Uuid::nil()), &new, once, now).await.unwrap();
        assert!(matches!(said, Changed::Done(_)));
    }
    for size in [1, 7, 50, 100] {
        let pages = SAID.div_ceil(size);
        for page in (1..=pages + 1).step_by(if size == 1 { 13 } else { 1 }) {
            let path = format!("/api/v1/conversation/{conversation}?page={page}&size={size}");
            let transcript = get(&stack, &path).await["transcript"].take();
            let wanted: Vec<_> = texts.iter().skip((page - 1) * size).take(size).collect();
            let items = transcript["items"].as_array().unwrap().iter().map(|message| message["text"].clone());
            assert_eq!(json!(items.collect::<Vec<_>>()), json!(wanted), "page {page} of {size}");
            assert_eq!((&transcript["total"], &transcript["pages"]), (&json!(SAID), &json!(pages)));
        }
    }
}
