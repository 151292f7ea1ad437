//! `DELETE /api/v1/tag/{tag_id}`: removes a tag.

use serde_json::json;

use crate::fixture::{ACME, call, data, id, kind, stack};
use crate::records::{DEMO_TIME, deletes};

#[tokio::test]
async fn a_tag_goes_as_it_was() {
    let tag = id('a', kind::TAG, 2);
    let record = json!({
        "id": tag,
        "name": "Newsletter",
        "color_code": "#27ae60",
        "description": null,
        "attributes": {},
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    });
    deletes(&format!("/api/v1/tag/{tag}"), record, "TAG", 2, "tag_id").await;
}

#[tokio::test]
async fn what_is_free_form_is_answered_as_it_was() {
    let tag = id('a', kind::TAG, 1);
    let answer = stack().await.answer(&call("DELETE", &format!("/api/v1/tag/{tag}"), ACME)).await;
    let record = json!({
        "id": tag,
        "name": "VIP",
        "color_code": "#c0392b",
        "description": "Answers within the hour",
        "attributes": {"": "an empty key", "nested": {"deep": [1, 2.5, null]}},
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    });
    assert_eq!(data(&answer), record);
}
