//! `GET /api/v1/outbound_webhook/{webhook_id}/logs`: lists the deliveries to a webhook with their attempts.

use fastrand::Rng;
use local::Stack;
use serde_json::{Value, json};
use shared::records::delivery::{self, Delivery, DeliveryState, NewDelivery, SentBy};
use shared::records::event::{EventId, EventKind};
use shared::table::Table;
use shared::table::dates::Dates;
use shared::table::meter::Meter;
use shared::table::page::Order;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::deliveries::{Made, path, webhook, write};
use crate::support::demo_set;
use crate::support::fixture::{ACME, NOW, acme, call, failure, get, id, kind, stack, tenant};
use crate::support::records::TEST_TIME;
use crate::support::sweep::cases;

const PATH: &str = "/api/v1/outbound_webhook/01900000-0000-7000-8000-a00b00000001/logs";

/// Whether a delivery matches a query.
type Matches = Box<dyn Fn(&Delivery) -> bool>;

#[tokio::test]
async fn a_delivery_shows_its_state_and_the_result_of_each_attempt() {
    let stack = stack().await;
    let at = "2026-02-01T11:59:00.000Z";
    let mut wanted = demo_set::delivery();
    wanted["updated_at"] = TEST_TIME.into();
    let now = Timestamp::from_unix_millis(NOW);
    let attempts = [
        // The status of the attempt, the state after it, and the time of the next attempt.
        (500, "waiting", json!("2026-02-01T12:00:05.000Z")),
        (302, "waiting", json!("2026-02-01T12:05:00.000Z")),
        (204, "delivered", Value::Null),
        (410, "dead", Value::Null),
    ];
    for (number, (status, state, next)) in (1..).zip(attempts) {
        let attempted = demo_set::attempted(status, SentBy::Stream);
        demo_set::replace_delivery(&stack, |was| was.decide(attempted, now)).await;
        for (name, value) in [
            ("state", json!(state)),
            ("attempts", json!(number)),
            ("status", json!(status)),
            ("milliseconds", json!(12)),
            ("error", Value::Null),
            ("next_attempt_at", next),
        ] {
            wanted[name] = value;
        }
        let tried = json!({"at": at, "status": status, "milliseconds": 12, "error": null, "answer": "thanks"});
        wanted["log"].as_array_mut().unwrap().push(tried);
        let page = get(&stack, PATH).await;
        assert_eq!(page["items"], json!([wanted]));
    }
}

#[tokio::test]
async fn a_webhook_without_deliveries_has_an_empty_list() {
    let stack = stack().await;
    let path = format!("/api/v1/outbound_webhook/{}/logs", id('a', kind::WEBHOOK, 0));
    let page = get(&stack, &path).await;
    assert_eq!((&page["items"], &page["total"], &page["pages"]), (&json!([]), &json!(0), &json!(0)));
}

const MINUTE: i64 = 60_000;
/// The most deliveries that a request with filters looks at.
const LOOKED_AT: usize = 1_000;

/// `count` deliveries, one a minute, whose events are a little out of order.
fn some_deliveries(count: i64, random: &mut Rng) -> Vec<Made> {
    let states = [DeliveryState::Ready, DeliveryState::Waiting, DeliveryState::Delivered, DeliveryState::Dead];
    let mut made = |place: i64| {
        let late = random.i64(0..200_000);
        let event = if random.u32(..4) == 0 { EventKind::CONVERSATION_CLOSED } else { EventKind::WEBHOOK_TEST };
        let state = states[if random.u32(..50) == 0 { random.usize(..3) } else { 3 }];
        Made { at: NOW + place * MINUTE - late, late, event, state, took: vec![5] }
    };
    (0..count).map(&mut made).collect()
}

/// The ids on all pages from the first one on, along `next`, and the number of requests.
async fn along_next(stack: &Stack, query: &str) -> (Vec<Value>, usize) {
    let (mut found, mut after) = (Vec::new(), String::new());
    for requests in 1.. {
        let page = get(stack, &path(&format!("/logs?{query}{after}"))).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() as u64 <= page["size"].as_u64().unwrap(), "{page}");
        assert!(page["total"].as_u64().unwrap() >= items.len() as u64);
        found.extend(items.iter().map(|item| item["id"].clone()));
        let Some(next) = page["next"].as_str() else {
            assert!(page["next"].is_null() && page.as_object().unwrap().contains_key("next"), "{page}");
            return (found, requests);
        };
        after = format!("&after={next}");
    }
    unreachable!()
}

#[tokio::test]
async fn filters_page_through_a_list_without_loss_or_repeat() {
    let (stack, mut random) = (stack().await, Rng::with_seed(29));
    let made = some_deliveries(2_500, &mut random);
    // Deliveries that have expired: some, and a part of the list without any.
    let gone = |place: usize| place % 7 == 3 || (300..900).contains(&place);
    let all = write(&stack, &made, gone).await;
    let date = |minute: i64| Timestamp::from_unix_millis(NOW + minute * MINUTE);
    let queries: [(String, Matches); 8] = [
        ("state=dead".into(), Box::new(|one| one.state == DeliveryState::Dead)),
        ("state=waiting".into(), Box::new(|one| one.state == DeliveryState::Waiting)),
        ("event=conversation.closed".into(), Box::new(|one| one.event == EventKind::CONVERSATION_CLOSED)),
        (
            "state=ready&event=webhook.test".into(),
            Box::new(|one| one.state == DeliveryState::Ready && one.event == EventKind::WEBHOOK_TEST),
        ),
        (format!("date_from={}", date(2_300)), Box::new(move |one| one.created_at >= date(2_300))),
        (format!("date_to={}", date(1_200)), Box::new(move |one| one.created_at < date(1_200))),
        (
            format!("date_from={}&date_to={}&state=dead", date(250), date(1_500)),
            Box::new(move |one| (date(250)..date(1_500)).contains(&one.created_at) && one.state == DeliveryState::Dead),
        ),
        ("date_from=2026-05-01&date_to=2026-04-01".into(), Box::new(|_| false)),
    ];
    for (query, matches) in cases(queries) {
        let mut wanted: Vec<Value> = all.iter().filter(|one| matches(one)).map(|one| json!(one.id)).collect();
        for order in ["asc", "desc"] {
            // Small pages where few match.
            let size = if wanted.len() < 200 { 17 } else { 100 };
            let (found, requests) = along_next(&stack, &format!("{query}&order={order}&size={size}")).await;
            assert_eq!(found, wanted, "{query} {order}");
            let most = wanted.len() / size + all.len() / LOOKED_AT + 2;
            assert!(requests <= most, "{query} {order}: {requests} requests");
            wanted.reverse();
        }
    }
}

#[tokio::test]
async fn pages_of_a_short_list_have_exact_totals_with_filters() {
    let (stack, mut random) = (stack().await, Rng::with_seed(7));
    let all = write(&stack, &some_deliveries(300, &mut random), |_| false).await;
    let dead: Vec<Value> = all.iter().filter(|one| one.state == DeliveryState::Dead).map(|one| json!(one.id)).collect();
    for page in 1..=3 {
        let found = get(&stack, &path(&format!("/logs?state=dead&size=100&page={page}"))).await;
        let ids: Vec<Value> = found["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
        let end = dead.len().min(page * 100);
        assert_eq!(ids, dead[(page - 1) * 100..end]);
        assert_eq!((&found["total"], &found["pages"]), (&json!(dead.len()), &json!(3)));
        assert_eq!(found["next"].is_null(), page == 3);
    }
    let beyond = get(&stack, &path("/logs?state=dead&size=100&page=9")).await;
    assert_eq!((&beyond["items"], &beyond["total"]), (&json!([]), &json!(dead.len())));
}

#[tokio::test]
async fn a_page_without_filters_has_the_members_of_every_page() {
    let stack = stack().await;
    let page = get(&stack, PATH).await;
    let members: Vec<&String> = page.as_object().unwrap().keys().collect();
    assert_eq!(members, ["items", "next_page", "page", "pages", "previous_page", "size", "total"]);
}

/// The calls and the read units of the search for the rows within `dates`.
async fn search(stack: &Stack, dates: Dates) -> (u32, f64) {
    let meter = Meter::default();
    let table = Table::new(stack.store().metered(meter.clone()), tenant());
    table.stretch::<Delivery>(webhook(), (dates, Order::Ascending), None).await.unwrap();
    (meter.cost().depth, meter.cost().read_units)
}

#[tokio::test]
async fn dates_bound_what_a_request_reads() {
    let (stack, mut random) = (stack().await, Rng::with_seed(3));
    let all = write(&stack, &some_deliveries(9_000, &mut random), |_| false).await;
    let [from, to] = [8_000, 8_100].map(|place: usize| all[place].created_at);
    // The head, and seven steps for each date: 9,000 rows are halved until fewer than 256 are left.
    let (depth, units) = search(&stack, Dates { from: Some(from), to: Some(to) }).await;
    assert!(depth <= 15 && units < 100.0, "{depth} calls, {units} units");
    let (found, requests) = along_next(&stack, &format!("date_from={from}&date_to={to}&size=100")).await;
    assert!((90..110).contains(&found.len()) && requests <= 2, "{} in {requests} requests", found.len());
}

#[tokio::test]
async fn dates_find_a_delivery_that_was_made_days_after_its_event() {
    let (stack, mut random) = (stack().await, Rng::with_seed(11));
    write(&stack, &some_deliveries(900, &mut random), |_| false).await;
    let (now, event) = (NOW + 901 * MINUTE, EventId(Uuid::from_u128(29)));
    let late = NewDelivery::test(event, Timestamp::from_unix_millis(NOW - 3 * 24 * 60 * MINUTE));
    let date_to = Timestamp::from_unix_millis(NOW - 24 * 60 * MINUTE);
    let query = format!("date_to={date_to}");
    assert_eq!(along_next(&stack, &query).await.0, [] as [Value; 0]);
    for _ in 0..2 {
        let made =
            delivery::enqueue(&acme(&stack), webhook(), std::slice::from_ref(&late), Timestamp::from_unix_millis(now))
                .await;
        for order in ["asc", "desc"] {
            let (found, _) = along_next(&stack, &format!("{query}&order={order}")).await;
            assert_eq!(found, made.as_ref().unwrap().iter().map(|id| json!(id)).collect::<Vec<_>>());
        }
        // The note on the head hides no row.
        let last = get(&stack, &path("/logs?order=desc&size=1")).await;
        assert_eq!((&last["total"], &last["items"][0]["id"]), (&json!(901), &json!(made.unwrap()[0])));
    }
}

#[tokio::test]
async fn an_unknown_state_event_date_or_cursor_is_refused() {
    let stack = stack().await;
    for (query, field, kind) in [
        ("state=lost", "state", "enum"),
        ("event=conversation.eaten", "event", "enum"),
        ("date_from=yesterday", "date_from", "datetime_from_date_parsing"),
        ("date_to=1", "date_to", "datetime_from_date_parsing"),
        ("after=last", "after", "uuid_parsing"),
    ] {
        let answer = stack.answer(&call("GET", &path(&format!("/logs?{query}")), ACME)).await;
        assert_eq!(failure(&answer), (422, vec![format!("[\"query\",\"{field}\"] {kind}")]));
    }
    // A cursor is a place in the list, also if its delivery has expired or never was.
    let nobodys = format!("/logs?after={}", Uuid::max());
    assert_eq!(get(&stack, &path(&nobodys)).await["items"], json!([]));
}
