//! `POST /api/v1/agency`: makes an agency.

use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, data, post, stack};
use crate::support::records::{ACME_ORG, changes, detail, fresh, inserted, issue, items};

const OBJECTS: [&str; 4] = ["branding", "domain", "billing_plan", "user_auth"];

async fn create(stack: &Stack, body: &Value) -> Answer {
    stack.answer(&post("/api/v1/agency", ACME, body.to_string())).await
}

/// The agency that an empty body makes.
fn defaults() -> Value {
    json!({"id": fresh(0, 3), "org_id": ACME_ORG, "branding": {}, "domain": {}, "billing_plan": {}, "user_auth": {}})
}

#[tokio::test]
async fn absent_and_null_fields_get_their_defaults() {
    let nulls = json!({"org_id": null, "branding": null, "domain": null, "billing_plan": null, "user_auth": null});
    for body in [json!({}), nulls, json!({"id": ACME_ORG, "unknown": 1})] {
        let answer = create(&stack().await, &body).await;
        assert_eq!(data(&answer), defaults(), "{body}");
    }
}

#[tokio::test]
async fn stores_every_field_and_masks_the_payment_key_in_the_answer() {
    let stack = stack().await;
    let before = items(&stack).await;
    let body = json!({
        "org_id": ACME_ORG,
        "branding": {"name": "Acme", "colours": ["red", null]},
        "domain": {"": {"": 1.50}},
        "billing_plan": {"payment_api_key": "sk_live_0123456789abcd"},
        "user_auth": {"deep": [[[[{}]]]]},
    });
    let mut wanted = body.clone();
    wanted["id"] = fresh(0, 3).into();
    let mut answered = wanted.clone();
    answered["billing_plan"]["payment_api_key"] = "sk_live…abcd".into();
    assert_eq!(data(&create(&stack, &body).await), answered);
    assert_eq!(changes(&stack, &before).await, inserted("AGENCY", 3, &wanted, &OBJECTS));
}

#[tokio::test]
async fn refuses_members_that_are_not_objects_and_a_malformed_org_id() {
    let stack = stack().await;
    for wrong in [json!("{}"), json!(1), json!(true), json!([]), json!([["branding", {}]])] {
        let body: Value = OBJECTS.iter().rev().map(|name| ((*name).to_owned(), wrong.clone())).collect();
        let msg = "Input should be a valid dictionary";
        let issues = OBJECTS.map(|name| issue(&json!(["body", name]), "dict_type", msg));
        assert_eq!(detail(&create(&stack, &body).await), (422, json!(issues)), "{wrong}");
    }
    for (wrong, kind, msg) in [
        (json!(7), "uuid_type", "UUID input should be a string, bytes or UUID object"),
        (
            json!("acme"),
            "uuid_parsing",
            "Input should be a valid UUID, invalid character: expected an optional prefix of `urn:uuid:` followed by \
             [0-9a-fA-F-], found `m` at 3",
        ),
    ] {
        let wanted = json!([issue(&json!(["body", "org_id"]), kind, msg)]);
        assert_eq!(detail(&create(&stack, &json!({"org_id": wrong})).await), (422, wanted));
    }
}
