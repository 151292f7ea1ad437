//! `DELETE /api/v1/form/{form_id}`: removes a form.

use serde_json::json;

use crate::fixture::{id, kind};
use crate::records::{ACME_ORG, DEMO_TIME, deletes};

#[tokio::test]
async fn a_form_goes_as_it_was() {
    let form = id('a', kind::FORM, 1);
    let record = json!({
        "id": form,
        "name": "Call me back",
        "trigger_instructions": "When somebody wants to be called",
        "form_type": "natural",
        "org_id": ACME_ORG,
        "attributes": {},
        "fields": [{"name": "phone", "type": "string"}, {"name": "when", "type": "string"}],
        "webhook_id": null,
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    });
    deletes(&format!("/api/v1/form/{form}"), record, "FORM", 1, "form_id").await;
}
