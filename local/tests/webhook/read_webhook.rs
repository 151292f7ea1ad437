//! `GET /api/v1/outbound_webhook/{webhook_id}`: one webhook, without its secret.

use serde_json::{Value, json};

use crate::fixture::{ACME, call, id, json, kind, stack};
use crate::records::DEMO_TIME;

/// The demo set's first webhook, which is disabled, or its second.
pub fn demo(number: u32) -> Value {
    let (name, path) = if number == 0 { ("Spare", "spare") } else { ("Events", "assistants") };
    json!({
        "id": id('a', kind::WEBHOOK, number),
        "endpoint": format!("https://93.184.215.14/acme/{path}"),
        "name": name,
        "enabled": number == 1,
        "disabled_reason": null,
        "disabled_at": null,
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    })
}

#[tokio::test]
async fn a_webhook_is_read_without_its_secret() {
    let stack = stack().await;
    for number in 0..2 {
        let path = format!("/api/v1/outbound_webhook/{}", id('a', kind::WEBHOOK, number));
        let answer = stack.answer(&call("GET", &path, ACME)).await;
        let wanted = json!({"message": "Data retrieved successfully", "meta": {}, "data": demo(number)});
        assert_eq!((answer.status, json(&answer)), (200, wanted));
    }
}
