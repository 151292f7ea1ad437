//! `POST /api/v1/outbound_webhook`: registers a webhook, whose address gets events.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};
use shared::routes;

use crate::support::fixture::{ACME, call, data, path, post, stack, valid_body};
use crate::support::records::{TEST_TIME, changes, detail, inserted, issue, items, nothing, wrong};

const PATH: &str = "/api/v1/outbound_webhook";
const ENDPOINT: &str = "https://93.184.215.14/hooks";
/// The id of the first new webhook. The secret takes the first id, and Acme has two webhooks already.
const ID: &str = "019c1912-fa00-7000-8000-000100000002";
/// The secret of the first new webhook.
const SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

async fn create(stack: &Stack, body: &Value) -> Answer {
    stack.answer(&post(PATH, ACME, body.to_string())).await
}

/// The webhook that a body with only an endpoint makes.
fn defaults() -> Value {
    json!({
        "id": ID,
        "endpoint": ENDPOINT,
        "name": null,
        "enabled": true,
        "events": [],
        "assistant_ids": [],
        "widget_ids": [],
        "context": false,
        "disabled_reason": null,
        "disabled_at": null,
        "created_at": TEST_TIME,
        "updated_at": TEST_TIME,
    })
}

fn with_secret(mut webhook: Value) -> Value {
    webhook["secret"] = SECRET.into();
    webhook
}

#[tokio::test]
async fn stores_every_field_and_defaults_absent_and_null_fields() {
    for (mut body, name, enabled) in [
        (json!({}), Value::Null, true),
        (json!({"name": null, "enabled": null, "secret": "mine", "disabled_reason": "gone"}), Value::Null, true),
        (json!({"name": "Events", "enabled": false}), json!("Events"), false),
    ] {
        let stack = stack().await;
        let before = items(&stack).await;
        body["endpoint"] = ENDPOINT.into();
        let mut webhook = defaults();
        (webhook["name"], webhook["enabled"]) = (name, enabled.into());
        let answer = create(&stack, &body).await;
        assert_eq!(data(&answer), with_secret(webhook.clone()), "{body}");
        webhook["secrets"] = json!([{"secret": SECRET, "expires_at": null}]);
        assert_eq!(changes(&stack, &before).await, inserted("WEBHOOK", 2, &webhook, &[]), "{body}");
    }
}

#[tokio::test]
async fn each_secret_has_32_new_bytes_and_is_answered_once() {
    let stack = stack().await;
    let mut secrets = Vec::new();
    for _ in 0..3 {
        let created = data(&create(&stack, &json!({"endpoint": ENDPOINT})).await);
        let secret = created["secret"].as_str().unwrap().to_owned();
        assert_eq!(STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap().len(), 32);
        secrets.push(secret);
        // Every other operation on webhooks; the delete is the last.
        let others = routes::ALL.iter().filter(|route| route.path.starts_with(PATH) && route.name != "create-webhook");
        let mut others: Vec<_> = others.collect();
        others.sort_by_key(|route| route.method == "DELETE");
        let mut logs = Value::Null;
        for route in others {
            let fill = |name: &str| {
                let id = if name == "delivery_id" { &logs["items"][0]["id"] } else { &created["id"] };
                id.as_str().unwrap_or_default().to_owned()
            };
            let mut call = call(route.method, &path(route, fill), ACME);
            call.body = valid_body(route, 'a').into();
            let answer = stack.answer(&call).await;
            let body = data(&answer);
            let shows_secret = answer.body.contains("whsec_");
            assert_eq!(shows_secret, route.name == "rotate-webhook-secret", "{} {}", route.name, answer.body);
            assert!(secrets.iter().all(|secret| !answer.body.contains(&secret[6..])), "{}", route.name);
            if route.name == "list-deliveries" {
                logs = body;
            }
        }
    }
    secrets.sort();
    secrets.dedup();
    assert_eq!(secrets.len(), 3);
}

#[tokio::test]
async fn lists_every_issue() {
    let stack = stack().await;
    let before = items(&stack).await;
    let wanted = json!([
        issue(&json!(["body", "endpoint"]), "string_type", "Input should be a valid string"),
        issue(&json!(["body", "name"]), "string_type", "Input should be a valid string"),
        issue(
            &json!(["body", "enabled"]),
            "bool_parsing",
            "Input should be a valid boolean, unable to interpret input"
        ),
    ]);
    let body = json!({"enabled": "perhaps", "name": 1, "endpoint": 1});
    assert_eq!(detail(&create(&stack, &body).await), (422, wanted));
    // The address is resolved only if every other field is valid.
    let wanted = wrong("name", "string_type", "Input should be a valid string");
    assert_eq!(detail(&create(&stack, &json!({"endpoint": "nowhere", "name": 1})).await), wanted);
    assert_eq!(changes(&stack, &before).await, nothing());
}
