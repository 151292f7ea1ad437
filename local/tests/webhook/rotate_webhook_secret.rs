//! `POST /api/v1/outbound_webhook/{webhook_id}/rotate_secret`: replaces a secret, which signs for one more day.

use local::Stack;
use shared::records::webhook::Webhook;
use shared::values::id::WebhookId;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::demo_set;
use crate::support::fixture::{ACME, acme, data, id, kind, post, stack, stack_with_clock};
use crate::support::records::TEST_TIME;

const HOUR: i64 = 3_600_000;
const DEMO_SECRET: &str = "whsec_ZGVtby1hY21lLXNlY3JldC0wMDAwMDAwMDAwMDAwMDA=";

fn path(id: &str) -> String {
    format!("/api/v1/outbound_webhook/{id}/rotate_secret")
}

/// Rotates the secret of the demo set's second webhook and returns the new one.
async fn rotate(stack: &Stack) -> String {
    let rotated = data(&stack.answer(&post(&path(&id('a', kind::WEBHOOK, 1)), ACME, "")).await);
    rotated["secret"].as_str().unwrap().to_owned()
}

async fn stored(stack: &Stack) -> Webhook {
    let webhook: WebhookId = id('a', kind::WEBHOOK, 1).parse::<Uuid>().unwrap().into();
    let mut webhook = acme(stack).get(webhook).await.unwrap();
    acme(stack).open(&mut webhook).await.unwrap();
    webhook
}

/// The secrets that would sign an event at `now`.
async fn signing(stack: &Stack, now: Timestamp) -> Vec<String> {
    stored(stack).await.signing(now).into_iter().map(|secret| secret.expose().to_owned()).collect()
}

#[tokio::test]
async fn answers_the_webhook_with_its_new_secret() {
    let stack = stack().await;
    let answer = stack.answer(&post(&path(&id('a', kind::WEBHOOK, 1)), ACME, "")).await;
    let mut wanted = demo_set::webhook(1);
    wanted["updated_at"] = TEST_TIME.into();
    wanted["secret"] = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".into();
    assert_eq!(data(&answer), wanted);
}

#[tokio::test]
async fn a_replaced_secret_signs_for_one_more_day() {
    let (stack, after) = stack_with_clock().await;
    let signing = async |millis: i64| {
        after(millis);
        signing(&stack, stack.gateway.service.clock.now()).await
    };
    let first = DEMO_SECRET.to_owned();
    assert_eq!(signing(0).await, [&*first]);
    let second = rotate(&stack).await;
    assert_eq!(signing(0).await, [&*second, &*first]);
    after(12 * HOUR);
    let third = rotate(&stack).await;
    assert_eq!(signing(24 * HOUR - 1).await, [&*third, &*second, &*first]);
    assert_eq!(signing(24 * HOUR).await, [&*third, &*second]);
    assert_eq!(signing(36 * HOUR - 1).await, [&*third, &*second]);
    assert_eq!(signing(36 * HOUR).await, [&*third]);
    assert_eq!(signing(1000 * HOUR).await, [&*third]);
    // A rotation deletes the expired secrets.
    let fourth = rotate(&stack).await;
    assert_eq!(signing(1000 * HOUR).await, [&*fourth, &*third]);
    assert_eq!(stored(&stack).await.secrets.len(), 2);
}

#[tokio::test]
async fn only_the_ten_newest_secrets_of_a_day_sign() {
    let stack = stack().await;
    let mut secrets = vec![DEMO_SECRET.to_owned()];
    for _ in 0..30 {
        secrets.insert(0, rotate(&stack).await);
        secrets.truncate(10);
        assert_eq!(signing(&stack, stack.gateway.service.clock.now()).await, secrets);
    }
}

#[tokio::test]
async fn concurrent_rotations_keep_every_secret_signing() {
    let stack = stack().await;
    let mut secrets = futures_util::future::join_all((0..6).map(|_| rotate(&stack))).await;
    secrets.push(DEMO_SECRET.to_owned());
    let mut signing = signing(&stack, stack.gateway.service.clock.now()).await;
    secrets.sort();
    signing.sort();
    assert_eq!(signing, secrets);
    assert_eq!(stored(&stack).await.secrets.iter().filter(|secret| secret.expires_at.is_none()).count(), 1);
}
