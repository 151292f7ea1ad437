//! `DELETE /api/v1/intent/{intent_id}`: removes an intent.

use serde_json::json;

use crate::fixture::{id, kind};
use crate::records::{DEMO_TIME, deletes};

#[tokio::test]
async fn an_intent_goes_as_it_was() {
    let intent = id('a', kind::INTENT, 1);
    let record = json!({
        "id": intent,
        "name": "Opening hours",
        "description": "Asks when the shop is open",
        "attributes": {},
        "is_active": true,
        "intent_type": "user",
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    });
    deletes(&format!("/api/v1/intent/{intent}"), record, "INTENT", 1, "intent_id").await;
}
