//! `GET /api/v1/campaign/get/{campaign_id}`: reads a campaign with the count of its contacts in each state.

use local::Stack;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, get, stack};
use crate::support::records::campaign_to;

async fn read(stack: &Stack, id: &str) -> Value {
    get(stack, &format!("/api/v1/campaign/get/{id}")).await
}

#[tokio::test]
async fn a_campaign_without_open_contacts_is_completed() {
    let stack = stack().await;
    let (campaign, contacts) = campaign_to(&stack, 2).await;
    for contact in &contacts {
        assert_eq!(read(&stack, &campaign).await["status"], "queued");
        stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{contact}"), ACME)).await;
    }
    let read = read(&stack, &campaign).await;
    assert_eq!((&read["status"], &read["counts"]["queued"]), (&json!("completed"), &json!(0)));
}
