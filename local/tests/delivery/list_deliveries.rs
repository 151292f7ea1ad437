//! `GET /api/v1/outbound_webhook/{webhook_id}/logs`: lists the deliveries to a webhook with their attempts.

use serde_json::{Value, json};
use shared::records::delivery::SentBy;
use shared::values::time::Timestamp;

use crate::support::demo_set;
use crate::support::fixture::{NOW, get, id, kind, stack};
use crate::support::records::TEST_TIME;

const PATH: &str = "/api/v1/outbound_webhook/01900000-0000-7000-8000-a00b00000001/logs";

#[tokio::test]
async fn a_delivery_shows_its_state_and_the_result_of_each_attempt() {
    let stack = stack().await;
    let at = "2026-02-01T11:59:00.000Z";
    let mut wanted = demo_set::delivery();
    wanted["updated_at"] = TEST_TIME.into();
    let now = Timestamp::from_unix_millis(NOW);
    let attempts = [
        // The status of the attempt, the state after it, and the time of the next attempt.
        (500, "waiting", json!("2026-02-01T12:00:05.000Z")),
        (302, "waiting", json!("2026-02-01T12:05:00.000Z")),
        (204, "delivered", Value::Null),
        (410, "dead", Value::Null),
    ];
    for (number, (status, state, next)) in (1..).zip(attempts) {
        let attempted = demo_set::attempted(status, SentBy::Stream);
        demo_set::replace_delivery(&stack, |was| was.decide(attempted, now)).await;
        for (name, value) in [
            ("state", json!(state)),
            ("attempts", json!(number)),
            ("status", json!(status)),
            ("milliseconds", json!(12)),
            ("error", Value::Null),
            ("next_attempt_at", next),
        ] {
            wanted[name] = value;
        }
        let tried = json!({"at": at, "status": status, "milliseconds": 12, "error": null, "answer": "thanks"});
        wanted["log"].as_array_mut().unwrap().push(tried);
        let page = get(&stack, PATH).await;
        assert_eq!(page["items"], json!([wanted]));
    }
}

#[tokio::test]
async fn a_webhook_without_deliveries_has_an_empty_list() {
    let stack = stack().await;
    let path = format!("/api/v1/outbound_webhook/{}/logs", id('a', kind::WEBHOOK, 0));
    let page = get(&stack, &path).await;
    assert_eq!((&page["items"], &page["total"], &page["pages"]), (&json!([]), &json!(0), &json!(0)));
}
