//! `POST /api/v1/messaging/{widget_id}/contacts`: runs a campaign through a widget that sends messages.

use serde_json::json;

use crate::support::fixture::{ACME, data, id, kind, post, stack};
use crate::support::records::{changes, conflict, detail, items, nothing};

#[tokio::test]
async fn a_repeat_by_either_route_answers_the_first_run() {
    let stack = stack().await;
    let widget = id('a', kind::WIDGET, 1);
    let body = json!({"contact_ids": [id('a', kind::CONTACT, 4), id('a', kind::CONTACT, 2)], "message": "Hi"});
    let run = async |path: &str| data(&stack.answer(&post(path, ACME, body.to_string())).await);
    let first = run(&format!("/api/v1/messaging/{widget}/contacts")).await;
    assert_eq!((&first["status"], &first["contacts"]), (&json!("queued"), &json!(2)));
    let before = items(&stack).await;
    for path in [format!("/api/v1/messaging/{widget}/contacts"), format!("/api/v1/campaign/run/{widget}")] {
        assert_eq!(run(&path).await, first, "{path}");
    }
    assert_eq!(changes(&stack, &before).await, nothing());
}

#[tokio::test]
async fn refuses_a_widget_that_makes_calls_before_it_reads_contacts() {
    let stack = stack().await;
    let before = items(&stack).await;
    let path = format!("/api/v1/messaging/{}/contacts", id('a', kind::WIDGET, 2));
    for contact in [id('a', kind::CONTACT, 1), id('b', kind::CONTACT, 1)] {
        let answer = stack.answer(&post(&path, ACME, json!({"contact_ids": [contact]}).to_string())).await;
        let wanted = conflict("widget_id", "widget_makes_calls", "The widget makes calls");
        assert_eq!(detail(&answer), wanted);
    }
    assert_eq!(changes(&stack, &before).await, nothing());
}
