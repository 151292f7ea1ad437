//! `GET /api/v1/agency/billing/{agency_id}/check_payment_webhook`: reads an agency's webhook at the provider.

use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, data, id, kind, stack};
use crate::support::records::{detail, issue};

async fn ask(stack: &Stack, agency: &str, action: &str) -> Answer {
    stack.answer(&call("GET", &format!("/api/v1/agency/billing/{agency}/{action}_payment_webhook"), ACME)).await
}

async fn check(stack: &Stack) -> Answer {
    ask(stack, &id('a', kind::AGENCY, 1), "check").await
}

fn not_configured() -> Value {
    json!({
        "configured": false, "payment_webhook_id": null, "url": null, "enabled_events": [], "status": null,
        "refused_checkouts": [],
    })
}

#[tokio::test]
async fn answers_the_endpoint_while_the_provider_has_it() {
    let stack = stack().await;
    assert_eq!(data(&check(&stack).await), not_configured());
    let made = data(&ask(&stack, &id('a', kind::AGENCY, 1), "setup").await);
    let answer = check(&stack).await;
    let wanted = json!({
        "configured": true,
        "payment_webhook_id": made["payment_webhook_id"],
        "url": made["url"],
        "enabled_events": made["enabled_events"],
        "status": "enabled",
        "refused_checkouts": [],
    });
    assert_eq!(data(&answer), wanted);
    assert!(!answer.body.contains("whsec"), "{}", answer.body);
    stack.payment_provider.forget(made["payment_webhook_id"].as_str().unwrap());
    assert_eq!(data(&check(&stack).await), not_configured());
}

#[tokio::test]
async fn a_missing_key_or_webhook_sends_the_provider_no_request() {
    let stack = stack().await;
    for number in [0, 1, 2] {
        assert_eq!(data(&ask(&stack, &id('a', kind::AGENCY, number), "check").await), not_configured());
    }
    assert_eq!(stack.payment_provider.requests(), 0);
}

#[tokio::test]
async fn a_failed_check_is_retried_once_and_then_gives_502() {
    let stack = stack().await;
    assert_eq!(ask(&stack, &id('a', kind::AGENCY, 1), "setup").await.status, 200);
    stack.payment_provider.fail(&[503]);
    assert_eq!(data(&check(&stack).await)["configured"], true);
    stack.payment_provider.fail(&[503, 503]);
    let msg = "The payment provider failed or refused the request";
    assert_eq!(detail(&check(&stack).await), (502, json!([issue(&json!([]), "payment_provider_error", msg)])));
}
