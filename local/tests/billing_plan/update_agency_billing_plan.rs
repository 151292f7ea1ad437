//! `PUT /api/v1/agency/billing/{agency_id}/billing_plan/{billing_plan_id}`: at most one plan of an agency is the default, by
//! whichever operation it becomes that.

use futures_util::future::join_all;
use local::Stack;
use local::http::{Answer, Call};
use serde_json::{Value, json};

use crate::support::fixture::{
    ACME, as_stored, call, data, few, get, id, kind, post, put_items, settings, stack, with_faults,
};
use crate::support::records::key;

/// The agency of the demo set that has plans. The first of them is the default.
fn plans() -> String {
    format!("/api/v1/agency/billing/{}/billing_plan", id('a', kind::AGENCY, 1))
}

fn creation(is_default: bool) -> Call {
    let body = json!({
        "name": "Team", "description": "For a team", "bots_count": 5, "queries_count": 1000, "words_count": 50000,
        "voice_seconds": 3600, "premium_support": true, "default_plan": is_default,
    });
    post(&plans(), ACME, body.to_string())
}

fn update(plan: &str, body: &Value) -> Call {
    Call { method: "PUT".into(), ..post(&format!("{}/{plan}", plans()), ACME, body.to_string()) }
}

fn of_demo(number: u32) -> String {
    id('a', kind::BILLING_PLAN, number)
}

async fn send(stack: &Stack, call: &Call) -> Value {
    let answer = stack.answer(call).await;
    assert!(answer.status < 300, "{}", answer.body);
    data(&answer)
}

/// The default plans, as the list answers them.
async fn defaults(stack: &Stack) -> Vec<String> {
    let listed = get(stack, &format!("{}/list?size=100", plans())).await;
    let of = listed["items"].as_array().unwrap().iter().filter(|plan| plan["default_plan"] == true);
    of.map(|plan| plan["id"].as_str().unwrap().to_owned()).collect()
}

/// The plan to which the agency's pointer leads.
fn pointed(stack: &Stack) -> Option<String> {
    let (pk, sk) = key(&format!("DEFAULT_PLAN#{}", id('a', kind::AGENCY, 1)), "DEFAULT_PLAN");
    let all = as_stored(stack).into_iter();
    let mut found = all.filter(|item| item["pk"].as_s().unwrap() == &pk && item["sk"].as_s().unwrap() == &sk);
    found.next().map(|item| item["id"].as_s().unwrap().clone())
}

/// Checks that these are the default plans, and that the pointer leads there.
async fn look(stack: &Stack, wanted: Option<&str>, when: &str) {
    assert_eq!(defaults(stack).await, Vec::from_iter(wanted.map(str::to_owned)), "{when}");
    assert_eq!(pointed(stack).as_deref(), wanted, "{when}");
}

#[tokio::test]
async fn a_new_default_takes_the_mark_from_the_former_one() {
    let stack = stack().await;
    look(&stack, Some(&of_demo(0)), "at first").await;
    let created = send(&stack, &creation(true)).await;
    assert_eq!(created["default_plan"], true);
    let created = created["id"].as_str().unwrap();
    look(&stack, Some(created), "after a create").await;
    send(&stack, &creation(false)).await;
    look(&stack, Some(created), "after a create of another one").await;
    for _ in 0..2 {
        let updated = send(&stack, &update(&of_demo(1), &json!({"name": "Most", "default_plan": true}))).await;
        assert_eq!((&updated["name"], &updated["default_plan"]), (&json!("Most"), &json!(true)));
        look(&stack, Some(&of_demo(1)), "after an update").await;
    }
    send(&stack, &update(&of_demo(1), &json!({"name": "All"}))).await;
    look(&stack, Some(&of_demo(1)), "after an update of the name").await;
    send(&stack, &update(&of_demo(1), &json!({"default_plan": null}))).await;
    look(&stack, None, "without the mark").await;
    send(&stack, &update(created, &json!({"default_plan": true}))).await;
    look(&stack, Some(created), "after an update where none was the default").await;
    stack.answer(&call("DELETE", &format!("{}/{created}", plans()), ACME)).await;
    look(&stack, None, "after a delete").await;
    let again = send(&stack, &creation(true)).await;
    look(&stack, again["id"].as_str(), "after a create where none was the default").await;
}

#[tokio::test]
async fn another_agency_keeps_its_default() {
    let stack = stack().await;
    let other = format!("/api/v1/agency/billing/{}/billing_plan", id('a', kind::AGENCY, 0));
    let of_other = send(&stack, &Call { path: other.clone(), ..creation(true) }).await;
    send(&stack, &creation(true)).await;
    assert_eq!(get(&stack, &format!("{other}/{}", of_other["id"].as_str().unwrap())).await["default_plan"], true);
}

#[tokio::test]
async fn sixty_four_at_once_leave_one_default() {
    for writes in [true, false] {
        let stack = stack().await;
        // Half of the requests update; where none is the default, the first one takes no mark from another plan.
        if !writes {
            send(&stack, &update(&of_demo(0), &json!({"default_plan": false}))).await;
        }
        let calls = (0..64).map(|number| match number % 4 {
            0 => update(&of_demo(0), &json!({"default_plan": true})),
            1 => update(&of_demo(1), &json!({"default_plan": true})),
            _ => creation(true),
        });
        let calls: Vec<Call> = calls.collect();
        let answers: Vec<Answer> = join_all(calls.iter().map(|call| stack.answer(call))).await;
        // A request that has waited for the others for ten seconds gives up.
        assert!(answers.iter().all(|answer| answer.status < 300 || answer.status == 503));
        assert!(answers.iter().any(|answer| answer.status < 300));
        let found = defaults(&stack).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(pointed(&stack), found.first().cloned());
    }
}

#[tokio::test]
async fn a_crash_leaves_one_default_and_a_repeat_finishes() {
    for (name, call) in [("create", creation(true)), ("update", update(&of_demo(1), &json!({"default_plan": true})))] {
        for writes in 0.. {
            let (stack, faults) = with_faults(few()).await;
            let keyed = if name == "create" {
                let headers = [("idempotency-key".to_owned(), "default-1".to_owned())].into();
                Call { headers, ..call.clone() }
            } else {
                call.clone()
            };
            faults.die_after_writes(writes);
            let died = faults.kill(stack.answer(&keyed)).await;
            faults.end();
            let case = format!("{name}, after {writes} writes");
            let found = defaults(&stack).await;
            assert_eq!(found.len(), 1, "{case}: {found:?}");
            look(&stack, found.first().map(String::as_str), &case).await;
            // A repeat of a request that may still be running is refused, so this one has no key.
            let finished = send(&stack, &call).await;
            look(&stack, finished["id"].as_str(), &case).await;
            if !died {
                break;
            }
        }
    }
}

/// A stack with two default plans and no pointer, as it was before there were pointers.
async fn old_stack() -> Stack {
    let stack = Stack::start(settings()).await.unwrap();
    send(&stack, &update(&of_demo(0), &json!({"default_plan": false}))).await;
    let mut rows = as_stored(&stack);
    rows.retain(|item| item.get("record").is_some_and(|record| record.as_s().unwrap() == "BillingPlan"));
    rows.retain(|item| [of_demo(0), of_demo(1)].contains(item["id"].as_s().unwrap()));
    assert_eq!(rows.len(), 2);
    for row in &mut rows {
        row.insert("default_plan".to_owned(), aws_sdk_dynamodb::types::AttributeValue::Bool(true));
    }
    put_items(&stack, rows.into_iter().map(|row| row.into_iter().collect())).await;
    assert_eq!((defaults(&stack).await.len(), pointed(&stack)), (2, None));
    stack
}

#[tokio::test]
async fn the_next_default_takes_the_mark_from_all_old_ones() {
    let stack = old_stack().await;
    let created = send(&stack, &creation(true)).await;
    look(&stack, created["id"].as_str(), "after a create").await;
    let stack = old_stack().await;
    send(&stack, &update(&of_demo(0), &json!({"default_plan": true}))).await;
    look(&stack, Some(&of_demo(0)), "after an update").await;
    send(&stack, &update(&of_demo(1), &json!({"default_plan": true}))).await;
    look(&stack, Some(&of_demo(1)), "after another update").await;
}
