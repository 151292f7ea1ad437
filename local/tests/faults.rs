//! Calls operations during faults of the database and crashes of the process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use local::faults::{Fault, Faults};
use local::http::Call;
use local::{Settings, Stack};
use shared::routes;

use crate::support::fixture::{
    ACME, add_contacts, call, contact_id, data, everything, failure, few, get, id, kind, portable, post, settings,
    valid_call, with_faults,
};
use crate::support::sweep::{cases, takes_all};

async fn stack() -> (Stack, Faults) {
    let (stack, faults) = with_faults(few()).await;
    // The key is cached, so that later faults strike the operation itself.
    get(&stack, "/api/v1/user/get_agent_list/").await;
    (stack, faults)
}

/// Every item, without what is random: the mark of a change of an endpoint's health.
async fn compared(stack: &Stack) -> Vec<BTreeMap<String, AttributeValue>> {
    let mut items = everything(stack).await;
    let of_health =
        |item: &&mut BTreeMap<String, AttributeValue>| item["sk"].as_s().is_ok_and(|sk| sk == "ENDPOINT_HEALTH");
    items.iter_mut().filter(of_health).for_each(|item| drop(item.remove("changed_by")));
    items
}

#[tokio::test]
async fn exhausted_retries_give_503_without_an_effect() {
    for route in cases(routes::ALL) {
        let (stack, faults) = stack().await;
        let before = everything(&stack).await;
        for fault in [Fault::Throttle, Fault::ServerError, Fault::BreakRequest] {
            faults.plan(move |_, _| fault);
            let answer = stack.answer(&valid_call(route, 'a', ACME)).await;
            // The catalogue, and the list of types, are part of the function.
            if [routes::LIST_LLM_MODELS, routes::LIST_EVENT_TYPES].contains(route) {
                assert_eq!((answer.status, answer.cost.calls), (200, 0));
                continue;
            }
            assert_eq!(failure(&answer), (503, vec!["[] unavailable".into()]), "{} {fault:?}", route.name);
            assert_eq!(answer.headers["retry-after"], "1");
            assert_eq!(everything(&stack).await, before, "{} {fault:?}", route.name);
            faults.end();
        }
        assert_eq!(stack.answer(&valid_call(route, 'a', ACME)).await.status, route.success, "{}", route.name);
    }
}

#[tokio::test]
async fn a_silent_database_gets_three_attempts_and_then_503() {
    // An attempt whose connection takes longer sends nothing.
    let attempt = Duration::from_secs(1);
    let (stack, faults) = with_faults(Settings { attempt, ..settings() }).await;
    faults.plan(|_, _| Fault::LoseRequest);
    let answer = stack.answer(&call("GET", "/api/v1/user/get_agent_list/", ACME)).await;
    assert_eq!(failure(&answer), (503, vec!["[] unavailable".into()]));
    assert_eq!(faults.requests(), ["GetItem"; 3]);
}

#[tokio::test]
async fn a_failed_key_look_up_gives_503_and_is_not_cached() {
    let (stack, faults) = with_faults(settings()).await;
    faults.plan(|_, _| Fault::Throttle);
    let answer = stack.answer(&call("GET", "/api/v1/user/get_agent_list/", ACME)).await;
    assert_eq!(failure(&answer), (503, vec!["[] unavailable".into()]));
    faults.end();
    assert_eq!(
        stack.answer(&call("GET", "/api/v1/user/get_agent_list/", ACME)).await.status,
        200,
        "a failure was cached"
    );
}

#[tokio::test]
async fn a_single_fault_is_retried_and_the_effect_happens_once() {
    for route in cases(routes::ALL) {
        let call = valid_call(route, 'a', ACME);
        let (undisturbed, watched) = stack().await;
        watched.watch();
        let expected = undisturbed.answer(&call).await;
        let (actions, wanted) = (watched.requests(), compared(&undisturbed).await);
        let all = [
            Fault::Throttle,
            Fault::ServerError,
            Fault::BreakRequest,
            Fault::BreakAnswer,
            Fault::Conflict,
            Fault::ThrottledTransaction,
            Fault::Unprocessed,
            Fault::InProgress { meets: 1, commits: true },
            Fault::InProgress { meets: 1, commits: false },
            Fault::InProgress { meets: 6, commits: true },
            Fault::InProgress { meets: 6, commits: false },
        ];
        for fault in all.into_iter().filter(|fault| actions.iter().any(|action| fault.applies_to(action))) {
            let case = format!("{} {fault:?}", route.name);
            let (disturbed, faults) = stack().await;
            let mut struck = BTreeSet::new();
            faults.plan(move |action, _| {
                let first = fault.applies_to(action) && struck.insert(action.to_owned());
                if first { fault } else { Fault::None }
            });
            let answer = disturbed.answer(&call).await;
            faults.end();
            // A repeated transaction is recognised by its token, and a repeated change by the request in the record.
            assert_eq!(answer.status, route.success, "{case} {}", answer.body);
            assert_eq!(portable(&disturbed, &answer.body), portable(&undisturbed, &expected.body), "{case}");
            assert_eq!(compared(&disturbed).await, wanted, "{case}");
        }
    }
}

#[tokio::test]
async fn a_throttled_rest_of_a_batch_is_retried() {
    let mut actions = BTreeSet::new();
    for route in cases(routes::ALL) {
        let call = valid_call(route, 'a', ACME);
        let (undisturbed, watched) = stack().await;
        watched.watch();
        watched.note_calls();
        let expected = undisturbed.answer(&call).await;
        let wanted = compared(&undisturbed).await;
        let batches: Vec<_> = watched.calls().into_iter().filter(|call| call.action.starts_with("Batch")).collect();
        // A batch with a single part has no rest.
        let Some(place) = batches.iter().rposition(|batch| batch.items.len() > 1) else { continue };
        actions.insert(batches[place].action.clone());
        let (disturbed, faults) = stack().await;
        let mut calls = 0_usize;
        faults.plan(move |action, _| {
            if !action.starts_with("Batch") {
                return Fault::None;
            }
            calls += 1;
            match calls.wrapping_sub(1 + place) {
                0 => Fault::Unprocessed,
                // These are more attempts than the SDK makes.
                1..=4 => Fault::Throttle,
                _ => Fault::None,
            }
        });
        let answer = disturbed.answer(&call).await;
        faults.end();
        assert_eq!(answer.status, route.success, "{} {}", route.name, answer.body);
        assert_eq!(portable(&disturbed, &answer.body), portable(&undisturbed, &expected.body), "{}", route.name);
        assert_eq!(compared(&disturbed).await, wanted, "{}", route.name);
    }
    if takes_all() {
        let both = ["BatchGetItem", "BatchWriteItem"].map(str::to_owned);
        assert_eq!(actions, BTreeSet::from(both), "a kind of batch never had a rest");
    }
}

fn campaign(contacts: u32) -> Call {
    let ids: Vec<_> = (0..contacts).map(contact_id).collect();
    let body = serde_json::json!({"contact_ids": ids, "message": "Hello"}).to_string();
    post(&format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1)), ACME, body)
}

/// How often the campaigns outside the demo set would send to each contact: the number of its places in them.
async fn sendable(stack: &Stack) -> BTreeMap<String, usize> {
    let items = everything(stack).await;
    let text = |item: &BTreeMap<String, AttributeValue>, name: &str| {
        item.get(name).and_then(|value| value.as_s().ok()).cloned()
    };
    let demo = [id('a', kind::CAMPAIGN, 0), id('a', kind::FAILED_CAMPAIGN, 1), id('a', kind::NEW_CAMPAIGN, 2)];
    let campaigns: Vec<_> = items
        .iter()
        .filter(|item| text(item, "record").as_deref() == Some("Campaign"))
        .filter_map(|item| text(item, "id"))
        .filter(|id| !demo.contains(id) && !id.contains("-b0"))
        // The ids of the contacts begin like the id of the campaign.
        .map(|id| id[..28].to_owned())
        .collect();
    let mut sent = BTreeMap::new();
    for item in &items {
        if text(item, "campaign_id").is_some_and(|campaign| campaigns.contains(&campaign[..28].to_owned()))
            && let Some(contact) = text(item, "contact_id")
        {
            *sent.entry(contact).or_default() += 1;
        }
    }
    sent
}

#[tokio::test]
async fn a_repeat_after_a_crash_queues_each_contact_once() {
    const CONTACTS: u32 = 60;
    let mut left = BTreeSet::new();
    for writes in 0.. {
        let case = format!("crash after {writes} writes");
        let (stack, faults) = with_faults(few()).await;
        add_contacts(&stack, CONTACTS).await;
        faults.die_after_writes(writes);
        let died = faults.kill(stack.answer(&campaign(CONTACTS))).await;
        left.insert((died, sendable(&stack).await.len()));
        faults.end();
        let again = stack.answer(&campaign(CONTACTS)).await;
        assert_eq!(data(&again)["contacts"], CONTACTS, "{}", again.body);
        let sent = sendable(&stack).await;
        assert_eq!(sent.len(), CONTACTS as usize, "{case}");
        assert!(sent.values().all(|times| *times == 1), "{case}: {sent:?}");
        if !died {
            assert!(writes > 3, "no write was interrupted");
            break;
        }
        assert!(writes < 40, "a run of {CONTACTS} contacts has too many writes");
    }
    // A crash leaves no run or a whole one, and both happen.
    let whole = CONTACTS as usize;
    assert_eq!(left, [(true, 0), (true, whole), (false, whole)].into());
}

#[tokio::test]
async fn two_concurrent_requests_make_one_run() {
    let (stack, _) = stack().await;
    add_contacts(&stack, 200).await;
    let (first, second) = (campaign(200), campaign(200));
    let (first, second) = tokio::join!(stack.answer(&first), stack.answer(&second));
    assert_eq!(data(&first)["campaign_id"], data(&second)["campaign_id"]);
    let sent = sendable(&stack).await;
    assert_eq!((sent.len(), sent.values().max()), (200, Some(&1)));
}

#[tokio::test]
async fn a_queued_contact_costs_one_write_unit_and_half_a_read_unit() {
    const CONTACTS: u32 = 10_000;
    // The unoptimised database is slow, and a second attempt would cost units too.
    let stack = Stack::start(Settings { attempt: Duration::from_mins(5), ..settings() }).await.unwrap();
    add_contacts(&stack, CONTACTS).await;
    let answer = stack.answer(&campaign(CONTACTS)).await;
    assert_eq!(data(&answer)["contacts"], CONTACTS);
    let least = f64::from(CONTACTS);
    assert!(answer.cost.write_units <= least * 1.2, "{:?}", answer.cost);
    assert!(answer.cost.read_units <= least * 0.5 * 1.2, "{:?}", answer.cost);
    // Eight calls are made at once. On a busy machine some take longer, so one of the eight chains gets a few more calls.
    let shared_by_eight = (CONTACTS / 25 + CONTACTS / 100) / 8;
    assert!(answer.cost.depth <= 4 + shared_by_eight * 6 / 5, "{:?}", answer.cost);
}
