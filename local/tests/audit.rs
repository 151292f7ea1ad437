//! Tests of the audit list: what requests leave in it, and how it is read.

use std::collections::BTreeSet;

use local::http::{Answer, Call};
use local::stream::Stream;
use local::{Settings, Stack};
use repository::camel_case;
use serde_json::{Value, json};
use shared::request::route::Route;
use shared::routes;
use shared::values::time::{Clock, Timestamp};
use uuid::Uuid;

use crate::support::fixture::{
    ACME, ACME_FULL, ACME_READ_ONLY, GLOBEX, NOW, as_stored, call, data, failure, few_streaming, get, handle, id, kind,
    make, post, valid_call,
};
use crate::support::sweep::cases;

/// The days of the template.
const DAYS: i64 = 400;
const DAY: i64 = 86_400_000;
const PATH: &str = routes::LIST_AUDIT.path;

fn listing() -> Settings {
    Settings { audit_days: u32::try_from(DAYS).unwrap(), ..few_streaming() }
}

/// A stack with an audit list, and its clock.
async fn stack_and_clock() -> (Stack, Clock) {
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    (Stack::start(Settings { clock: clock.clone(), ..listing() }).await.unwrap(), clock)
}

/// The answer of `route` for Acme, after the stream has handled its changes.
async fn answered(stack: &Stack, call: &Call) -> Answer {
    let answer = stack.answer(call).await;
    stack.settle().await.unwrap();
    answer
}

/// The page of the list with this query.
async fn page(stack: &Stack, query: &str) -> Value {
    get(stack, &format!("{PATH}?{query}")).await
}

/// The newest entries of Acme, at most a hundred.
async fn entries(stack: &Stack) -> Vec<Value> {
    page(stack, "size=100").await["items"].as_array().unwrap().clone()
}

/// The action and the kind of record of each entry.
fn actions(entries: &[Value]) -> BTreeSet<String> {
    let words =
        |entry: &Value| format!("{} {}", entry["action"].as_str().unwrap(), entry["record_type"].as_str().unwrap());
    entries.iter().map(words).collect()
}

/// Makes a tag and returns its id.
async fn tag(stack: &Stack, name: &str) -> String {
    make(stack, "/api/v1/tag", json!({"name": name})).await.to_string()
}

/// The entries of operations that do more than their name says, or whose name does not say it.
const OTHERS: &[(&str, &[&str])] = &[
    ("run-campaign", &["created Campaign"]),
    ("message-contacts", &["created Campaign"]),
    ("call-contacts", &["created Campaign"]),
    ("send-message", &["created Contact", "created Conversation", "created Delivery"]),
    ("receive-message", &["created Contact", "created Conversation"]),
    ("start-call", &["created Contact", "created Conversation", "created Delivery"]),
    ("open-conversation", &["created Conversation"]),
    ("upsert-contact", &["created Contact"]),
    ("import-contacts", &["created Contact", "updated Contact"]),
    ("import-suppressions", &["created Suppression", "updated Suppression"]),
    ("send-test-event", &["created Delivery"]),
    ("recover-webhook", &["updated Delivery"]),
    ("add-datasource-text-blob", &["created DatasourceFile"]),
    ("link-assistant-datasource", &["created DatasourceLink"]),
    ("delete-linked-assistant-datasource", &["deleted DatasourceLink"]),
    ("link-assistant-intent", &["created IntentLink"]),
    ("unlink-assistant-intent", &["deleted IntentLink"]),
    ("revoke-key", &["deleted Key"]),
    ("rotate-key", &["created Key", "updated Key"]),
    // A report of usage changes no record.
    ("report-usage", &[]),
];

/// The entries that a valid call of `route` leaves.
fn wanted(route: &Route) -> BTreeSet<String> {
    if let Some((_, others)) = OTHERS.iter().find(|(name, _)| *name == route.name) {
        return others.iter().map(|entry| (*entry).to_owned()).collect();
    }
    let action = match route.name.split('-').next().unwrap() {
        "create" => "created",
        "delete" => "deleted",
        _ => "updated",
    };
    BTreeSet::from([format!("{action} {}", camel_case(route.record))])
}

#[tokio::test]
async fn every_operation_that_writes_is_listed_with_its_key() {
    let keys = Stack::start(listing()).await.unwrap();
    let keys: Vec<Value> = {
        let org = json!({"org_id": "01900000-0000-7000-8000-a00000000001"}).to_string();
        let listed = keys.gateway.invoke_by_name("list-api-keys", org.as_bytes()).await;
        serde_json::from_str::<Value>(&listed.body).unwrap().as_array().unwrap().clone()
    };
    let admin = &keys.iter().find(|key| key["role"] == "admin").unwrap()["id"];
    let mut wrong = Vec::new();
    for route in cases(routes::ALL) {
        let stack = Stack::start(listing()).await.unwrap();
        let answer = answered(&stack, &valid_call(route, 'a', ACME)).await;
        assert_eq!(answer.status, route.success, "{} {}", route.name, answer.body);
        let entries = entries(&stack).await;
        for entry in &entries {
            assert_eq!(entry["operation"], route.name);
            assert_eq!(entry["key_id"], *admin, "{}", route.name);
            assert_eq!(entry["request_id"], answer.headers["x-request-id"], "{}", route.name);
            assert_eq!(entry["at"], "2026-02-01T12:00:00.000Z", "{}", route.name);
            assert!(entry["record_id"].as_str().unwrap().parse::<Uuid>().is_ok(), "{}", route.name);
        }
        let wanted = if route.writes() { wanted(route) } else { BTreeSet::new() };
        let found = actions(&entries);
        if found != wanted {
            wrong.push(format!("{}: {found:?}", route.name));
        }
        assert_eq!(data(&stack.answer(&call("GET", PATH, GLOBEX)).await)["items"], json!([]), "{}", route.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_deletion_is_listed_with_the_key_that_deletes() {
    let stack = Stack::start(listing()).await.unwrap();
    let made = tag(&stack, "Short").await;
    let answer = answered(&stack, &call("DELETE", &format!("/api/v1/tag/{made}"), ACME_FULL)).await;
    let entries = entries(&stack).await;
    assert_eq!(actions(&entries), ["created Tag", "deleted Tag"].map(str::to_owned).into());
    let deletion = entries.iter().find(|entry| entry["action"] == "deleted").unwrap();
    let creation = entries.iter().find(|entry| entry["action"] == "created").unwrap();
    assert_eq!((&deletion["record_id"], &creation["record_id"]), (&json!(made), &json!(made)));
    assert_eq!(deletion["request_id"], answer.headers["x-request-id"]);
    assert_ne!(deletion["key_id"], creation["key_id"]);
}

#[tokio::test]
async fn a_refused_request_leaves_no_entry() {
    let stack = Stack::start(listing()).await.unwrap();
    let unknown = format!("/api/v1/tag/{}", id('b', kind::TAG, 1));
    for (call, status) in [
        (post("/api/v1/tag", ACME_READ_ONLY, r#"{"name":"x"}"#), 403),
        (post("/api/v1/tag", ACME, "{}"), 422),
        (post("/api/v1/tag", "in-bad", r#"{"name":"x"}"#), 401),
        (call("DELETE", &unknown, ACME), 404),
        (call("GET", &unknown, ACME), 404),
    ] {
        assert_eq!(answered(&stack, &call).await.status, status, "{} {}", call.method, call.path);
    }
    assert_eq!(entries(&stack).await, Vec::<Value>::new());
}

#[tokio::test]
async fn only_an_admin_key_reads_the_list() {
    let stack = Stack::start(listing()).await.unwrap();
    for key in [ACME_FULL, ACME_READ_ONLY] {
        let refused = failure(&stack.answer(&call("GET", PATH, key)).await);
        assert_eq!(refused, (403, vec![r#"["query","api_key"] forbidden"#.to_owned()]));
    }
    data(&stack.answer(&call("GET", PATH, ACME)).await);
}

#[tokio::test]
async fn a_change_that_comes_twice_or_late_is_listed_once() {
    let (stack, clock) = stack_and_clock().await;
    let made = tag(&stack, "Once").await;
    data(&stack.answer(&call("DELETE", &format!("/api/v1/tag/{made}"), ACME)).await);
    stack.settle().await.unwrap();
    let wanted = entries(&stack).await;
    assert_eq!(wanted.len(), 2);
    let changes = Stream::changes(&stack.database).unwrap();
    clock.set(Timestamp::from_unix_millis(NOW + 20 * DAY));
    for _ in 0..2 {
        let twice: Vec<Value> = changes.iter().chain(&changes).cloned().collect();
        handle(&stack, &twice).await;
        stack.settle().await.unwrap();
    }
    assert_eq!(entries(&stack).await, wanted);
}

#[tokio::test]
async fn a_change_without_a_key_leaves_no_entry() {
    let stack = Stack::start(listing()).await.unwrap();
    data(&answered(&stack, &valid_call(&routes::RUN_CAMPAIGN, 'a', ACME)).await);
    let begun = entries(&stack).await;
    data(&stack.answer(&valid_call(&routes::RECEIVE_PAYMENT_EVENT, 'a', ACME)).await);
    for _ in 0..2 {
        stack.minute().await.unwrap();
        stack.settle().await.unwrap();
    }
    assert_eq!(entries(&stack).await, begun);
    // The contacts of a campaign have no entries: the campaign has one.
    assert_eq!(actions(&begun), ["created Campaign".to_owned()].into());
}

#[tokio::test]
async fn pages_have_each_entry_once_newest_first() {
    let (stack, clock) = stack_and_clock().await;
    let mut made = Vec::new();
    for number in 0..23 {
        // Some entries have the same time.
        clock.set(Timestamp::from_unix_millis(NOW + number / 3 * 5));
        made.push(tag(&stack, &format!("Tag {number}")).await);
    }
    stack.settle().await.unwrap();
    for size in [1, 4, 23, 100] {
        let (mut found, mut query): (Vec<Value>, _) = (Vec::new(), format!("size={size}"));
        loop {
            let page = page(&stack, &query).await;
            let items = page["items"].as_array().unwrap();
            assert!(!items.is_empty() && items.len() <= size, "{page}");
            found.extend(items.iter().cloned());
            let Some(next) = page["next"].as_str() else { break };
            query = format!("size={size}&after={next}");
        }
        let times: Vec<&str> = found.iter().map(|entry| entry["at"].as_str().unwrap()).collect();
        assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
        let records: BTreeSet<&str> = found.iter().map(|entry| entry["record_id"].as_str().unwrap()).collect();
        assert_eq!((found.len(), records), (made.len(), made.iter().map(String::as_str).collect()), "{size}");
    }
}

#[tokio::test]
async fn dates_and_cursors_bound_the_list() {
    let (stack, clock) = stack_and_clock().await;
    for day in 0..4 {
        clock.set(Timestamp::from_unix_millis(NOW + day * DAY));
        tag(&stack, "A tag a day").await;
    }
    stack.settle().await.unwrap();
    let all = entries(&stack).await;
    let days = async |query: &str| {
        let page = page(&stack, query).await;
        let day = |entry: &Value| entry["at"].as_str().unwrap()[8..10].parse::<u32>().unwrap();
        page["items"].as_array().unwrap().iter().map(day).collect::<Vec<_>>()
    };
    let after = |place: usize| format!("after={}", all[place]["id"].as_str().unwrap());
    assert_eq!(days("").await, [4, 3, 2, 1]);
    assert_eq!(days("date_from=2026-02-02&date_to=2026-02-04").await, [3, 2]);
    assert_eq!(days("date_from=2026-02-04&date_to=2026-02-02").await, Vec::<u32>::new());
    assert_eq!(days("date_from=0001-01-01&date_to=9999-12-31").await, [4, 3, 2, 1]);
    assert_eq!(days("date_to=0001-01-01").await, Vec::<u32>::new());
    // A cursor after the dates, within them, and before them.
    assert_eq!(days(&format!("date_to=2026-02-03&{}", after(0))).await, [2, 1]);
    assert_eq!(days(&format!("date_to=2026-02-04&{}", after(1))).await, [2, 1]);
    assert_eq!(days(&format!("date_from=2026-02-03&{}", after(3))).await, Vec::<u32>::new());
    for (cursor, found) in [("00000000-0000-0000-0000-000000000000", 0), ("ffffffff-ffff-ffff-ffff-ffffffffffff", 4)] {
        assert_eq!(days(&format!("after={cursor}")).await.len(), found, "{cursor}");
    }
    let refused = failure(&stack.answer(&call("GET", &format!("{PATH}?after=x&size=101"), ACME)).await);
    assert_eq!(refused.0, 422);
    // The cursor of another organisation is a point in time here.
    let other = data(&stack.answer(&call("GET", &format!("{PATH}?{}", after(0)), GLOBEX)).await);
    assert_eq!(other["items"], json!([]));
}

#[tokio::test]
async fn an_entry_is_shown_for_its_days_and_then_expires() {
    let (stack, clock) = stack_and_clock().await;
    tag(&stack, "Old").await;
    stack.settle().await.unwrap();
    let stored = as_stored(&stack);
    let ttl = stored.iter().find(|item| item["pk"].as_s().unwrap().contains("#AUDIT#")).unwrap()["ttl"].clone();
    assert_eq!(ttl.as_n().unwrap(), &((NOW + DAYS * DAY) / 1000).to_string());
    clock.set(Timestamp::from_unix_millis(NOW + DAYS * DAY));
    assert_eq!(entries(&stack).await.len(), 1);
    clock.set(Timestamp::from_unix_millis(NOW + DAYS * DAY + 1));
    assert_eq!(entries(&stack).await, Vec::<Value>::new());
}

#[tokio::test]
async fn without_days_nothing_is_stamped_or_listed() {
    let stack = Stack::start(Settings { audit_days: 0, ..listing() }).await.unwrap();
    tag(&stack, "Unlisted").await;
    stack.settle().await.unwrap();
    assert_eq!(entries(&stack).await, Vec::<Value>::new());
    let stamped = as_stored(&stack).into_iter().filter(|item| item.contains_key("stamp"));
    assert_eq!(stamped.count(), 0);
}
