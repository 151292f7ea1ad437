//! `GET /api/v1/conversation/{conversation_id}/transcript`: a page of what was said.

use crate::support::demo_set::message;
use crate::support::records::list_begins_with;

#[tokio::test]
async fn what_was_said_first_stands_first() {
    list_begins_with(
        "/api/v1/conversation/01900000-0000-7000-8000-a00f00000000/transcript",
        message(0, "bot", "Hello, how can we help?"),
    )
    .await;
}
