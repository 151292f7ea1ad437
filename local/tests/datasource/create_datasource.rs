//! `POST /api/v1/datasource`: makes a data source.

use local::gateway::Call;
use serde_json::json;

use crate::fixture::{ACME, call, data, post, stack};
use crate::records::{ACME_ORG, TEST_TIME, fresh};

#[tokio::test]
async fn it_begins_empty_and_its_status_is_told_later() {
    let stack = stack().await;
    let body = json!({"ds_type": "http", "ds_status": "ready_for_use"});
    let mut wanted = json!({
        "id": fresh(0, 2),
        "name": null,
        "description": null,
        "ds_type": "http",
        "ds_status": "empty",
        "attributes": {},
        "org_id": ACME_ORG,
        "created_at": TEST_TIME,
        "updated_at": TEST_TIME,
    });
    assert_eq!(data(&stack.answer(&post("/api/v1/datasource", ACME, body.to_string())).await), wanted);
    let path = format!("/api/v1/datasource/{}", wanted["id"].as_str().unwrap());
    for (status, now) in [(json!("ready_for_use"), "ready_for_use"), (json!(null), "empty")] {
        let body = json!({"ds_status": status}).to_string().into();
        wanted["ds_status"] = now.into();
        assert_eq!(data(&stack.answer(&Call { body, ..call("PUT", &path, ACME) }).await), wanted);
    }
}
