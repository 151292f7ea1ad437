//! `GET /api/v1/outbound_webhook/{webhook_id}`: one webhook, without its secret.

use serde_json::json;

use crate::support::demo_set::webhook;
use crate::support::fixture::{ACME, call, id, json, kind, stack};

#[tokio::test]
async fn a_webhook_is_read_without_its_secret() {
    let stack = stack().await;
    for number in 0..2 {
        let path = format!("/api/v1/outbound_webhook/{}", id('a', kind::WEBHOOK, number));
        let answer = stack.answer(&call("GET", &path, ACME)).await;
        let wanted = json!({"message": "Data retrieved successfully", "meta": {}, "data": webhook(number)});
        assert_eq!((answer.status, json(&answer)), (200, wanted));
    }
}
