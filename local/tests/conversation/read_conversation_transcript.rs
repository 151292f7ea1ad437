//! `GET /api/v1/conversation/{conversation_id}/transcript`: reads a page of the messages.

use crate::support::demo_set::message;
use crate::support::fixture::{get, id, kind, stack};

#[tokio::test]
async fn the_first_message_is_the_first_item() {
    let path = format!("/api/v1/conversation/{}/transcript", id('a', kind::CONVERSATION, 0));
    let page = get(&stack().await, &path).await;
    assert_eq!(page["items"][0], message(0, "bot", "Hello, how can we help?"));
}
