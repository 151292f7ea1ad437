//! `GET /api/v1/campaign/get/{campaign_id}`: a campaign, with how many of its contacts are in each state.

use local::Stack;
use serde_json::{Value, json};

use crate::fixture::{ACME, call, data, id, kind, stack};
use crate::records::{DEMO_TIME, campaign_to};

async fn read(stack: &Stack, id: &str) -> Value {
    data(&stack.answer(&call("GET", &format!("/api/v1/campaign/get/{id}"), ACME)).await)
}

/// The demo set's first campaign.
pub fn demo() -> Value {
    json!({
        "id": id('a', kind::CAMPAIGN, 0),
        "name": null,
        "type": null,
        "widget_id": id('a', kind::WIDGET, 1),
        "assistant_id": id('a', kind::ASSISTANT, 1),
        "message": "We open an hour earlier this week.",
        "start_new_conversation": false,
        "status": "paused",
        "counts": {"queued": 3, "sent": 0, "failed": 0, "cancelled": 0},
        "start_time": null,
        "interval": null,
        "execution_weekdays": [],
        "time_window_start": null,
        "time_window_end": null,
        "time_zone": "UTC",
        "enabled": false,
        "attributes": {},
        "next_run_at": null,
        "last_run_at": null,
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    })
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
