//! `GET /api/v1/campaign/list`: a page of the campaigns, with their messages and counts.

use local::Stack;
use serde_json::{Value, json};

use super::read_campaign;
use crate::fixture::{ACME, call, data, id, kind, stack, streaming};
use crate::records::campaign_to;

async fn list(stack: &Stack, query: &str) -> Value {
    let mut call = call("GET", "/api/v1/campaign/list", ACME);
    call.query += query;
    data(&stack.answer(&call).await)
}

#[tokio::test]
async fn a_campaign_is_listed_as_it_is_read() {
    let stack = stack().await;
    let (campaign, contacts) = campaign_to(&stack, 3).await;
    stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{}", contacts[0]), ACME)).await;
    let read = data(&stack.answer(&call("GET", &format!("/api/v1/campaign/get/{campaign}"), ACME)).await);
    let page = list(&stack, "").await;
    let of_demo =
        async |id: String| data(&stack.answer(&call("GET", &format!("/api/v1/campaign/get/{id}"), ACME)).await);
    let (failed, new) =
        (of_demo(id('a', kind::FAILED_CAMPAIGN, 1)).await, of_demo(id('a', kind::NEW_CAMPAIGN, 2)).await);
    assert_eq!((&page["total"], &page["items"]), (&json!(4), &json!([read_campaign::demo(), failed, new, read])));
    assert_eq!(read["counts"]["queued"], 2);
    assert_eq!(read["message"], "Hello, how can we help?");
}

#[tokio::test]
async fn a_status_selects_what_has_it_when_it_is_answered() {
    let stack = Stack::start(streaming()).await.unwrap();
    let (sent, _) = campaign_to(&stack, 2).await;
    let (cancelled, _) = campaign_to(&stack, 3).await;
    let selected = async |status: &str| {
        stack.settle().await.unwrap();
        let page = list(&stack, &format!("&status={status}&widget_id={}", id('a', kind::WIDGET, 1))).await;
        let ids: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
        assert_eq!(page["total"], ids.len(), "{status}");
        ids
    };
    assert_eq!(selected("queued").await, [json!(sent), json!(cancelled)]);
    data(&stack.answer(&crate::fixture::post(&format!("/api/v1/campaign/{cancelled}/cancel"), ACME, "")).await);
    assert_eq!(selected("queued").await, [json!(sent)]);
    assert_eq!(selected("cancelled").await, [json!(cancelled)]);
    // Its widget has no connector: what is dispatched is sent.
    stack.tick("send-campaigns").await.unwrap();
    assert_eq!(selected("completed").await, [json!(id('a', kind::FAILED_CAMPAIGN, 1)), json!(sent)]);
    assert_eq!(selected("paused").await, [json!(id('a', kind::CAMPAIGN, 0))]);
    assert_eq!(selected("not_started").await, [json!(id('a', kind::NEW_CAMPAIGN, 2))]);
    for none in ["queued", "in_progress", "to_be_run"] {
        assert_eq!(selected(none).await, Vec::<Value>::new(), "{none}");
    }
}
