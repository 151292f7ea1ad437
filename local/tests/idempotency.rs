//! Tests of the header `Idempotency-Key`: a repeat gets the first answer and has no second effect, even after a crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use local::faults::{Fault, Faults};
use local::http::{Answer, Call};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::request::route::Route;
use shared::routes;
use shared::table::item::from_item;
use shared::table::keys::{LIST_HEAD, ROWS};
use shared::values::time::Clock;

use crate::exercises::{Further, exercise};
use crate::support::fixture::{
    ACME, ACME_READ_ONLY, GLOBEX, NOW, call, data, everything, failure, few, id, kind, path, portable, post, stack,
    valid_body, valid_call,
};
use crate::support::keyed::{Item, KEY, LEASE, differing, is_claim, key, keyed, masked, records};
use crate::support::sweep::cases;

const DAY: i64 = 24 * 60 * 60 * 1000;

fn posts() -> impl Iterator<Item = &'static Route> {
    routes::ALL.iter().copied().filter(|route| route.method == "POST")
}

/// A keyed call of `route` that succeeds for Acme.
fn valid(route: &Route) -> Call {
    keyed(valid_call(route, 'a', ACME), KEY)
}

/// A stack, its clock and its faults. The time limit of a database call is so long that no call reaches it.
async fn disturbed() -> (Stack, Arc<AtomicI64>, Faults) {
    let faults = Faults::default();
    let settings = Settings { faults: faults.clone(), attempt: Duration::from_mins(10), ..few() };
    let Clock::Manual(clock) = settings.clock.clone() else { panic!("the tests' clock is set by hand") };
    (Stack::start(settings).await.unwrap(), clock, faults)
}

async fn claims(stack: &Stack) -> Vec<Item> {
    everything(stack).await.into_iter().filter(is_claim).collect()
}

/// Sends a new request of `route`. It has its effect again, has none, or is refused, as the exercise of the route says.
async fn carried_out_again(stack: &Stack, route: &Route, call: &Call) -> Answer {
    let before = records(stack).await;
    let answer = stack.answer(call).await;
    let wanted = match exercise(route).further {
        Further::Effect => (route.success, true),
        // An upsert that finds its record answers 200.
        Further::NoEffect if [routes::UPSERT_CONTACT, routes::CREATE_SUPPRESSION].contains(route) => (200, false),
        Further::NoEffect => (route.success, false),
        Further::Conflict => (409, false),
    };
    assert_eq!((answer.status, records(stack).await != before), wanted, "{} {}", route.name, answer.body);
    answer
}

/// The answer of a call and its changes in the table, without ids and places in lists.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: u16,
    body: String,
    gone: Vec<String>,
    new: Vec<String>,
}

impl Outcome {
    async fn of(stack: &Stack, before: &[Item], answer: &Answer) -> Self {
        let known = format!("{before:?}");
        let after = records(stack).await;
        let without = |items: &[Item], other: &[Item]| {
            let is_new = |item: &Item| other.binary_search_by_key(&key(item), key).is_err();
            let json = |item: &Item| {
                let mut json = from_item::<Value>(item.clone().into_iter().collect()).unwrap();
                // A crashed execution keeps its place in a list, so the repeat has another place.
                if key(item)[1] == LIST_HEAD {
                    json["next_ordinal"] = Value::Null;
                } else if key(item)[0].ends_with(ROWS) && is_new(item) {
                    json["sk"] = Value::Null;
                }
                json.to_string()
            };
            let mut texts: Vec<_> = differing(items, other).map(|item| masked(&json(item), &known)).collect();
            texts.sort();
            texts
        };
        Self {
            status: answer.status,
            body: masked(&portable(stack, &answer.body), &known),
            gone: without(before, &after),
            new: without(&after, before),
        }
    }

    /// The outcome of `call` without faults. With `late`, a first attempt has left no trace, and its lease is over.
    async fn undisturbed(call: &Call, late: bool) -> Self {
        let (stack, clock, _) = disturbed().await;
        if late {
            clock.fetch_add(LEASE, Ordering::SeqCst);
            stack.gateway.service.ids.secret().unwrap();
        }
        let before = records(&stack).await;
        let answer = stack.answer(call).await;
        assert!(answer.status < 300, "{} {}", call.path, answer.body);
        Self::of(&stack, &before, &answer).await
    }
}

fn in_use(answer: &Answer) {
    assert_eq!(failure(answer), (409, vec![r#"["header","idempotency-key"] idempotency_key_in_use"#.into()]));
    assert_eq!(answer.headers["retry-after"], "1");
}

fn reused(answer: &Answer, what: &str) {
    let wanted = vec![r#"["header","idempotency-key"] idempotency_key_reused"#.into()];
    assert_eq!(failure(answer), (422, wanted), "{what}");
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_and_has_no_effect() {
    for route in cases(posts()) {
        let (stack, clock, _) = disturbed().await;
        let before = records(&stack).await;
        let first = stack.answer(&valid(route)).await;
        assert_eq!(first.status, route.success, "{} {}", route.name, first.body);
        let after = records(&stack).await;
        assert_ne!(after, before, "{}", route.name);
        let call = valid(route);
        let slash = Call { path: format!("{}/", call.path.trim_end_matches('/')), ..call.clone() };
        let bearer = ("authorization".to_owned(), format!("Bearer {ACME}"));
        let bearer = Call {
            query: String::new(),
            headers: call.headers.clone().into_iter().chain([bearer]).collect(),
            ..call.clone()
        };
        let other_case = Call { headers: [("Idempotency-Key".to_owned(), KEY.to_owned())].into(), ..call.clone() };
        for repeat in [&call, &slash, &bearer, &other_case, &call] {
            let again = stack.answer(repeat).await;
            assert_eq!((again.status, &again.body), (first.status, &first.body), "{}", route.name);
            assert_ne!(again.headers["x-request-id"], first.headers["x-request-id"], "{}", route.name);
            assert_eq!(records(&stack).await, after, "{}", route.name);
            clock.fetch_add(DAY / 6, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn an_idempotency_key_leaves_the_answer_unchanged() {
    for route in cases(posts()) {
        let [with, without] = [valid(route), valid_call(route, 'a', ACME)];
        let with = Outcome::undisturbed(&with, false).await;
        let without = Outcome::undisturbed(&without, false).await;
        assert_eq!(
            (with.status, masked(&with.body, "")),
            (without.status, masked(&without.body, "")),
            "{}",
            route.name
        );
    }
}

#[tokio::test]
async fn a_repeat_returns_the_kept_client_error() {
    let stack = stack().await;
    let run = |body: &Value| {
        let path = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 3));
        keyed(post(&path, ACME, body.to_string()), KEY)
    };
    // The widget has no message. The handler finds this out, after the validation of the input.
    let silent = json!({"contact_ids": [id('a', kind::CONTACT, 1)]});
    let first = stack.answer(&run(&silent)).await;
    assert_eq!(failure(&first), (422, vec![r#"["body","message"] missing"#.into()]));
    let again = stack.answer(&run(&silent)).await;
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    assert!(again.cost.calls < first.cost.calls, "the operation ran again");
    let with_message = json!({"contact_ids": [id('a', kind::CONTACT, 1)], "message": "Hi"});
    reused(&stack.answer(&run(&with_message)).await, "another body");
}

#[tokio::test]
async fn a_repeat_computes_an_oversized_answer_again() {
    let stack = stack().await;
    let unknown: Vec<_> =
        (0..6000).map(|number| format!("01900000-0000-7000-8000-{:012x}", 0xf000_0000_0000_u64 + number)).collect();
    let path = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1));
    let call = keyed(post(&path, ACME, json!({"contact_ids": unknown}).to_string()), KEY);
    let first = stack.answer(&call).await;
    assert!(first.status == 422 && first.body.len() > 400_000, "{}", first.body.len());
    let again = stack.answer(&call).await;
    assert_eq!((again.status, again.body), (first.status, first.body));
    reused(&stack.answer(&keyed(post(&path, ACME, valid_body(&routes::RUN_CAMPAIGN, 'a')), KEY)).await, "another body");
}

#[tokio::test]
async fn the_largest_answer_to_a_create_is_kept() {
    let stack = stack().await;
    let most = "x".repeat(32 * 1024 - r#"{"x":""}"#.len());
    let body = format!(r#"{{"branding":{{"x":"{most}"}},"domain":{{"x":"{most}"}},"user_auth":{{"x":"{most}"}}}}"#);
    let call = keyed(post(routes::CREATE_AGENCY.path, ACME, body), KEY);
    let first = stack.answer(&call).await;
    assert_eq!(first.status, 201);
    let again = stack.answer(&call).await;
    assert!(again.body == first.body && again.cost.calls == 1, "{:?}", again.cost);
}

#[tokio::test]
async fn a_key_of_another_request_is_refused_with_422() {
    for route in cases(posts()) {
        let stack = stack().await;
        let first = valid(route);
        let answer = stack.answer(&first).await;
        let before = everything(&stack).await;
        let mut others = vec![
            Call { body: [&first.body[..], b" "].concat(), ..first.clone() },
            Call { query: format!("{}&page=1", first.query), ..first.clone() },
            Call { query: format!("Api_key=1&{}", first.query), ..first.clone() },
        ];
        others.extend(posts().filter(|other| *other != route).map(valid));
        for other in &others {
            reused(&stack.answer(other).await, &format!("{} {} {}", route.name, other.path, other.query));
        }
        assert_eq!(everything(&stack).await, before, "{}", route.name);
        assert_eq!(stack.answer(&first).await.body, answer.body, "{}", route.name);
    }
}

#[tokio::test]
async fn a_repeat_may_order_its_parameter_names_differently() {
    let stack = stack().await;
    let with = |query: &str| Call { query: format!("api_key={ACME}&{query}"), ..valid(&routes::CREATE_AGENCY) };
    let first = stack.answer(&with("a=1&b=2&a=3")).await;
    for same in ["a=1&a=3&b=2", "b=2&a=1&a=3", "b=%32&a=1&a=3"] {
        assert_eq!(stack.answer(&with(same)).await.body, first.body, "{same}");
    }
    for other in ["a=3&b=2&a=1", "a=1&b=2", "a=1&b=2&a=3&c", "b=2&a=13"] {
        reused(&stack.answer(&with(other)).await, other);
    }
}

#[tokio::test]
async fn another_key_or_no_key_makes_another_request() {
    for route in cases(posts()) {
        let stack = stack().await;
        let before = records(&stack).await;
        assert_eq!(stack.answer(&valid(route)).await.status, route.success, "{}", route.name);
        assert_ne!(records(&stack).await, before, "{}", route.name);
        for call in [keyed(valid(route), "another"), valid_call(route, 'a', ACME)] {
            carried_out_again(&stack, route, &call).await;
        }
    }
}

#[tokio::test]
async fn organisations_do_not_share_keys() {
    for route in cases(posts()) {
        let stack = stack().await;
        let first = stack.answer(&valid(route)).await;
        let others = keyed(valid_call(route, 'b', GLOBEX), KEY);
        let answer = stack.answer(&others).await;
        assert_eq!(answer.status, route.success, "{} {}", route.name, answer.body);
        // The answer of a recovery only counts.
        if *route != routes::RECOVER_WEBHOOK {
            assert_ne!(answer.body, first.body, "{}", route.name);
        }
        assert_eq!(stack.answer(&others).await.body, answer.body, "{}", route.name);
        assert_eq!(stack.answer(&valid(route)).await.body, first.body, "{}", route.name);
        assert_eq!(claims(&stack).await.len(), 2, "{}", route.name);
    }
}

#[tokio::test]
async fn a_key_is_1_to_255_visible_characters() {
    let longest: String = ('!'..='~').cycle().take(255).collect();
    for route in cases(posts()) {
        let stack = stack().await;
        let before = everything(&stack).await;
        for wrong in
            ["", " ", "a b", " a", "a ", "a\tb", "é", "a\u{fffd}", "ключ", &format!("{longest}!"), &"x".repeat(9000)]
        {
            let answer = stack.answer(&keyed(valid_call(route, 'a', ACME), wrong)).await;
            let wanted = json!({"detail": [{
                "loc": ["header", "idempotency-key"],
                "msg": "String should match pattern '^[!-~]{1,255}$'",
                "type": "string_pattern_mismatch",
            }]});
            assert_eq!((answer.status, serde_json::from_str(&answer.body).ok()), (422, Some(wanted)), "{wrong}");
        }
        assert_eq!(everything(&stack).await, before, "{}", route.name);
        assert_eq!(stack.answer(&valid(route)).await.status, route.success, "{}", route.name);
        for right in ["!", "~", "0", &longest] {
            carried_out_again(&stack, route, &keyed(valid_call(route, 'a', ACME), right)).await;
        }
        assert_eq!(claims(&stack).await.len(), 5, "{}", route.name);
    }
}

#[tokio::test]
async fn a_malformed_key_is_reported_beside_other_issues() {
    let stack = stack().await;
    let path = format!("/api/v1/agency/billing/{}/billing_plan", "x");
    let answer = stack.answer(&keyed(post(&path, ACME, "[]"), "a key")).await;
    let wanted = [
        r#"["path","agency_id"] uuid_parsing"#,
        r#"["header","idempotency-key"] string_pattern_mismatch"#,
        r#"["body"] model_attributes_type"#,
    ];
    assert_eq!(failure(&answer), (422, wanted.map(str::to_owned).to_vec()));
}

#[tokio::test]
async fn an_early_refusal_leaves_the_key_unused() {
    for route in cases(posts()) {
        let stack = stack().await;
        let good = valid(route);
        let path = path(route, |_| "x".into());
        let mut refused = vec![
            (401, Call { query: String::new(), ..good.clone() }),
            (403, keyed(valid_call(route, 'a', ACME_READ_ONLY), KEY)),
            (413, Call { body: vec![b' '; route.body_limit + 1], ..good.clone() }),
        ];
        if path != route.path {
            refused.push((422, Call { path, ..good.clone() }));
        }
        if local::functions::describe(route.name).body.is_some() {
            refused.push((422, Call { body: b"{".to_vec(), ..good.clone() }));
        }
        let before = everything(&stack).await;
        for (status, call) in refused {
            let answer = stack.answer(&call).await;
            assert_eq!(answer.status, status, "{} {}", route.name, answer.body);
        }
        assert_eq!(everything(&stack).await, before, "{}", route.name);
        assert_eq!(stack.answer(&good).await.status, route.success, "{}", route.name);
    }
}

#[tokio::test]
async fn methods_other_than_post_ignore_the_key() {
    for route in cases(routes::ALL.iter().filter(|route| route.method != "POST")) {
        for key in [KEY, "", "not a key"] {
            let stack = stack().await;
            let answer = stack.answer(&keyed(valid_call(route, 'a', ACME), key)).await;
            assert_eq!(answer.status, route.success, "{} {}", route.name, answer.body);
            assert_eq!(claims(&stack).await, Vec::<Item>::new(), "{}", route.name);
        }
    }
}

#[tokio::test]
async fn a_claim_and_its_key_expire_after_a_day() {
    for route in cases(posts()) {
        let (stack, clock, _) = disturbed().await;
        let first = stack.answer(&valid(route)).await;
        let before = records(&stack).await;
        let claim = claims(&stack).await.remove(0);
        assert_eq!(claim["ttl"], AttributeValue::N(((NOW + DAY) / 1000).to_string()), "{}", route.name);
        clock.fetch_add(DAY - 1, Ordering::SeqCst);
        assert_eq!(stack.answer(&valid(route)).await.body, first.body, "{}", route.name);
        assert_eq!(records(&stack).await, before, "{}", route.name);
        clock.fetch_add(1, Ordering::SeqCst);
        let second = carried_out_again(&stack, route, &valid(route)).await;
        assert_eq!(stack.answer(&valid(route)).await.body, second.body, "{}", route.name);
    }
}

/// Crashes the request at its call number `at`, before or after the effect of that call. False if it has fewer calls.
async fn crashes_at(stack: &Stack, call: &Call, faults: &Faults, fault: Fault, at: usize) -> bool {
    faults.plan(move |_, number| if number >= at { fault } else { Fault::None });
    crashes(stack, call, faults).await
}

/// Crashes the request after so many writes. False if it has fewer.
async fn crashes_after_writes(stack: &Stack, call: &Call, faults: &Faults, writes: usize) -> bool {
    faults.die_after_writes(writes);
    crashes(stack, call, faults).await
}

async fn crashes(stack: &Stack, call: &Call, faults: &Faults) -> bool {
    let crashed = faults.kill(stack.answer(call)).await;
    faults.end();
    crashed
}

#[tokio::test]
async fn a_repeat_after_any_crash_has_one_effect() {
    // Every stack starts with the same records.
    let before = records(&disturbed().await.0).await;
    for route in cases(posts()) {
        let call = valid(route);
        let in_time = Outcome::undisturbed(&call, false).await;
        let late = Outcome::undisturbed(&call, true).await;
        let mut busy = 0;
        for writes in 0.. {
            let what = format!("{} crashes after {writes} writes", route.name);
            let (stack, clock, faults) = disturbed().await;
            if !crashes_after_writes(&stack, &call, &faults, writes).await {
                assert!(writes > 2, "{what}: it never crashed");
                break;
            }
            let claim = claims(&stack).await.pop();
            if let Some(claim) = &claim
                && !claim.contains_key("sealed")
            {
                let left = everything(&stack).await;
                in_use(&stack.answer(&call).await);
                clock.fetch_add(LEASE - 1, Ordering::SeqCst);
                in_use(&stack.answer(&call).await);
                assert_eq!(everything(&stack).await, left, "{what}");
                clock.fetch_add(1, Ordering::SeqCst);
                busy += 1;
            } else {
                clock.fetch_add(LEASE, Ordering::SeqCst);
            }
            let wanted = if claim.is_some() { &in_time } else { &late };
            let again = stack.answer(&call).await;
            assert_eq!(&Outcome::of(&stack, &before, &again).await, wanted, "{what}");
            let once_more = stack.answer(&call).await;
            assert_eq!((once_more.status, &once_more.body), (again.status, &again.body), "{what}");
            assert_eq!(&Outcome::of(&stack, &before, &once_more).await, wanted, "{what}");
        }
        assert!(busy > 1, "{}: no crash left an unfinished claim", route.name);
    }
}

#[tokio::test]
async fn a_repeat_after_a_crash_in_a_transaction_has_one_effect() {
    let before = records(&disturbed().await.0).await;
    let mut crashes_seen = 0;
    for route in cases(posts()) {
        let call = valid(route);
        let wanted = Outcome::undisturbed(&call, false).await;
        for commits in [true, false] {
            let (stack, clock, faults) = disturbed().await;
            let mut held = false;
            faults.plan(move |action, _| {
                // The process crashes at the second attempt.
                let is_second = held;
                held |= action == "TransactWriteItems";
                if is_second { Fault::LoseRequest } else { Fault::InProgress { meets: 4, commits } }
            });
            if !crashes(&stack, &call, &faults).await {
                continue;
            }
            crashes_seen += 1;
            clock.fetch_add(LEASE, Ordering::SeqCst);
            let again = stack.answer(&call).await;
            assert_eq!(Outcome::of(&stack, &before, &again).await, wanted, "{} {commits}", route.name);
            assert_eq!(stack.answer(&call).await.body, again.body, "{} {commits}", route.name);
        }
    }
    assert!(crashes_seen > 0, "no request writes by a transaction");
}

#[tokio::test]
async fn repeated_crashes_and_take_overs_have_one_effect() {
    for route in cases(posts()) {
        let call = valid(route);
        let wanted = Outcome::undisturbed(&call, false).await;
        let (stack, clock, faults) = disturbed().await;
        let before = records(&stack).await;
        // The first attempt crashes after the key's look-up and the claim. Each later attempt takes over, and crashes
        // one call later than the attempt before.
        assert!(crashes_at(&stack, &call, &faults, Fault::LoseAnswer, 2).await);
        for at in 1.. {
            clock.fetch_add(LEASE, Ordering::SeqCst);
            if !crashes_at(&stack, &call, &faults, Fault::LoseAnswer, at).await {
                break;
            }
        }
        let answer = stack.answer(&call).await;
        assert_eq!(Outcome::of(&stack, &before, &answer).await, wanted, "{}", route.name);
    }
}

#[tokio::test]
async fn a_lost_database_answer_does_not_change_the_outcome() {
    for route in cases(posts()) {
        let call = valid(route);
        let wanted = Outcome::undisturbed(&call, false).await;
        for lost in 0.. {
            let what = format!("{} answer {lost}", route.name);
            let (stack, _, faults) = disturbed().await;
            let before = records(&stack).await;
            faults.plan(move |_, number| if number == lost { Fault::BreakAnswer } else { Fault::None });
            let answer = stack.answer(&call).await;
            let requests = faults.requests().len();
            faults.end();
            assert_eq!(Outcome::of(&stack, &before, &answer).await, wanted, "{what}");
            let again = stack.answer(&call).await;
            assert_eq!((again.status, again.body), (answer.status, answer.body), "{what}");
            if requests <= lost {
                assert!(lost > 2, "{what}: no fault was felt");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_take_over_succeeds_when_a_database_answer_is_lost() {
    let call = valid(&routes::CREATE_AGENCY);
    // The calls: the key's look-up, the refused claim, the take-over, the ordinal, the row, the kept answer.
    for lost in 0..6 {
        let (stack, clock, faults) = disturbed().await;
        assert!(crashes_at(&stack, &call, &faults, Fault::LoseRequest, 3).await);
        clock.fetch_add(LEASE, Ordering::SeqCst);
        faults.plan(move |_, number| if number == lost { Fault::BreakAnswer } else { Fault::None });
        let answer = stack.answer(&call).await;
        assert_eq!((answer.status, faults.requests().len()), (201, 7), "{lost}");
    }
}

#[tokio::test]
async fn a_repeat_after_a_server_error_runs_at_once() {
    let (stack, _, faults) = disturbed().await;
    let before = records(&stack).await;
    let call = valid(&routes::CREATE_AGENCY);
    let wanted = Outcome::undisturbed(&call, false).await;
    // Look-up, claim, then the handler's one call in its three attempts.
    faults.plan(|_, number| if (2..5).contains(&number) { Fault::Throttle } else { Fault::None });
    let answer = stack.answer(&call).await;
    assert_eq!(failure(&answer), (503, vec!["[] unavailable".into()]));
    faults.end();
    let again = stack.answer(&call).await;
    assert_eq!(Outcome::of(&stack, &before, &again).await, wanted);
    assert_eq!(stack.answer(&call).await.body, again.body);
}

#[tokio::test]
async fn a_repeat_after_an_unrecorded_failure_waits_for_the_lease() {
    for route in cases(posts()) {
        let call = valid(route);
        let wanted = Outcome::undisturbed(&call, false).await;
        let (stack, clock, faults) = disturbed().await;
        let before = records(&stack).await;
        // Two calls are about the key of the caller, and one makes the claim.
        faults.plan(|_, number| if number >= 3 { Fault::ServerError } else { Fault::None });
        assert_eq!(failure(&stack.answer(&call).await), (503, vec!["[] unavailable".into()]), "{}", route.name);
        faults.end();
        in_use(&stack.answer(&call).await);
        clock.fetch_add(LEASE, Ordering::SeqCst);
        let again = stack.answer(&call).await;
        assert_eq!(Outcome::of(&stack, &before, &again).await, wanted, "{}", route.name);
    }
}

#[tokio::test]
async fn an_answer_is_returned_when_it_cannot_be_kept() {
    let (stack, clock, faults) = disturbed().await;
    let call = valid(&routes::CREATE_AGENCY);
    faults.plan(|_, number| if number >= 5 { Fault::ServerError } else { Fault::None });
    let first = stack.answer(&call).await;
    assert_eq!(first.status, 201);
    faults.end();
    let before = records(&stack).await;
    in_use(&stack.answer(&call).await);
    clock.fetch_add(LEASE, Ordering::SeqCst);
    assert_eq!(stack.answer(&call).await.body, first.body);
    assert_eq!(records(&stack).await, before);
}

#[tokio::test]
async fn two_simultaneous_requests_have_one_effect() {
    for route in cases(posts()) {
        let call = valid(route);
        let wanted = Outcome::undisturbed(&call, false).await;
        // Once without an earlier request, and once after one that crashed.
        for after_crash in [false, true] {
            let what = format!("{} {after_crash}", route.name);
            let (stack, clock, faults) = disturbed().await;
            let before = records(&stack).await;
            if after_crash {
                assert!(crashes_at(&stack, &call, &faults, Fault::LoseRequest, 2).await);
                clock.fetch_add(LEASE, Ordering::SeqCst);
            }
            let (first, second) = tokio::join!(stack.answer(&call), stack.answer(&call));
            let mut carried_out = 0;
            for answer in [first, second] {
                if answer.status < 300 {
                    // A request that finds the kept answer makes two calls: look-up and claim.
                    carried_out += u32::from(answer.cost.calls > 2);
                } else {
                    in_use(&answer);
                }
            }
            assert_eq!(carried_out, 1, "{what}");
            let answer = stack.answer(&call).await;
            let outcome = Outcome::of(&stack, &before, &answer).await;
            assert_eq!((outcome.status, outcome.new.len()), (wanted.status, wanted.new.len()), "{what}");
        }
    }
}

#[tokio::test]
async fn a_late_repeat_finds_its_campaign_without_staging_contacts() {
    let (stack, clock, faults) = disturbed().await;
    let call = valid(&routes::RUN_CAMPAIGN);
    // The crash comes after the commit and before the answer is kept, so the contacts may be sent now.
    let calls = {
        let (stack, _, watched) = disturbed().await;
        watched.watch();
        stack.answer(&call).await;
        watched.requests().len()
    };
    assert!(crashes_at(&stack, &call, &faults, Fault::LoseRequest, calls - 1).await);
    let committed = records(&stack).await;
    clock.fetch_add(DAY - 1, Ordering::SeqCst);
    faults.watch();
    let again = stack.answer(&call).await;
    assert!(!faults.requests().iter().any(|action| action == "BatchWriteItem"), "{:?}", faults.requests());
    faults.end();
    let campaign = data(&again)["campaign_id"].clone();
    let campaign = AttributeValue::S(campaign.as_str().unwrap().to_owned());
    assert!(committed.iter().any(|item| key(item)[1] == "CAMPAIGN" && item["id"] == campaign));
    assert_eq!(records(&stack).await, committed);
    // The marker, by which a repeat finds the campaign, stays for as long as the key and one lease.
    let marker = committed.iter().find(|item| key(item)[1] == "RUN").unwrap();
    let ttl: i64 = marker["ttl"].as_n().unwrap().parse().unwrap();
    assert!(ttl >= (NOW + DAY + LEASE) / 1000, "{marker:?}");
}

#[tokio::test]
async fn each_attempt_at_a_campaign_stages_its_own_contacts() {
    let (stack, clock, faults) = disturbed().await;
    let call = valid(&routes::RUN_CAMPAIGN);
    let queued = async || {
        let items = everything(&stack).await.into_iter();
        items.filter(|item| item["pk"].as_s().unwrap().contains("#CAMPAIGN_CONTACT#")).collect::<Vec<_>>()
    };
    let before = queued().await.len();
    faults.plan(|action, _| if action == "BatchWriteItem" { Fault::LoseAnswer } else { Fault::None });
    assert!(crashes(&stack, &call, &faults).await);
    let of_crashed = queued().await;
    assert_eq!(of_crashed.len(), before + 1);
    clock.fetch_add(LEASE, Ordering::SeqCst);
    assert_eq!(stack.answer(&call).await.status, 200);
    // The contacts that the crashed attempt staged, or may still stage, are no part of the campaign.
    let all = queued().await;
    assert_eq!(all.len(), before + 2);
    assert!(of_crashed.iter().all(|item| all.contains(item)));
}

#[tokio::test]
async fn the_table_reveals_neither_key_nor_answer() {
    for route in cases(posts()) {
        let stack = stack().await;
        let answer = stack.answer(&valid(route)).await;
        let items = everything(&stack).await;
        assert!(!format!("{items:?}").contains(KEY), "{}", route.name);
        let claim = items.into_iter().find(is_claim).unwrap();
        let mut values = Vec::new();
        // The organisation's id and the time are in most answers and in every claim, so they prove nothing.
        let common = ["pk", "started_at", "lease_until"];
        for (name, value) in claim.iter().filter(|(name, _)| !common.contains(&name.as_str())) {
            values.push(match value {
                AttributeValue::S(text) | AttributeValue::N(text) => text.clone().into_bytes(),
                AttributeValue::B(bytes) => bytes.as_ref().to_vec(),
                other => panic!("{name} {other:?}"),
            });
        }
        let holds = |part: &[u8]| values.iter().any(|value| value.windows(part.len()).any(|window| window == part));
        assert!(holds(b"IDEMPOTENCY"));
        assert!(!holds(KEY.as_bytes()), "{}", route.name);
        assert!(answer.body.as_bytes().chunks_exact(12).all(|part| !holds(part)), "{}", route.name);
        // The sealed text is as long as the answer. Under another key, the same answer has another sealed text.
        let sealed = |claim: &Item| claim["sealed"].as_b().unwrap().as_ref().to_vec();
        assert!(sealed(&claim).len() >= answer.body.len());
        carried_out_again(&stack, route, &keyed(valid(route), "another")).await;
        let others = claims(&stack).await.into_iter().find(|other| other["pk"] != claim["pk"]).unwrap();
        assert_ne!(sealed(&others)[..32], sealed(&claim)[..32], "{}", route.name);
    }
}

#[tokio::test]
async fn a_keyed_request_costs_two_more_calls_and_its_repeat_one() {
    let warm_stack = async || {
        let stack = stack().await;
        stack.answer(&call("GET", "/api/v1/user/get_agent_list/", ACME)).await;
        stack
    };
    for route in cases(posts()) {
        let stack = warm_stack().await;
        let with = stack.answer(&valid(route)).await.cost;
        let again = stack.answer(&valid(route)).await.cost;
        let without = warm_stack().await.answer(&valid_call(route, 'a', ACME)).await.cost;
        assert_eq!((with.calls, with.depth), (without.calls + 2, without.depth + 2), "{}", route.name);
        assert_eq!((again.calls, again.depth, again.read_units), (1, 1, 0.0), "{}", route.name);
    }
}
