//! `GET /api/v1/agency/billing/{agency_id}/setup_payment_webhook`: registers an agency's webhook.

use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};
use shared::prelude::*;

use crate::support::fixture::{ACME, GLOBEX, acme, call, data, id, json, kind, member, post, stack};
use crate::support::records::{ACME_ORG, Items, Key, NOBODYS, changes, detail, issue, items, row};

const EVENTS: [&str; 9] = [
    "checkout.session.completed",
    "customer.subscription.created",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.resumed",
    "customer.subscription.trial_will_end",
    "customer.subscription.updated",
    "invoice.paid",
    "invoice.payment_failed",
];

fn agency() -> String {
    id('a', kind::AGENCY, 1)
}

async fn set_up_agency(stack: &Stack, agency: &str) -> Answer {
    let path = format!("/api/v1/agency/billing/{agency}/setup_payment_webhook");
    stack.answer(&call("GET", &path, ACME)).await
}

async fn set_up(stack: &Stack) -> Answer {
    set_up_agency(stack, &agency()).await
}

/// The id of a new agency whose billing plan is `billing_plan`.
async fn new_agency(stack: &Stack, billing_plan: impl ToString) -> String {
    let body = format!(r#"{{"billing_plan":{}}}"#, billing_plan.to_string());
    let answer = stack.answer(&post("/api/v1/agency", ACME, body)).await;
    // A plan may hold numbers that `serde_json` cannot read.
    member(&member(&answer.body, "data"), "id").replace('"', "")
}

/// The endpoint as the agency's row stores it.
async fn kept(stack: &Stack) -> Option<Value> {
    let agency = items(stack).await.remove(&row("AGENCY", 1))?;
    agency.get("payment_webhook").cloned()
}

/// The key of the pointer that leads from an event of the provider to the agency.
fn pointer() -> Key {
    (format!("PAYMENT_WEBHOOK#{}", agency()), format!("ORG#{ACME_ORG}"))
}

/// The one endpoint that the provider has.
fn only_endpoint(stack: &Stack) -> String {
    let endpoints = stack.payment_provider.endpoints();
    assert_eq!(endpoints.len(), 1, "{endpoints:?}");
    endpoints.into_keys().next().unwrap()
}

fn refused() -> (u16, Value) {
    let msg = "The payment provider failed or refused the request";
    (502, json!([issue(&json!([]), "payment_provider_error", msg)]))
}

#[tokio::test]
async fn the_first_setup_creates_an_endpoint_and_later_setups_update_it() {
    let stack = stack().await;
    let before = items(&stack).await;
    let url = format!("{}/api/v1/agency/webhook/payment/{}", stack.url, agency());
    for (status, message) in [
        ("created", "Data created successfully"),
        ("updated", "Data updated successfully"),
        ("updated", "Data updated successfully"),
    ] {
        let answer = set_up(&stack).await;
        let endpoint = only_endpoint(&stack);
        let wanted = json!({
            "agency_id": agency(),
            "payment_webhook_id": endpoint,
            "url": url,
            "enabled_events": EVENTS,
            "status": status,
        });
        let wanted = json!({"message": message, "meta": {}, "data": wanted});
        assert_eq!((answer.status, json(&answer)), (200, wanted));

        let registered = &stack.payment_provider.endpoints()[&endpoint];
        assert_eq!((&registered.url, &registered.events[..]), (&url, &EVENTS.map(str::to_owned)[..]));

        // The provider sends the secret only when it creates the endpoint, so the row keeps it.
        let secret = format!("whsec_local_{endpoint}");
        let wanted = json!({"payment_webhook_id": endpoint, "secret": secret, "has_pointer": true});
        assert_eq!(kept(&stack).await, Some(wanted));
        let (gone, new) = changes(&stack, &before).await;
        assert!(gone.keys().eq([&row("AGENCY", 1)]) && new.keys().eq([&row("AGENCY", 1), &pointer()]));
        assert_eq!(new[&pointer()], json!({"pk": pointer().0, "sk": pointer().1, "id": agency()}));
        assert!(!answer.body.contains("whsec") && !answer.body.contains("sk_"), "{}", answer.body);
    }
    assert_eq!(stack.payment_provider.requests(), 3);
}

#[tokio::test]
async fn the_next_setup_adds_a_missing_pointer() {
    let stack = stack().await;
    data(&set_up(&stack).await);
    let before = items(&stack).await;
    // Rows from before the receiving of events look like this.
    let forget = |agency: &mut Agency| {
        if let Some(webhook) = &mut agency.payment_webhook {
            webhook.has_pointer = false;
        }
    };
    let id: AgencyId = agency().parse::<Uuid>().unwrap().into();
    acme(&stack).change(id, Uuid::max(), forget).await.unwrap();
    assert!(!items(&stack).await.contains_key(&pointer()));
    assert_eq!(data(&set_up(&stack).await)["status"], "updated");
    assert_eq!(items(&stack).await[&pointer()], before[&pointer()]);
    let before = items(&stack).await;
    assert_eq!(data(&set_up(&stack).await)["status"], "updated");
    assert_eq!(changes(&stack, &before).await, (Items::new(), Items::new()));
}

#[tokio::test]
async fn each_agency_gets_its_own_endpoint() {
    let stack = stack().await;
    let another = new_agency(&stack, json!({"payment_api_key": "sk_another"})).await;
    let globex = format!("/api/v1/agency/billing/{}/setup_payment_webhook", id('b', kind::AGENCY, 1));
    for _ in 0..2 {
        for answer in [
            set_up(&stack).await,
            set_up_agency(&stack, &another).await,
            stack.answer(&call("GET", &globex, GLOBEX)).await,
        ] {
            let answered = data(&answer);
            let url = &stack.payment_provider.endpoints()[answered["payment_webhook_id"].as_str().unwrap()].url;
            assert!(url.ends_with(answered["agency_id"].as_str().unwrap()), "{url}");
        }
        assert_eq!(stack.payment_provider.endpoints().len(), 3);
    }
}

#[tokio::test]
async fn two_concurrent_setups_leave_one_endpoint() {
    let stack = stack().await;
    stack.payment_provider.delay(std::time::Duration::from_millis(300));
    let (one, other) = tokio::join!(set_up(&stack), set_up(&stack));
    let endpoint = only_endpoint(&stack);
    for record in [data(&one), data(&other), kept(&stack).await.unwrap()] {
        assert_eq!(record["payment_webhook_id"], endpoint);
    }
}

#[tokio::test]
async fn a_missing_agency_or_payment_key_sends_the_provider_no_request() {
    let stack = stack().await;
    let mut agencies = vec![id('a', kind::AGENCY, 2)];
    for none in ["null", r#""""#, "12", r#"["sk_1"]"#, r#"{"payment_api_key":"sk_1"}"#] {
        agencies.push(new_agency(&stack, format!(r#"{{"payment_api_key":{none}}}"#)).await);
    }
    let before = items(&stack).await;
    for agency in agencies {
        let msg = "The agency's billing_plan has no payment_api_key";
        let wanted = json!([issue(&json!(["path", "agency_id"]), "payment_not_configured", msg)]);
        assert_eq!(detail(&set_up_agency(&stack, &agency).await), (409, wanted));
    }
    assert_eq!(set_up_agency(&stack, NOBODYS).await.status, 404);
    assert_eq!(stack.payment_provider.requests(), 0);
    assert_eq!(changes(&stack, &before).await, (Items::new(), Items::new()));
}

#[tokio::test]
async fn the_payment_key_is_found_beside_any_other_member() {
    let stack = stack().await;
    let deep = format!(r#"{{"deep":{}{},"payment_api_key":"sk_1"}}"#, "[".repeat(15_000), "]".repeat(15_000));
    for plan in [
        r#"{"":1,"Payment_api_key":"bad","payment_api_key":"sk_1"}"#,
        r#"{"payment_api_key":"bad","payment_api_key":"sk_1"}"#,
        r#"{"payment_api\u005fkey":"sk\u005f1"}"#,
        r#"{"big":1e999,"half":"\ud800","payment_api_key":"sk_1"}"#,
        &deep,
        r#"{"\ud800":1,"payment_api_key":"sk_1"}"#,
    ] {
        let agency = new_agency(&stack, plan).await;
        let answer = set_up_agency(&stack, &agency).await;
        assert_eq!(answer.status, 200, "{} {}", &plan[..plan.len().min(80)], answer.body);
    }
}

#[tokio::test]
async fn a_refused_or_unsendable_payment_key_gives_502() {
    let stack = stack().await;
    for bad in ["bad", "sk_\n", "sk_a\r\nx-injected: 1", "sk_\0", "sk_\u{7f}", "sk_é", "\u{1b}", " "] {
        let agency = new_agency(&stack, json!({"payment_api_key": bad})).await;
        let before = items(&stack).await;
        let answer = set_up_agency(&stack, &agency).await;
        assert_eq!(detail(&answer), refused(), "{bad:?}");
        let (gone, new) = changes(&stack, &before).await;
        // The only change may be the count of failed setups.
        assert!(gone.keys().eq(new.keys()) && new.len() <= 1, "{bad:?} {new:?}");
        assert!(
            new.values()
                .all(|agency| agency["failed_setups"] == 1 && agency.get("payment_webhook").is_none_or(Value::is_null))
        );
    }
    assert!(stack.payment_provider.endpoints().is_empty());
}

#[tokio::test]
async fn a_failed_creation_gives_502_and_the_next_setup_succeeds() {
    for failure in [500, 503, 400] {
        let stack = stack().await;
        stack.payment_provider.fail(&[failure]);
        assert_eq!(detail(&set_up(&stack).await), refused(), "{failure}");
        assert!(stack.payment_provider.endpoints().is_empty());
        assert_eq!(kept(&stack).await, None);
        let answered = data(&set_up(&stack).await);
        let endpoint = only_endpoint(&stack);
        assert_eq!((&answered["status"], &answered["payment_webhook_id"]), (&json!("created"), &json!(endpoint)));
    }
}

#[tokio::test]
async fn a_failed_update_is_retried_once_and_then_gives_502() {
    let stack = stack().await;
    assert_eq!(set_up(&stack).await.status, 200);
    let before = items(&stack).await;
    for failures in [&[429][..], &[500], &[503], &[500, 500], &[]] {
        stack.payment_provider.fail(failures);
        let answer = set_up(&stack).await;
        let endpoint = only_endpoint(&stack);
        if failures.len() == 2 {
            assert_eq!(detail(&answer), refused());
        } else {
            let answered = data(&answer);
            assert_eq!((&answered["status"], &answered["payment_webhook_id"]), (&json!("updated"), &json!(endpoint)));
        }
        assert_eq!(changes(&stack, &before).await, (Items::new(), Items::new()), "{failures:?}");
    }
}

#[tokio::test]
async fn a_setup_replaces_an_endpoint_that_the_provider_forgot() {
    let stack = stack().await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let answered = data(&set_up(&stack).await);
        let endpoint = only_endpoint(&stack);
        assert_eq!((&answered["status"], &answered["payment_webhook_id"]), (&json!("created"), &json!(endpoint)));
        let kept = kept(&stack).await.unwrap();
        assert_eq!(kept["payment_webhook_id"], endpoint);
        assert_eq!(kept["secret"], format!("whsec_local_{endpoint}"));
        assert!(!seen.contains(&endpoint), "{endpoint} {seen:?}");
        stack.payment_provider.forget(&endpoint);
        // A failure during the setup adds no second endpoint either.
        stack.payment_provider.fail(&[500]);
        assert_eq!(detail(&set_up(&stack).await), refused());
        seen.push(endpoint);
    }
}
