//! Tests of failed appends: what they leave on the head of a list, and what the next process pays for it.

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use local::Stack;
use local::database::request;
use local::faults::{Fault, Faults};
use serde_json::json;
use shared::records::intent::Intent;
use shared::records::tag::{EntityType, Link};
use shared::table::keys::list_head;
use shared::table::meter::{Cost, Meter};
use shared::table::page::{Page, PageQuery};
use shared::table::reservation::Reservation;
use shared::table::store::Store;
use shared::table::stored::Listed;
use shared::table::version::Version;
use shared::table::{Table, TableError};
use shared::values::id::{IntentId, LinkId, TagId};
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::fixture::{NOW, age_tokens, empty, everything, tenant, with_faults};

/// How many writes fail in each test.
const FAILURES: usize = 300;
/// A head of this size, in bytes, is one write unit.
const UNIT: usize = 1024;

/// A stack with an empty table, its faults, and a cold process.
async fn failing() -> (Stack, Faults, Store) {
    let (stack, faults) = with_faults(empty()).await;
    let warm = process(&stack);
    (stack, faults, warm)
}

/// A cold process, which has cached nothing.
fn process(stack: &Stack) -> Store {
    stack.gateway.service.store.in_another_process()
}

/// The table of a request to `process`, and the meter of its calls.
fn of_request(process: &Store) -> (Table, Meter) {
    let meter = Meter::default();
    (Table::new(process.metered(meter.clone()), tenant()), meter)
}

fn intent(id: IntentId) -> Intent {
    let now = Timestamp::from_unix_millis(NOW);
    serde_json::from_value(json!({"id": id, "name": "x", "created_at": now, "updated_at": now})).unwrap()
}

/// Appends an intent, by a plain put.
async fn append_to(table: &Table) -> Result<Intent, TableError> {
    let made = |_, id: IntentId| intent(id);
    table.insert_all((), &[Uuid::now_v7()], made).await.map(|mut made| made.remove(0))
}

/// Appends an intent, in a request to `process`.
async fn append(process: &Store) -> Result<Intent, TableError> {
    append_to(&of_request(process).0).await
}

/// Appends a link, by a transaction.
async fn append_link(process: &Store) -> Result<Link, TableError> {
    let now = Timestamp::from_unix_millis(NOW);
    let made = |_, id: LinkId| Link {
        id,
        entity_id: id.0.to_string().into(),
        entity_type: EntityType::Widget,
        tag_id: TagId(Uuid::nil()),
        created_at: now,
        updated_at: now,
        created_by_id: None,
        version: Version::default(),
    };
    of_request(process).0.insert_all((), &[Uuid::now_v7()], made).await.map(|mut made| made.remove(0))
}

/// The size of the head of a list.
fn head_size<R: Listed<Of = ()>>(stack: &Stack) -> usize {
    let head = list_head(&tenant(), &R::list(()));
    let key = json!({"pk": {"S": head.pk}, "sk": {"S": head.sk}});
    let get = request(json!({"Key": key})).unwrap();
    dynoxide::types::item_size(&stack.database.get_item(get).unwrap().item.unwrap())
}

/// The first page of a list, read by a cold process, and its cost.
async fn first_page<R: Listed<Of = ()>>(stack: &Stack) -> (Page<R>, Cost) {
    let (table, meter) = of_request(&process(stack));
    let page = table.page::<R>((), &PageQuery::oldest_first(1, 50)).await.unwrap();
    (page, meter.cost())
}

/// How many intents there are.
async fn total(stack: &Stack) -> u64 {
    first_page::<Intent>(stack).await.0.total
}

/// The cost of an append by a cold process.
async fn append_cost(stack: &Stack) -> Cost {
    let (table, meter) = of_request(&process(stack));
    append_to(&table).await.unwrap();
    meter.cost()
}

/// One unit is for the head, and one for the row.
async fn an_append_takes_two_units(stack: &Stack) {
    let cost = append_cost(stack).await;
    assert!((cost.write_units - 2.0).abs() < f64::EPSILON, "{cost:?}");
}

fn unavailable<T: std::fmt::Debug>(appended: &Result<T, TableError>) {
    assert!(matches!(appended, Err(TableError::Unavailable(_))), "{appended:?}");
}

#[tokio::test]
async fn throttled_puts_leave_no_trace() {
    let (stack, faults, warm) = failing().await;
    for _ in 0..3 {
        append(&warm).await.unwrap();
    }
    let (before, page, cost) =
        (everything(&stack).await, first_page::<Intent>(&stack).await.1, append_cost(&stack).await);
    faults.plan(|action, _| if action == "PutItem" { Fault::Throttle } else { Fault::None });
    for _ in 0..FAILURES {
        unavailable(&append(&warm).await);
    }
    faults.end();
    assert_eq!(everything(&stack).await.len(), before.len() + 1, "only the measured append left an item");
    assert!(head_size::<Intent>(&stack) < 200, "{}", head_size::<Intent>(&stack));
    assert_eq!(first_page::<Intent>(&stack).await.1, page);
    assert_eq!(append_cost(&stack).await, cost);
    assert_eq!(total(&stack).await, 5);
}

#[tokio::test]
async fn throttled_transactions_leave_no_trace() {
    let (stack, faults, warm) = failing().await;
    append_link(&warm).await.unwrap();
    let before = everything(&stack).await;
    faults.plan(|action, _| if action == "TransactWriteItems" { Fault::Throttle } else { Fault::None });
    for _ in 0..FAILURES {
        unavailable(&append_link(&warm).await);
    }
    faults.end();
    assert_eq!(everything(&stack).await, before);
    assert!(head_size::<Link>(&stack) < 200);
}

/// The process returns the ordinal, and does not learn that it has. The next row gets this ordinal.
#[tokio::test]
async fn an_ordinal_returned_without_an_answer_is_no_hole() {
    let (stack, faults, warm) = failing().await;
    append(&warm).await.unwrap();
    let mut returns = false;
    faults.plan(move |action, _| match action {
        "PutItem" => {
            returns = true;
            Fault::Throttle
        }
        "UpdateItem" if std::mem::take(&mut returns) => Fault::BreakAnswer,
        _ => Fault::None,
    });
    unavailable(&append(&warm).await);
    faults.end();
    append(&warm).await.unwrap();
    let (page, _) = first_page::<Intent>(&stack).await;
    assert_eq!((page.total, page.items.len()), (2, 2));
}

#[tokio::test]
async fn concurrent_throttled_puts_leave_holes() {
    const TOGETHER: usize = 20;
    let (stack, faults, warm) = failing().await;
    append(&warm).await.unwrap();
    faults.plan(|action, _| if action == "PutItem" { Fault::Throttle } else { Fault::None });
    for _ in 0..FAILURES / TOGETHER {
        join_all((0..TOGETHER).map(|_| append(&warm))).await.iter().for_each(unavailable);
        assert!(head_size::<Intent>(&stack) < UNIT);
    }
    faults.end();
    append(&warm).await.unwrap();
    let (page, cost) = first_page::<Intent>(&stack).await;
    assert_eq!((page.total, page.items.len()), (2, 2));
    // The units are for the head with the counts of holes, the rows, one token, and the holes of its block.
    assert!(cost.read_units <= 4.0, "{cost:?}");
    an_append_takes_two_units(&stack).await;
}

#[tokio::test]
async fn a_put_with_a_lost_answer_succeeds() {
    let (stack, faults, warm) = failing().await;
    faults.plan(|action, _| if action == "PutItem" { Fault::BreakAnswer } else { Fault::None });
    for _ in 0..FAILURES {
        append(&warm).await.unwrap();
    }
    faults.end();
    assert!(head_size::<Intent>(&stack) < 200);
    let (page, cost) = first_page::<Intent>(&stack).await;
    assert_eq!(page.total, FAILURES as u64);
    // The units are for the head, fifty rows, and one token.
    assert!(cost.read_units <= 6.0, "{cost:?}");
    an_append_takes_two_units(&stack).await;
}

/// The writes of rows take effect, but their answers are lost, and so is the check that follows.
#[tokio::test]
async fn the_next_process_finds_rows_of_unknown_outcome() {
    let (stack, faults, warm) = failing().await;
    faults.plan(|action, _| match action {
        "PutItem" => Fault::BreakAnswer,
        "BatchGetItem" => Fault::BreakRequest,
        _ => Fault::None,
    });
    for _ in 0..FAILURES {
        unavailable(&append(&warm).await);
        assert!(head_size::<Intent>(&stack) < UNIT, "{}", head_size::<Intent>(&stack));
    }
    faults.end();
    assert_eq!(total(&stack).await, FAILURES as u64);
    let cost = append_cost(&stack).await;
    assert!(cost.write_units <= 4.0 && cost.read_units <= 70.0, "{cost:?}");
}

#[tokio::test]
async fn missing_rows_become_holes_after_ten_minutes() {
    let (stack, faults, warm) = failing().await;
    append(&warm).await.unwrap();
    faults.plan(|action, _| if action == "PutItem" { Fault::BreakRequest } else { Fault::None });
    for _ in 0..FAILURES {
        unavailable(&append(&warm).await);
        assert!(head_size::<Intent>(&stack) < UNIT, "{}", head_size::<Intent>(&stack));
    }
    faults.end();
    let mut rows = 1;
    for minutes in [0, 9, 10] {
        age_tokens(&stack, minutes).await;
        assert_eq!(total(&stack).await, rows, "after {minutes} minutes");
        let cost = append_cost(&stack).await;
        rows += 1;
        assert!(cost.read_units <= 70.0 && cost.write_units <= 12.0, "after {minutes} minutes: {cost:?}");
        assert_eq!(total(&stack).await, rows, "after {minutes} minutes");
    }
    // Each append cleans up a few tokens.
    for _ in 0..20 {
        append(&process(&stack)).await.unwrap();
        rows += 1;
    }
    let (page, cost) = first_page::<Intent>(&stack).await;
    assert_eq!((page.total, page.items.len() as u64), (rows, rows));
    assert!(cost.read_units <= 40.0, "{cost:?}");
    let holes = everything(&stack).await.into_iter().find_map(|item| item.get("holes").cloned());
    let Some(AttributeValue::Ns(holes)) = holes else { panic!("{holes:?}") };
    assert_eq!(holes.len(), FAILURES);
}

/// Each process leaves one token and never appends again. A head has no room for so many tokens.
#[tokio::test]
async fn tokens_of_many_processes_leave_the_head() {
    let (stack, ..) = failing().await;
    for number in 1..=FAILURES as u64 {
        append(&process(&stack)).await.unwrap();
        assert!(head_size::<Intent>(&stack) < UNIT);
        if number % 50 == 0 {
            assert_eq!(total(&stack).await, number);
        }
    }
}

#[tokio::test]
async fn a_row_written_after_its_token_was_merged_counts() {
    let (stack, faults, warm) = failing().await;
    let late = process(&stack);
    append(&warm).await.unwrap();
    // One row is being written, and the rows behind it are never written.
    let pause = faults.pause_at(|action, _| action == "PutItem");
    let late = tokio::spawn(async move { append(&late).await });
    pause.reached().await;
    for _ in 0..60 {
        drop(of_request(&warm).0.reserve::<Intent>((), 1).await.unwrap());
    }
    append(&warm).await.unwrap();
    assert!(head_size::<Intent>(&stack) < UNIT);
    assert_eq!(total(&stack).await, 2);
    pause.end();
    late.await.unwrap().unwrap();
    assert_eq!(total(&stack).await, 3);
    age_tokens(&stack, 10).await;
    for rows in 4..14 {
        append(&process(&stack)).await.unwrap();
        assert_eq!(total(&stack).await, rows);
    }
}

#[tokio::test]
async fn concurrent_processes_reserve_different_ordinals() {
    let (stack, ..) = failing().await;
    let reserved =
        join_all((0..3).map(|_| async { of_request(&process(&stack)).0.reserve::<Intent>((), 1).await.unwrap() }));
    let mut reserved: Vec<u64> = reserved.await.iter().map(Reservation::first).collect();
    reserved.sort_unstable();
    assert_eq!(reserved, [0, 1, 2]);
}
