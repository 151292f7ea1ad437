//! `PUT /api/v1/outbound_webhook/{webhook_id}`: changes a webhook; absent fields stay as they are.

use local::Stack;
use local::http::{Answer, Call};
use serde_json::{Value, json};
use shared::records::delivery::EndpointHealth;
use shared::records::webhook::{DisabledReason, Webhook};
use shared::values::id::{EndpointId, WebhookId};
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::demo_set;
use crate::support::fixture::{ACME, NOW, acme, call, data, id, kind, stack};
use crate::support::records::{
    NOBODYS, TEST_TIME, changes, detail, issue, items, members_of, nothing, row, update_with_open_circuit,
};

const ELSEWHERE: &str = "https://93.184.215.14/elsewhere";

/// Changes the demo set's second webhook.
async fn update(stack: &Stack, body: &Value) -> Answer {
    let call = call("PUT", &format!("/api/v1/outbound_webhook/{}", id('a', kind::WEBHOOK, 1)), ACME);
    stack.answer(&Call { body: body.to_string().into(), ..call }).await
}

#[tokio::test]
async fn stores_every_field_and_keeps_the_secrets() {
    let stack = stack().await;
    let before = items(&stack).await;
    let body = json!({"id": NOBODYS, "secret": "mine", "endpoint": ELSEWHERE, "name": "Renamed", "enabled": false});
    let mut wanted = demo_set::webhook(1);
    for name in ["endpoint", "name", "enabled"] {
        wanted[name] = body[name].clone();
    }
    wanted["updated_at"] = TEST_TIME.into();
    let answer = update(&stack, &body).await;
    assert_eq!(data(&answer), wanted);
    let (gone, mut new) = changes(&stack, &before).await;
    let item = new.remove(&row("WEBHOOK", 1)).unwrap();
    assert_eq!((members_of(&wanted, &item), new.len(), gone.len()), (wanted, 0, 1));
    assert_eq!(item["secrets"], gone[&row("WEBHOOK", 1)]["secrets"]);
}

#[tokio::test]
async fn only_enabling_clears_the_reason_of_the_disabling() {
    let disabled_at = Timestamp::from_unix_millis(NOW - 1000);
    for reason in [DisabledReason::Gone, DisabledReason::Failing] {
        let stack = stack().await;
        let webhook: WebhookId = id('a', kind::WEBHOOK, 1).parse::<Uuid>().unwrap().into();
        let table = acme(&stack);
        let disable = |webhook: &mut Webhook| webhook.disable(&webhook.endpoint.clone(), reason, disabled_at);
        table.change(webhook, webhook.0, disable).await.unwrap();
        let state = |webhook: &Value| ["enabled", "disabled_reason", "disabled_at"].map(|name| webhook[name].clone());
        let disabled = [json!(false), json!(reason.as_str()), json!("2026-02-01T11:59:59.000Z")];
        let read = call("GET", &format!("/api/v1/outbound_webhook/{webhook}"), ACME);
        assert_eq!(state(&data(&stack.answer(&read).await)), disabled);
        for body in [json!({}), json!({"name": "Renamed"}), json!({"endpoint": ELSEWHERE})] {
            assert_eq!(state(&data(&update(&stack, &body).await)), disabled, "{body}");
        }
        // Null sets the default, which is enabled.
        let enable = if reason == DisabledReason::Gone { json!({"enabled": true}) } else { json!({"enabled": null}) };
        assert_eq!(state(&data(&update(&stack, &enable).await)), [json!(true), Value::Null, Value::Null]);
        assert_eq!(state(&data(&stack.answer(&read).await)), [json!(true), Value::Null, Value::Null]);
    }
}

#[tokio::test]
async fn enabling_or_another_address_closes_the_circuit() {
    let same = demo_set::webhook(1)["endpoint"].clone();
    for (body, closes) in [
        (json!({"enabled": true}), true),
        (json!({"endpoint": ELSEWHERE}), true),
        (json!({"endpoint": same, "name": "Renamed"}), false),
        (json!({"enabled": false}), false),
        (json!({"endpoint": ELSEWHERE, "enabled": false}), false),
    ] {
        let stack = stack().await;
        let webhook = EndpointId(id('a', kind::WEBHOOK, 1).parse().unwrap());
        update_with_open_circuit(&stack, "outbound_webhook", EndpointHealth::healthy(webhook), &body, closes).await;
    }
}

#[tokio::test]
async fn lists_every_issue_and_changes_nothing() {
    let stack = stack().await;
    let before = items(&stack).await;
    let wanted = json!([
        issue(&json!(["body", "endpoint"]), "string_type", "Input should be a valid string"),
        issue(&json!(["body", "name"]), "string_type", "Input should be a valid string"),
        issue(&json!(["body", "enabled"]), "bool_type", "Input should be a valid boolean"),
    ]);
    let body = json!({"enabled": [], "name": {}, "endpoint": 1});
    assert_eq!(detail(&update(&stack, &body).await), (422, wanted));
    assert_eq!(changes(&stack, &before).await, nothing());
}

#[tokio::test]
async fn concurrent_updates_of_different_fields_all_apply() {
    let stack = stack().await;
    let bodies = [json!({"name": "Renamed"}), json!({"endpoint": ELSEWHERE}), json!({"enabled": false})];
    let updates = bodies.iter().cycle().take(12).map(|body| update(&stack, body));
    let answers = futures_util::future::join_all(updates).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    let webhook = items(&stack).await.remove(&row("WEBHOOK", 1)).unwrap();
    assert_eq!(
        ["name", "endpoint", "enabled", "version"].map(|name| &webhook[name]),
        [&json!("Renamed"), &json!(ELSEWHERE), &json!(false), &json!(12)]
    );
}
