//! `GET /api/v1/conversation/by-contact/{contact_id}`: lists the conversations with a contact.

use serde_json::json;

use crate::support::demo_set::conversation;
use crate::support::fixture::{get, id, kind, stack};

#[tokio::test]
async fn lists_only_the_conversations_of_the_contact() {
    let stack = stack().await;
    for (contact, wanted) in [(0, vec![conversation(0)]), (1, vec![conversation(1)]), (2, vec![])] {
        let path = format!("/api/v1/conversation/by-contact/{}", id('a', kind::CONTACT, contact));
        let page = get(&stack, &path).await;
        assert_eq!((&page["total"], &page["items"]), (&json!(wanted.len()), &json!(wanted)), "{contact}");
    }
}
