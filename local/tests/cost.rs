//! What each operation costs, measured call by call: `docs/COST.md` is the table.

use std::collections::BTreeSet;

use local::faults::Faults;
use local::gateway::Call;
use local::{Settings, Stack};
use shared::routes;
use shared::runtime::meter::Cost;

use crate::contract::generated;
use crate::exercises::{EXERCISES, Exercise};
use crate::fixture::{ACME, ACME_READ_ONLY, call, settings, stack, valid_call};

const HEAD: &str = "\
# What an operation costs

Written by `UPDATE=1 cargo test`, measured on the local stack, compared on every run.

*Calls* are DynamoDB calls, retries aside. *Depth* is how many of them have to wait for one another: each takes about 3 ms in the same
region, so depth is the latency budget. *Units* are capacity units as AWS bills them, for the demo set's small records; larger ones
cost in proportion, per 4 KB read and per 1 KB written. All rows are of a warm function that has seen the key in the last 30 seconds; the first
request of a key adds one call, one to the depth, and one read unit. A key of which one process answers more than a hundredth of its limit adds a call,
one to the depth and a write unit, to about one request a second ([ADR 26](adr/0026-limits-per-key.md)).

| Operation | Calls | Depth | Read units | Write units |
| --- | ---: | ---: | ---: | ---: |
";

const OBJECTS: &str = "
Requests to S3 are not among the calls. Each takes some 20 ms, and is sent after all calls of the table:

";

/// The cost of `call`, with its key already known.
async fn warm(stack: &Stack, call: &Call) -> Cost {
    let key = call.query.clone();
    stack.answer(&Call { query: key, ..crate::fixture::call("GET", "/api/v1/user/get_agent_list/", "") }).await;
    let answer = stack.answer(call).await;
    assert!(answer.status < 300, "{} {}", call.path, answer.body);
    answer.cost
}

#[tokio::test]
async fn the_table_is_what_is_measured() {
    let (mut table, mut objects) = (HEAD.to_owned(), String::new());
    let mut row = |name: &str, cost: Cost| {
        let Cost { calls, depth, read_units, write_units } = cost;
        table += &format!("| {name} | {calls} | {depth} | {read_units} | {write_units} |\n");
    };
    for Exercise { route, costs, first_costs_more, .. } in EXERCISES {
        let (name, faults) = (route.name, Faults::default());
        let stack = Stack::start(Settings { faults: faults.clone(), ..settings() }).await.unwrap();
        let first = if *first_costs_more { Some(warm(&stack, &valid_call(route, 'a', ACME)).await) } else { None };
        let mut calls = costs();
        if calls.is_empty() {
            calls.push(("", valid_call(route, 'a', ACME)));
        }
        for (which, call) in calls {
            row(&format!("`{name}`{which}"), warm(&stack, &call).await);
        }
        let requests: BTreeSet<_> = faults.requests().into_iter().filter(|action| action.ends_with("Object")).collect();
        objects.extend(requests.into_iter().map(|action| format!("- `{name}`: one `{action}`\n")));
        // What a process has appended to once it need not ask about again.
        if let Some(first) = first {
            row(&format!("`{name}`, the first of a process"), first);
        }
    }
    generated("docs/COST.md", &(table + OBJECTS + &objects));
}

#[tokio::test]
async fn no_operation_waits_for_more_than_three_calls_in_a_row_and_a_new_key_is_one_more() {
    for route in routes::ALL {
        let call = valid_call(route, 'a', ACME);
        let cold = stack().await.answer(&call).await.cost;
        let warm = warm(&stack().await, &call).await;
        assert!((1..=3).contains(&warm.depth), "{} {warm:?}", route.name);
        assert_eq!((cold.calls, cold.depth), (warm.calls + 1, warm.depth + 1), "{}", route.name);
        assert_eq!((cold.read_units, cold.write_units), (warm.read_units + 1.0, warm.write_units), "{}", route.name);
    }
}

#[tokio::test]
async fn what_is_refused_before_the_table_costs_nothing() {
    let stack = stack().await;
    for key in ["", "in-short", "xx-demo-acme-full-0000000000000000000000000000"] {
        let answer = stack.answer(&call("DELETE", "/api/v1/tag/x", key)).await;
        assert_eq!((answer.status, answer.cost), (401, Cost::default()), "{key}");
    }
    let read_only = call("DELETE", "/api/v1/tag/x", ACME_READ_ONLY);
    assert_eq!(stack.answer(&read_only).await.cost.calls, 1);
    assert_eq!(stack.answer(&read_only).await.cost, Cost::default(), "a key is remembered");
}
