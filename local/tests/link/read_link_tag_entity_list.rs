//! `GET /api/v1/link_tag_entity/list`: a page of the links between tags and entities.

use serde_json::json;

use crate::support::records::list_begins_with;

#[tokio::test]
async fn a_link_has_all_fields_of_the_specification() {
    list_begins_with(
        "/api/v1/link_tag_entity/list",
        json!({
            "id": "01900000-0000-7000-8000-a00d00000000",
            "entity_id": "widget-0",
            "entity_type": "widget",
            "tag_id": "01900000-0000-7000-8000-a00100000001",
            "created_at": "2026-01-01T00:00:00.000Z",
            "updated_at": "2026-01-01T00:00:00.000Z",
            "created_by_id": "01900000-0000-7000-8000-a00c00000000",
        }),
    )
    .await;
}
