//! Sends recognisable secrets through every operation, with good and bad calls, and searches all output for them.

use local::http::Call;
use local::{Settings, Stack};
use serde_json::json;
use shared::request::api_key::{ApiKey, ApiKeyRecord, Role};
use shared::routes;
use shared::runtime::lambda::tracing::Level;
use shared::values::id::{ApiKeyId, OrgId};
use shared::values::time::{Clock, Timestamp};

use crate::support::fixture::{
    ACME, NOW, call, data, demo_id, everything, path, post, settings, valid_body, valid_call, with_faults,
};
use crate::support::log::Log;

const CANARY: &str = "in-CANARYCANARYCANARYCANARYCANARYCANARYCANARYx";
/// The secret part of the key.
const SONG: &str = "RYCANARY";

/// An agency's key for the payment provider, and its secret part.
const PAYMENT_KEY: &str = "sk_live_CANARYPAYMENTCANARYPAYMENTwxyz";
const PAYMENT_SONG: &str = "NARYPAYMENT";

#[tokio::test]
async fn only_the_item_of_an_agency_contains_its_payment_key() {
    let log = Log::default();
    let _guard = log.listen(Level::TRACE);
    let stack = Stack::start(settings()).await.unwrap();
    let plan = json!({"billing_plan": {"payment_api_key": PAYMENT_KEY}});
    let keyed = Call {
        headers: [("idempotency-key".into(), "made-once".into())].into(),
        ..post("/api/v1/agency", ACME, plan.to_string())
    };
    let made = stack.answer(&keyed).await;
    let agency = data(&made)["id"].as_str().unwrap().to_owned();
    let mut answers = format!("{made:?}\n{:?}\n", stack.answer(&keyed).await);
    let mut routes: Vec<_> =
        routes::ALL.iter().filter(|route| ["agency", "billing-plan"].contains(&route.record)).collect();
    // The delete comes last.
    routes.sort_by_key(|route| route.name == "delete-agency");
    for route in routes {
        let path = path(route, |name| if name == "agency_id" { agency.clone() } else { demo_id('a', name) });
        let body = if route.name == "update-agency" { plan.to_string().into() } else { valid_body(route, 'a').into() };
        for body in [body, b"{".to_vec()] {
            answers += &format!("{:?}\n", stack.answer(&Call { body, ..call(route.method, &path, ACME) }).await);
        }
    }
    assert!(answers.matches("sk_live…wxyz").count() > 4, "{answers}");
    assert!(!answers.contains(PAYMENT_SONG), "the key is in an answer");
    assert!(answers.contains("Data deleted successfully") && stack.payment_provider.endpoints().len() == 1);
    // The SDK's own trace lines contain the requests to the table, so they are left out.
    let log = log.text();
    let lines = log.lines().filter(|line| line.contains("shared::"));
    assert!(lines.clone().count() > 4, "the log is not listened to");
    for line in lines {
        assert!(!line.contains(PAYMENT_SONG), "the key is in the log");
    }
}

#[tokio::test]
async fn no_answer_log_or_item_contains_an_api_key() {
    let log = Log::default();
    let _guard = log.listen(Level::TRACE);
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    let (stack, faults) = with_faults(Settings { clock: clock.clone(), ..settings() }).await;
    let key = ApiKey::parse(CANARY).unwrap();
    let record = ApiKeyRecord {
        id: ApiKeyId(uuid::Uuid::nil()),
        org_id: OrgId("01900000-0000-7000-8000-a00000000001".parse().unwrap()),
        prefix: key.display_prefix().into(),
        name: "Canary".into(),
        role: Role::Full,
        created_at: Timestamp::from_unix_millis(NOW),
        expires_at: None,
        revoked_at: None,
        requests_per_second: None,
        burst: None,
        scopes: None,
        user_id: None,
        omit_nulls: false,
    };
    let mut answers = String::new();
    for known in [false, true] {
        if known {
            stack.gateway.service.store.add_api_key(&key.hash(), &record).await.unwrap();
            // A bad key is cached for five seconds.
            clock.set(Timestamp::from_unix_millis(NOW + 6000));
        }
        for route in routes::ALL {
            // An idempotency key is secret too: a repeat with it gets the stored answer.
            let idempotency_key = ("idempotency-key".to_owned(), format!("{SONG}{}", route.name));
            let good = Call { headers: [idempotency_key.clone()].into(), ..valid_call(route, 'a', CANARY) };
            let headers = [("authorization".to_owned(), format!("Bearer {CANARY}")), idempotency_key].into();
            let bearer = Call { query: String::new(), headers, ..good.clone() };
            let broken = Call { body: b"{".to_vec(), ..good.clone() };
            let elsewhere = call("PUT", &good.path, CANARY);
            let malformed = call(route.method, &good.path, &format!("{CANARY}CANARY"));
            for call in [bearer, broken, elsewhere, malformed, good] {
                answers += &format!("{:?}\n", stack.answer(&call).await);
            }
        }
    }
    faults.plan(|_, _| local::faults::Fault::ServerError);
    answers += &format!("{:?}\n", stack.answer(&valid_call(&routes::DELETE_TAG, 'a', CANARY)).await);
    let table = format!("{:?}", everything(&stack).await);
    let log = log.text();
    assert!(log.contains("operation=\"delete-tag\""), "the log is not listened to");
    assert!(answers.contains("Data deleted successfully"), "no call with the canary succeeded");
    // The SDK's own trace lines contain the hash of the key, but no key.
    for (place, text) in [("an answer", &answers), ("the log", &log), ("the table", &table)] {
        assert!(!text.contains(SONG), "the key is in {place}");
        assert!(!text.contains("api_key="), "a query string is in {place}");
    }
}
