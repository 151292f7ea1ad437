//! `POST /api/v1/outbound_webhook/{webhook_id}/test`: sends a test event to a webhook.

use serde_json::{Value, json};

use crate::support::fixture::{ACME, NOW, call, data, id, kind, post, stack};
use crate::support::records::{FRESH, Items, TEST_TIME, changes, conflict, detail, head, items, key, nothing, row};

fn path(id: &str) -> String {
    format!("/api/v1/outbound_webhook/{id}/test")
}

/// The delivery of the first test event. The webhook has one delivery already.
fn first() -> Value {
    json!({
        "id": format!("{}00000001", &FRESH[0][..28]),
        "event_id": FRESH[0],
        "event": "webhook.test",
        "state": "ready",
        "attempts": 0,
        "status": null,
        "milliseconds": null,
        "error": null,
        "next_attempt_at": null,
        "log": [],
        "conversation_id": null,
        "campaign_contact_id": null,
        "created_at": TEST_TIME,
        "updated_at": TEST_TIME,
    })
}

#[tokio::test]
async fn stores_and_answers_a_delivery() {
    let stack = stack().await;
    let before = items(&stack).await;
    let webhook = id('a', kind::WEBHOOK, 1);
    let answer = stack.answer(&post(&path(&webhook), ACME, "")).await;
    assert_eq!(data(&answer), first());

    let list = format!("DELIVERY#{webhook}");
    let (delivery_key, marker_key) = (row(&list, 1), key(&format!("MADE_BY#{}", FRESH[0]), "MADE_BY"));
    let mut delivery = first();
    for (name, value) in [
        ("pk", json!(delivery_key.0)),
        ("sk", json!(delivery_key.1)),
        ("tries", json!(0)),
        ("record", json!("Delivery")),
        ("sent_by", json!("stream")),
        // If the stream does not send it, the tick finds it after five minutes.
        ("due_pk", json!("DELIVERY#1")),
        ("due_at", json!("2026-02-01T12:05:00.000Z")),
        ("unconfirmed", json!(0)),
        ("releases", json!(0)),
        ("logged", json!(false)),
        ("round", json!(0)),
        ("text_version", json!(0)),
    ] {
        delivery[name] = value;
    }
    // The marker outlives every repeat of the change by the stream.
    let five_weeks = 35 * 86_400;
    let marker = json!({
        "pk": marker_key.0,
        "sk": marker_key.1,
        "id": first()["id"],
        "ttl": NOW / 1000 + five_weeks,
    });
    let mut new = head(&list, 2);
    new.extend(Items::from([(delivery_key, delivery), (marker_key, marker)]));
    assert_eq!(changes(&stack, &before).await, (head(&list, 1), new));
}

#[tokio::test]
async fn each_request_appends_an_event_to_the_deliveries() {
    let stack = stack().await;
    let webhook = id('a', kind::WEBHOOK, 1);
    let logs = call("GET", &format!("/api/v1/outbound_webhook/{webhook}/logs"), ACME);
    for total in 2..6 {
        let sent = data(&stack.answer(&post(&path(&webhook), ACME, "")).await);
        let page = data(&stack.answer(&logs).await);
        assert_eq!((&page["total"], &page["items"][total - 1]), (&json!(total), &sent));
    }
}

#[tokio::test]
async fn refuses_a_disabled_webhook_with_409() {
    let stack = stack().await;
    let before = items(&stack).await;
    let answer = stack.answer(&post(&path(&id('a', kind::WEBHOOK, 0)), ACME, "")).await;
    assert_eq!(detail(&answer), conflict("webhook_id", "webhook_disabled", "The webhook is disabled"));
    assert_eq!(changes(&stack, &before).await, nothing());
}
