//! Tests of the rules that hold for every page, with every operation whose query has a page.

use std::collections::BTreeSet;

use local::Stack;
use local::functions::describe;
use local::http::Answer;
use serde_json::{Value, json};
use shared::request::api_key::ApiKey;
use shared::request::route::Route;
use shared::routes;

use crate::exercises::EXERCISES;
use crate::support::fixture::{ACME, data, empty, stack, valid_call};
use crate::support::records::{ACME_ORG, DEMO_TIME, detail, issue};
use crate::support::sweep::cases;

/// The lists, and how many rows Acme's have in the demo set.
fn lists() -> Vec<(&'static Route, u64)> {
    let lists = EXERCISES.iter().filter_map(|exercise| Some((exercise.route, exercise.rows?[0])));
    // The page of a transcript is in its conversation.
    lists.chain([(&routes::READ_CONVERSATION, 1)]).collect()
}

async fn answer(stack: &Stack, route: &Route, query: &str) -> Answer {
    let mut call = valid_call(route, 'a', ACME);
    call.query += query;
    stack.answer(&call).await
}

/// The page, with only the ids of its items.
async fn page(stack: &Stack, route: &Route, query: &str) -> Value {
    let answer = answer(stack, route, query).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let data = data(&answer);
    let mut page = data.get("transcript").unwrap_or(&data).clone();
    page["items"] = page["items"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    page
}

#[test]
fn the_lists_cover_every_operation_with_a_page() {
    let paged = routes::ALL.iter().filter(|route| describe(route.name).query["properties"].get("page").is_some());
    let tried: BTreeSet<_> = lists().into_iter().map(|(route, _)| route.name).collect();
    assert_eq!(paged.map(|route| route.name).collect::<BTreeSet<_>>(), tried);
}

#[tokio::test]
async fn every_page_has_its_rows_in_both_orders() {
    let (stack, huge) = (stack().await, u64::try_from(i64::MAX).unwrap());
    for (route, total) in cases(lists()) {
        let (mut ids, mut next) = (Vec::new(), json!(1));
        while !next.is_null() {
            let page = page(&stack, route, &format!("&size=7&page={next}")).await;
            ids.extend(page["items"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()));
            next = page["next_page"].clone();
        }
        assert!(ids.is_sorted_by(|one, next| one < next), "{}: {ids:?}", route.name);
        assert_eq!(ids.len(), usize::try_from(total).unwrap(), "{}", route.name);
        for size in [1, 7, 50, 99, 100] {
            let pages = total.div_ceil(size);
            for number in [1, 2, pages.max(2) - 1, pages, pages + 1, huge] {
                let first = usize::try_from((number - 1).saturating_mul(size)).unwrap();
                let wanted = json!({
                    "items": ids.iter().skip(first).take(usize::try_from(size).unwrap()).collect::<Vec<_>>(),
                    "total": total,
                    "page": number,
                    "size": size,
                    "pages": pages,
                    "previous_page": (number > 1).then(|| number - 1),
                    "next_page": (number < pages).then(|| number + 1),
                });
                let is = page(&stack, route, &format!("&page={number}&size={size}")).await;
                assert_eq!(is, wanted, "{}", route.name);
                let newest_first = ids.iter().rev().skip(first).take(usize::try_from(size).unwrap());
                let mut wanted = wanted;
                wanted["items"] = newest_first.cloned().collect();
                let is = page(&stack, route, &format!("&page={number}&size={size}&order=desc")).await;
                assert_eq!(is, wanted, "{} newest first", route.name);
            }
        }
    }
}

#[tokio::test]
async fn page_and_size_have_defaults_and_many_forms() {
    let stack = stack().await;
    for (route, _) in lists() {
        for (query, number, size) in [
            ("", 1, 50),
            ("&page=2", 2, 50),
            ("&size=20", 1, 20),
            ("&page=%2012%20&size=1.0", 12, 1),
            ("&page=%2B2&size=1_0", 2, 10),
            ("&page=2.000&size=007", 2, 7),
            ("&size=100&page=1", 1, 100),
            ("&page=x&page=3", 3, 50),
            ("&limit=3&PAGE=9&per_page=x", 1, 50),
        ] {
            let is = page(&stack, route, query).await;
            assert_eq!((&is["page"], &is["size"]), (&json!(number), &json!(size)), "{}{query}", route.name);
        }
    }
}

#[tokio::test]
async fn page_and_size_have_bounds() {
    const WORD: (&str, &str) = ("enum", "Input should be 'asc' or 'desc'");
    const TEXT: (&str, &str) = ("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
    const SMALL: (&str, &str) = ("greater_than_equal", "Input should be greater than or equal to 1");
    const LARGE: (&str, &str) = ("less_than_equal", "Input should be less than or equal to 100");
    const HUGE: (&str, &str) =
        ("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size");
    #[expect(clippy::type_complexity, reason = "a table is easier to read than its type")]
    let cases: [(&str, &[(&str, (&str, &str))]); 16] = [
        ("&page=0", &[("page", SMALL)]),
        ("&page=-1", &[("page", SMALL)]),
        ("&page=x", &[("page", TEXT)]),
        ("&page=", &[("page", TEXT)]),
        ("&page=true", &[("page", TEXT)]),
        ("&page=1.5", &[("page", TEXT)]),
        ("&page=1e3", &[("page", TEXT)]),
        ("&page=null", &[("page", TEXT)]),
        ("&page=9223372036854775808", &[("page", HUGE)]),
        ("&size=0", &[("size", SMALL)]),
        ("&size=101", &[("size", LARGE)]),
        ("&size=9223372036854775807", &[("size", LARGE)]),
        ("&page=1&page=x", &[("page", TEXT)]),
        ("&size=101&page=0", &[("page", SMALL), ("size", LARGE)]),
        ("&order=newest", &[("order", WORD)]),
        ("&order=DESC", &[("order", WORD)]),
    ];
    let stack = stack().await;
    for ((route, _), (query, issues)) in lists().into_iter().flat_map(|list| cases.map(|case| (list, case))) {
        let issues = issues.iter().map(|(name, (kind, msg))| issue(&json!(["query", name]), kind, msg));
        let is = detail(&answer(&stack, route, query).await);
        assert_eq!(is, (422, issues.collect()), "{}{query}", route.name);
    }
}

#[tokio::test]
async fn an_empty_list_has_no_pages() {
    let stack = Stack::start(empty()).await.unwrap();
    let record = json!({"id": ACME_ORG, "org_id": ACME_ORG, "prefix": "in-", "name": "", "role": "admin", "created_at": DEMO_TIME});
    let (key, record) = (ApiKey::parse(ACME).unwrap(), serde_json::from_value(record).unwrap());
    stack.gateway.service.store.add_api_key(&key.hash(), &record).await.unwrap();
    // The other lists belong to a record, and this organisation has no records.
    // The key itself is listed.
    let without = |route: &Route| route.path.contains('{') || *route == routes::LIST_KEYS;
    for (route, _) in lists().into_iter().filter(|(route, _)| !without(route)) {
        for number in [1, 2] {
            let wanted = json!({
                "items": [],
                "total": 0,
                "page": number,
                "size": 50,
                "pages": 0,
                "previous_page": (number > 1).then(|| number - 1),
                "next_page": null,
            });
            assert_eq!(page(&stack, route, &format!("&page={number}")).await, wanted, "{}", route.name);
        }
    }
}
