//! `POST /api/v1/datasource`: makes a data source.

use serde_json::json;

use crate::support::fixture::{ACME, data, post, stack};
use crate::support::records::{ACME_ORG, TEST_TIME, fresh};

#[tokio::test]
async fn a_new_data_source_ignores_the_status_and_is_empty() {
    let body = json!({"ds_type": "http", "ds_status": "ready_for_use"});
    let wanted = json!({
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
    assert_eq!(data(&stack().await.answer(&post("/api/v1/datasource", ACME, body.to_string())).await), wanted);
}
