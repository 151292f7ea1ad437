//! `GET /api/v1/conversation/{conversation_id}/transcript`: a page of what was said.

use serde_json::json;

use super::read_conversation::message;
use crate::fixture::{ACME, call, stack};
use crate::records::{NOBODYS, detail, list_begins_with, not_found};

#[tokio::test]
async fn what_was_said_first_stands_first() {
    list_begins_with(
        "/api/v1/conversation/01900000-0000-7000-8000-a00f00000000/transcript",
        message(0, "bot", "Hello, how can we help?"),
    )
    .await;
}

#[tokio::test]
async fn what_is_not_there_has_no_transcript() {
    let stack = stack().await;
    for other in [NOBODYS, "01900000-0000-7000-8000-b00f00000000", "01900000-0000-7000-8000-a00f00000002"] {
        let answer = stack.answer(&call("GET", &format!("/api/v1/conversation/{other}/transcript"), ACME)).await;
        assert_eq!(detail(&answer), not_found("conversation_id"), "{other} {}", json!(answer.status));
    }
}
