//! `GET /api/v1/conversation/{conversation_id}/transcript`: a page of what was said.

use crate::support::demo_set::message;
use crate::support::fixture::{get, id, kind, stack};

#[tokio::test]
async fn what_was_said_first_stands_first() {
    let path = format!("/api/v1/conversation/{}/transcript", id('a', kind::CONVERSATION, 0));
    let page = get(&stack().await, &path).await;
    assert_eq!(page["items"][0], message(0, "bot", "Hello, how can we help?"));
}
