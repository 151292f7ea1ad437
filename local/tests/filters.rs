//! Checks the filters of every list on every route with a filter.

use std::collections::BTreeSet;

use local::Stack;
use local::database::TABLE_NAME;
use local::functions::describe;
use local::http::Call;
use serde_json::{Value, json};
use shared::records::conversation::Conversation;
use shared::request::route::Route;
use shared::routes;
use shared::table::Table;
use shared::table::declaration::Declared as _;
use shared::table::filters::{Move, follow};
use shared::table::item::to_item;
use shared::table::keys::{Key, list_row};
use shared::table::stored::Listed as _;
use shared::values::id::{SPREAD, with_ordinal};
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::fixture::{
    ACME, NOW, call, data, demo_id, failure, get, go_on_at, make, path, post, put_items, settings, streaming, tenant,
    valid_call, with_faults,
};
use crate::support::records::NOBODYS;
use crate::support::sweep::cases;

/// The filters of a list by fields of its rows, each with its schema. `dates.rs` tests the filters by date, and
/// `custom_fields.rs` those by custom fields. The audit list has no numbered pages, and no filters.
fn filters(route: &Route) -> Vec<(String, Value)> {
    let query = describe(route.name).query;
    let members = query["properties"].as_object().unwrap().clone().into_iter();
    let members = members.filter(|_| query["properties"].get("page").is_some());
    let others = ["page", "size", "order", "date_from", "date_to", "custom_field"];
    members.filter(|(name, _)| !others.contains(&name.as_str())).collect()
}

/// A value as a query has it.
fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn filtered() -> impl Iterator<Item = &'static Route> {
    routes::ALL.iter().copied().filter(|route| route.method == "GET" && !filters(route).is_empty())
}

/// The rows on all pages, and the total.
async fn ids(stack: &Stack, route: &Route, query: &str) -> (Vec<Value>, u64) {
    let (mut found, mut page) = (Vec::new(), 1);
    loop {
        let answer =
            get(stack, &format!("{}?{query}&size=100&page={page}", path(route, |name| demo_id('a', name)))).await;
        found.extend(answer["items"].as_array().unwrap().clone());
        if answer["next_page"].is_null() {
            return (found, answer["total"].as_u64().unwrap());
        }
        page += 1;
    }
}

async fn settled() -> Stack {
    let stack = Stack::start(streaming()).await.unwrap();
    stack.settle().await.unwrap();
    stack
}

#[tokio::test]
async fn every_combination_of_filters_selects_its_rows() {
    let (stack, mut lists) = (settled().await, Vec::new());
    for route in filtered() {
        let names: Vec<String> = filters(route).into_iter().map(|(name, _)| name).collect();
        lists.push((route, names, ids(&stack, route, "").await.0));
    }
    let combinations = lists.iter().flat_map(|(route, names, rows)| {
        let likes = [rows.first(), rows.get(rows.len() / 2), rows.last()].into_iter().flatten();
        likes.flat_map(move |like| (1..1_u32 << names.len()).map(move |choice| (*route, names, rows, like, choice)))
    });
    let combinations: Vec<_> = combinations.collect();
    assert!(combinations.len() > 50, "{}", combinations.len());
    for (route, names, rows, like, choice) in cases(combinations) {
        let chosen: Vec<&String> = (0..)
            .zip(names)
            .filter(|(bit, name)| choice & (1 << bit) != 0 && !like[*name].is_null())
            .map(|(_, name)| name)
            .collect();
        let query: String = chosen.iter().map(|name| format!("&{name}={}", written(&like[*name]))).collect();
        let wanted: Vec<Value> =
            rows.iter().filter(|row| chosen.iter().all(|name| row[*name] == like[*name])).cloned().collect();
        let total = wanted.len() as u64;
        let newest_first = wanted.iter().rev().cloned().collect();
        assert_eq!(ids(&stack, route, &query).await, (wanted, total), "{} {query}", route.name);
        let query = query + "&order=desc";
        assert_eq!(ids(&stack, route, &query).await, (newest_first, total), "{} {query}", route.name);
    }
}

#[tokio::test]
async fn an_absent_value_selects_no_row_and_an_invalid_one_gives_422() {
    let stack = settled().await;
    for route in filtered() {
        let (rows, _) = ids(&stack, route, "").await;
        for (name, schema) in filters(route) {
            if schema["format"] == "email" || schema["format"] == "phone" {
                // `unique.rs` tests the unique values.
                continue;
            }
            let has: BTreeSet<String> = rows.iter().map(|row| written(&row[&name])).collect();
            let is_boolean = schema["type"] == "boolean";
            let booleans = is_boolean.then(|| vec![json!(true), json!(false)]);
            let absent = match schema["enum"].as_array().or(booleans.as_ref()) {
                Some(words) => words.iter().map(written).find(|word| !has.contains(word)),
                None => Some(NOBODYS.to_owned()),
            };
            if let Some(absent) = absent {
                let found = ids(&stack, route, &format!("&{name}={absent}")).await;
                assert_eq!(found, (Vec::new(), 0), "{} {name}", route.name);
            }
            // A filter by text accepts any text.
            if schema["enum"].is_array() || schema["format"] == "uuid" || is_boolean {
                let mut call = valid_call(route, 'a', ACME);
                call.query += &format!("&{name}=%F0%9F%98%80");
                let (status, issues) = failure(&stack.answer(&call).await);
                assert_eq!((status, issues.len()), (422, 1), "{} {name}", route.name);
                assert!(issues[0].starts_with(&format!("[\"query\",\"{name}\"] ")), "{issues:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_change_moves_a_row_between_filters_and_a_delete_removes_it() {
    let stack = settled().await;
    let list = &routes::LIST_DATASOURCES;
    let total = async |query: &str| ids(&stack, list, query).await.1;
    assert_eq!((total("&ds_status=ready_for_use").await, total("&ds_status=failed").await), (1, 0));
    let path = format!("/api/v1/datasource/{}", demo_id('a', "datasource_id"));
    let body = br#"{"ds_status":"failed"}"#.to_vec();
    data(&stack.answer(&Call { body, ..call("PUT", &path, ACME) }).await);
    // Before the stream delivers the change, no page has a row that contradicts its filter.
    assert_eq!(ids(&stack, list, "&ds_status=ready_for_use").await.0, Vec::<Value>::new());
    stack.settle().await.unwrap();
    assert_eq!((total("&ds_status=ready_for_use").await, total("&ds_status=failed&ds_type=pdf").await), (0, 1));
    data(&stack.answer(&call("DELETE", &path, ACME)).await);
    stack.settle().await.unwrap();
    assert_eq!((total("&ds_status=failed").await, total("&ds_type=pdf").await, total("").await), (0, 0, 1));
}

#[tokio::test]
async fn the_expiry_of_a_set_keeps_later_rows() {
    // DynamoDB removes an expired block and its section at different times.
    let parts = ["the blocks", "the sections", "the volumes", "all of it"];
    for (part, is_long) in parts.into_iter().flat_map(|part| [(part, false), (part, true)]) {
        if part == "the volumes" && !is_long {
            continue;
        }
        let of_part = |key: &Key| match part {
            "the blocks" => key.pk.ends_with("#BLOCKS"),
            "the sections" => key.sk.starts_with("SECTION#"),
            "the volumes" => key.sk.starts_with("VOLUME#"),
            _ => true,
        };
        let stack = settled().await;
        if is_long {
            go_on_at::<Conversation>(&stack, SPREAD + (3 << 20)).await;
        }
        let assistant = make(&stack, "/api/v1/assistant", json!({})).await;
        let open = async || {
            let body = json!({"assistant_id": assistant});
            let conversation = make(&stack, "/api/v1/conversation", body).await;
            stack.settle().await.unwrap();
            conversation
        };
        let close = async |conversation: Uuid| {
            let path = format!("/api/v1/conversation/{conversation}/close");
            data(&stack.answer(&post(&path, ACME, "")).await);
            stack.settle().await.unwrap();
        };
        let total = async |query: &str| {
            let (found, total) = ids(&stack, &routes::LIST_CONVERSATIONS, &format!("&status=open{query}")).await;
            assert_eq!(found.len() as u64, total, "{part}");
            total
        };
        let of_it = format!("&assistant_id={assistant}");
        let others = total("").await;
        // Each change raises the version of the block above the version of a new one.
        for _ in 0..3 {
            let conversation = open().await;
            assert_eq!(total(&of_it).await, 1);
            close(conversation).await;
        }
        let clock = &stack.gateway.service.clock;
        clock.set(clock.now().plus_seconds(4 * 86_400));
        let expired = stack.expire(|key| key.pk.contains("#SET#") && of_part(key)).unwrap();
        assert!(expired > 0, "{part}, long: {is_long}");
        let conversation = open().await;
        assert_eq!((total(&of_it).await, total("").await), (1, others + 1), "{part}");
        close(conversation).await;
        assert_eq!((total(&of_it).await, total("").await), (0, others), "{part}");
    }
}

#[tokio::test]
async fn an_older_count_does_not_replace_a_newer_equal_one() {
    for first in [0, 3 << 20] {
        let (stack, faults) = with_faults(settings()).await;
        let (tenant, list) = (tenant(), Conversation::list(()));
        let row = |ordinal: u64, is_there: bool| {
            let row: Conversation = serde_json::from_value(json!({
                "id": with_ordinal(Uuid::max(), SPREAD + first + ordinal), "assistant_id": NOBODYS,
                "created_at": "2026-03-01T00:00:00Z", "updated_at": "2026-03-01T00:00:00Z",
            }))
            .unwrap();
            let (key, terms) = (list_row(&tenant, &list, SPREAD + first + ordinal), Some(row.terms()));
            let (was, is) = if is_there { (None, terms) } else { (terms, None) };
            let change = Move { key: key.clone(), was, is, made_at: Some(row.created_at) };
            (to_item(&key, &row).unwrap(), change)
        };
        let now = Timestamp::from_unix_millis(NOW);
        let follow = async |change: &Move| {
            let table = Table::new(stack.gateway.service.store.clone(), tenant);
            follow::<Conversation>(&table, std::slice::from_ref(change), now).await.unwrap();
        };
        let of_it = format!("&assistant_id={NOBODYS}");
        let total = async || ids(&stack, &routes::LIST_CONVERSATIONS, &of_it).await.1;
        let (there, appeared) = row(0, true);
        put_items(&stack, [there]).await;
        follow(&appeared).await;
        assert_eq!(total().await, 1);
        // A row is added, and before its section is updated, another row is removed.
        let (second, appeared) = row(1, true);
        put_items(&stack, [second]).await;
        let pause = faults.pause_at(|action, _| action == "UpdateItem");
        let mut coming = Box::pin(follow(&appeared));
        tokio::select! {
            () = pause.reached() => {}
            () = &mut coming => panic!("the section was not updated"),
        }
        faults.end();
        let (gone, disappeared) = row(0, false);
        let delete = stack.client.delete_item().table_name(TABLE_NAME);
        delete.key("pk", gone["pk"].clone()).key("sk", gone["sk"].clone()).send().await.unwrap();
        follow(&disappeared).await;
        pause.end();
        coming.await;
        assert_eq!(total().await, 1, "{first}");
    }
}
