//! `DELETE /api/v1/assistant/{assistant_id}/intent/{intent_id}`: unlinks an intent from an assistant.

use serde_json::json;

use crate::support::fixture::{ACME, call, get, id, kind, post, stack};
use crate::support::records::{NOBODYS, deletes_with, detail, hole, key, not_found, row};

#[tokio::test]
async fn deletes_only_the_link() {
    let (assistant, intent) = (id('a', kind::ASSISTANT, 1), id('a', kind::INTENT, 1));
    let (pointer, list) = (key(&format!("INTENT_LINK#{intent}"), &assistant), format!("INTENT_LINK#{assistant}"));
    let record = json!({"intent_id": intent, "assistant_id": assistant});
    let path = format!("/api/v1/assistant/{assistant}/intent/{intent}");
    deletes_with(&path, record, &[pointer, row(&list, 0)], hole(&list, 0), "intent_id").await;
}

#[tokio::test]
async fn refuses_an_intent_that_another_assistant_has() {
    let stack = stack().await;
    let intent = id('a', kind::INTENT, 1);
    for other in [NOBODYS, &id('a', kind::ASSISTANT, 0)] {
        let answer = stack.answer(&call("DELETE", &format!("/api/v1/assistant/{other}/intent/{intent}"), ACME)).await;
        assert_eq!(detail(&answer), not_found("intent_id"), "{other}");
    }
}

#[tokio::test]
async fn an_unlinked_intent_can_be_linked_again() {
    let stack = stack().await;
    let (assistant, intent) = (id('a', kind::ASSISTANT, 1), id('a', kind::INTENT, 1));
    let (path, list) =
        (format!("/api/v1/assistant/{assistant}/intent/{intent}"), format!("/api/v1/assistant/{assistant}/intent"));
    let total = async || get(&stack, &list).await["total"].clone();
    assert_eq!(stack.answer(&call("DELETE", &path, ACME)).await.status, 200);
    assert_eq!(total().await, 0);
    assert_eq!(stack.answer(&post(&path, ACME, "")).await.status, 201);
    assert_eq!(total().await, 1);
}
