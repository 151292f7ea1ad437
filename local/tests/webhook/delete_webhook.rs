//! `DELETE /api/v1/outbound_webhook/{webhook_id}`: removes a webhook; what is still on its way there is given up.

use serde_json::Value;

use crate::support::fixture::{ACME, call, data, id, kind, post, stack};
use crate::support::records::{detail, not_found};

#[tokio::test]
async fn it_leaves_the_list_and_its_place_is_not_given_again() {
    let stack = stack().await;
    let list = async || {
        let page = data(&stack.answer(&call("GET", "/api/v1/outbound_webhook/list", ACME)).await);
        let ids: Vec<Value> = page["items"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
        assert_eq!(page["total"], ids.len());
        ids
    };
    let mut wanted = list().await;
    let create = post("/api/v1/outbound_webhook", ACME, r#"{"endpoint":"https://93.184.215.14/"}"#);
    // Those of the middle, of the end, of the beginning, and all.
    for gone in [1, 1, 0, 0] {
        wanted.push(data(&stack.answer(&create).await)["id"].clone());
        let path = format!("/api/v1/outbound_webhook/{}", wanted.remove(gone).as_str().unwrap());
        stack.answer(&call("DELETE", &path, ACME)).await;
        assert_eq!(list().await, wanted);
    }
}

#[tokio::test]
async fn nothing_can_be_done_with_it_any_more() {
    let stack = stack().await;
    let webhook = id('a', kind::WEBHOOK, 1);
    let logs = format!("/api/v1/outbound_webhook/{webhook}/logs");
    let delivery = data(&stack.answer(&call("GET", &logs, ACME)).await)["items"][0]["id"].clone();
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
