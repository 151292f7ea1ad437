//! `PUT /api/v1/agency/{agency_id}`: changes an agency; the answer masks its secrets.

use local::Stack;
use local::http::{Answer, Call};
use serde_json::{Value, json};

use crate::support::fixture::{ACME, ACME_READ_ONLY, call, data, get, id, kind, stack};
use crate::support::records::{items, row};

const KEY: &str = "sk_live_51Hq0000000000wxyz";
const MASKED: &str = "sk_live…wxyz";

fn path() -> String {
    format!("/api/v1/agency/{}", id('a', kind::AGENCY, 1))
}

async fn update(stack: &Stack, body: &Value) -> Answer {
    stack.answer(&Call { body: body.to_string().into(), ..call("PUT", &path(), ACME) }).await
}

/// The billing plan as it is stored.
async fn stored(stack: &Stack) -> Value {
    let agency = items(stack).await.remove(&row("AGENCY", 1)).unwrap();
    serde_json::from_str(agency["billing_plan"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_masked_key_keeps_the_stored_key_and_the_rest_is_replaced() {
    let stack = stack().await;
    let plan = data(&update(&stack, &json!({"billing_plan": {"payment_api_key": KEY, "currency": "EUR"}})).await);
    assert_eq!(plan["billing_plan"], json!({"payment_api_key": MASKED, "currency": "EUR"}));
    assert_eq!(stored(&stack).await, json!({"payment_api_key": KEY, "currency": "EUR"}));
    let read = get(&stack, &path()).await;
    assert_eq!(read, plan);
    // Once unchanged, and once with another member changed.
    for (sent, kept) in [
        (read["billing_plan"].clone(), json!({"payment_api_key": KEY, "currency": "EUR"})),
        (json!({"payment_api_key": MASKED, "trial": 14}), json!({"payment_api_key": KEY, "trial": 14})),
    ] {
        let answered = data(&update(&stack, &json!({"billing_plan": sent})).await);
        assert_eq!((&answered["billing_plan"], stored(&stack).await), (&sent, kept));
    }
    // Another key replaces the key, and a plan without a key removes it.
    update(&stack, &json!({"billing_plan": {"payment_api_key": "sk_live_another_one"}})).await;
    assert_eq!(stored(&stack).await, json!({"payment_api_key": "sk_live_another_one"}));
    for (sent, kept) in [(json!({"trial": 7}), json!({"trial": 7})), (Value::Null, json!({}))] {
        update(&stack, &json!({"billing_plan": {"payment_api_key": KEY}})).await;
        assert_eq!(data(&update(&stack, &json!({"billing_plan": sent})).await)["billing_plan"], kept);
        assert_eq!(stored(&stack).await, kept);
    }
}

#[tokio::test]
async fn a_masked_key_without_a_stored_key_sets_no_key() {
    let stack = stack().await;
    update(&stack, &json!({"billing_plan": {}})).await;
    let answered = data(&update(&stack, &json!({"billing_plan": {"payment_api_key": MASKED}})).await);
    assert_eq!(answered["billing_plan"]["payment_api_key"], MASKED);
    let set_up = format!("/api/v1/agency/billing/{}/setup_payment_webhook", id('a', kind::AGENCY, 1));
    assert_eq!(stack.answer(&call("GET", &set_up, ACME)).await.status, 409);
    assert_eq!(stack.payment_provider.requests(), 0);
}

/// The members of an agency, with a secret in each.
fn settings(secret: &str) -> Value {
    json!({
        "branding": {"fonts": [{"name": "Sans", "access_token": secret}]},
        "domain": {"": {"note": "use whsec_abc here", "hosts": ["one", "two"]}},
        "billing_plan": {"stripe_secret": secret, "nested": {"payment_api_key": secret}, "note": "sk_live_of_a_note_1"},
        "user_auth": {"providers": [{"id": "one", "clientSecret": secret}, {"id": "two", "password": "short"}]},
    })
}

#[tokio::test]
async fn secrets_in_every_object_are_masked_and_stay_when_sent_back() {
    let stack = stack().await;
    let stored = async || {
        let agency = items(&stack).await.remove(&row("AGENCY", 1)).unwrap();
        let object = |name: &str| serde_json::from_str::<Value>(agency[name].as_str().unwrap()).unwrap();
        let names = ["branding", "domain", "billing_plan", "user_auth"];
        names.into_iter().map(|name| (name.to_owned(), object(name))).collect::<Value>()
    };
    let with = settings("abcdefg-in-the-middle-wxyz");
    let mut masked = settings("abcdefg…wxyz");
    masked["domain"][""]["note"] = "…".into();
    masked["billing_plan"]["note"] = "…".into();
    masked["user_auth"]["providers"][1]["password"] = "…".into();
    let shows = |answered: &Value| {
        let names = with.as_object().unwrap().keys();
        names.map(|name| (name.clone(), answered[name].clone())).collect::<Value>()
    };
    assert_eq!(shows(&data(&update(&stack, &with).await)), masked);
    assert_eq!(stored().await, with);
    for key in [ACME, ACME_READ_ONLY] {
        let read = data(&stack.answer(&call("GET", &path(), key)).await);
        assert_eq!(shows(&read), masked);
        let list = stack.answer(&call("GET", "/api/v1/agency", key)).await;
        assert!(!list.body.contains("in-the-middle") && !list.body.contains("whsec_abc"), "{}", list.body);
    }
    // What was read is sent back as it is, and then with other members changed.
    assert_eq!(shows(&data(&update(&stack, &masked).await)), masked);
    assert_eq!(stored().await, with);
    let mut providers = masked["user_auth"]["providers"].clone();
    providers[0]["id"] = "renamed".into();
    providers[1]["password"] = "another".into();
    update(&stack, &json!({"user_auth": {"providers": providers}})).await;
    let wanted = json!({"providers": [
        {"id": "renamed", "clientSecret": "abcdefg-in-the-middle-wxyz"},
        {"id": "two", "password": "another"},
    ]});
    assert_eq!(stored().await["user_auth"], wanted);
}

#[tokio::test]
async fn an_update_keeps_the_webhook_at_the_provider() {
    let stack = stack().await;
    let set_up = format!("/api/v1/agency/billing/{}/setup_payment_webhook", id('a', kind::AGENCY, 1));
    assert_eq!(get(&stack, &set_up).await["status"], "created");
    data(&update(&stack, &json!({"branding": {"name": "Renamed"}, "user_auth": null})).await);
    assert_eq!(get(&stack, &set_up).await["status"], "updated");
}
