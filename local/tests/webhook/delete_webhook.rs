//! `DELETE /api/v1/outbound_webhook/{webhook_id}`: deletes a webhook and its deliveries.

use crate::support::fixture::{ACME, call, get, id, kind, stack};
use crate::support::records::{detail, not_found};

#[tokio::test]
async fn every_operation_on_a_deleted_webhook_gives_404() {
    let stack = stack().await;
    let webhook = id('a', kind::WEBHOOK, 1);
    let logs = format!("/api/v1/outbound_webhook/{webhook}/logs");
    let delivery = get(&stack, &logs).await["items"][0]["id"].clone();
    stack.answer(&call("DELETE", &format!("/api/v1/outbound_webhook/{webhook}"), ACME)).await;
    for (method, rest) in [
        ("GET", String::new()),
        ("PUT", String::new()),
        ("POST", "/rotate_secret".into()),
        ("POST", "/test".into()),
        ("GET", "/logs".into()),
        ("POST", format!("/logs/{}/redeliver", delivery.as_str().unwrap())),
    ] {
        let mut call = call(method, &format!("/api/v1/outbound_webhook/{webhook}{rest}"), ACME);
        call.body = b"{}".to_vec();
        assert_eq!(detail(&stack.answer(&call).await), not_found("webhook_id"), "{method} {rest}");
    }
}
