//! `POST /api/v1/call/{widget_id}/contacts`: runs a campaign through a widget that makes calls.

use serde_json::{Value, json};

use crate::support::fixture::{ACME, data, get, id, kind, post, stack};
use crate::support::records::{changes, conflict, detail, items, nothing};

#[tokio::test]
async fn runs_a_campaign_of_calls() {
    let stack = stack().await;
    let path = format!("/api/v1/call/{}/contacts", id('a', kind::WIDGET, 2));
    let body = json!({"contact_ids": [id('a', kind::CONTACT, 1)], "message": "Hi", "start_new_conversation": false});
    let run = data(&stack.answer(&post(&path, ACME, body.to_string())).await);
    let path = format!("/api/v1/campaign/get/{}", run["campaign_id"].as_str().unwrap());
    let campaign = get(&stack, &path).await;
    assert_eq!((&campaign["message"], &campaign["start_new_conversation"]), (&Value::Null, &json!(true)));
    assert_eq!(campaign["widget_id"], id('a', kind::WIDGET, 2));
}

#[tokio::test]
async fn refuses_a_widget_that_sends_messages() {
    let stack = stack().await;
    let before = items(&stack).await;
    let path = format!("/api/v1/call/{}/contacts", id('a', kind::WIDGET, 1));
    let answer =
        stack.answer(&post(&path, ACME, json!({"contact_ids": [id('a', kind::CONTACT, 1)]}).to_string())).await;
    let wanted = conflict("widget_id", "widget_sends_messages", "The widget sends messages");
    assert_eq!(detail(&answer), wanted);
    assert_eq!(changes(&stack, &before).await, nothing());
}
