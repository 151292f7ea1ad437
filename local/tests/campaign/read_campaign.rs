//! `GET /api/v1/campaign/get/{campaign_id}`: a campaign, with how many of its contacts are in each state.

use local::Stack;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, get, stack};
use crate::support::records::campaign_to;

async fn read(stack: &Stack, id: &str) -> Value {
    get(stack, &format!("/api/v1/campaign/get/{id}")).await
}

#[tokio::test]
async fn one_that_has_nothing_left_to_send_is_completed() {
    let stack = stack().await;
    let (campaign, contacts) = campaign_to(&stack, 2).await;
    for contact in &contacts {
        assert_eq!(read(&stack, &campaign).await["status"], "queued");
        stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{contact}"), ACME)).await;
    }
    let read = read(&stack, &campaign).await;
    assert_eq!((&read["status"], &read["counts"]["queued"]), (&json!("completed"), &json!(0)));
}
