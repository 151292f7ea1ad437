//! Tests of the log of events: whoever reads it misses no event and gets none twice, whatever happens to those who write.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use local::faults::Fault;
use local::{Settings, Stack};
use serde_json::json;
use shared::input::{Input as _, Issues, Location, Source};
use shared::records::event::{self, Event, EventId, EventKind, EventQuery};
use shared::request::error::Error;
use shared::table::Table;
use shared::table::meter::Meter;
use shared::values::json::JsonObject;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::fixture::{NOW, empty, tenant, with_faults};

/// Environments that write at the same time.
const WRITERS: u64 = 64;
/// Batches of each of them, and the events of a batch.
const BATCHES: (u64, u64) = (2, 6);
const DAY: i64 = 86_400;

fn now() -> Timestamp {
    Timestamp::from_unix_millis(NOW)
}

/// The log as another process sees it.
fn process(stack: &Stack) -> Table {
    Table::new(stack.gateway.service.store.in_another_process(), tenant())
}

/// The `number`-th change of a record.
fn change(record: u64, number: u64) -> Event {
    let id = EventId::of_change(EventKind::PAYMENT_UPDATED, Uuid::from_u64_pair(1, record), &number.to_string());
    let data = JsonObject::of(&json!({"id": record, "number": number})).unwrap();
    Event::new(EventKind::PAYMENT_UPDATED, id, (now(), number), data)
}

fn query(size: usize, after: Option<EventId>) -> EventQuery {
    let (size, after) = (size.to_string(), after.map(|after| after.to_string()));
    let values = [("size", Some(&*size)), ("after", after.as_deref())];
    let source = Source::text(Location::query(), values.into_iter().filter_map(|(name, value)| Some((name, value?))));
    EventQuery::read(&source, &mut Issues::new()).unwrap()
}

/// Reads on from `events` to the end of the log.
async fn read_on(table: &Table, events: &mut Vec<Event>) {
    loop {
        let query = query(fastrand::usize(1..=7), events.last().map(|event| event.id));
        let page = event::list(table, &query, now()).await.unwrap();
        events.extend(page.items);
        if page.next.is_none() {
            return;
        }
    }
}

/// Writes the batches of a record, as the stream does: a batch is repeated until it is written, and now and then again.
async fn write(stack: &Stack, record: u64) {
    let (batches, events) = BATCHES;
    for batch in 0..batches {
        let batch: Vec<Event> = (batch * events..(batch + 1) * events).map(|number| change(record, number)).collect();
        loop {
            // Some processes die while they write.
            let table = process(stack);
            let patience = Duration::from_millis(if fastrand::u8(..) < 40 { 20 } else { 20_000 });
            let written = tokio::time::timeout(patience, event::append(&table, &batch, None, now())).await;
            if matches!(written, Ok(Ok(true))) && fastrand::u8(..) < 200 {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_misses_no_event_and_gets_none_twice() {
    // A writer waits for each lost answer as long as an attempt may take.
    let (stack, faults) = with_faults(Settings { attempt: Duration::from_millis(500), ..empty() }).await;
    faults.plan(|action, _| match (action, fastrand::u8(..)) {
        ("TransactWriteItems", 0..8) => Fault::LoseAnswer,
        ("TransactWriteItems", 8..16) => Fault::Conflict,
        ("TransactWriteItems", 16..24) => Fault::BreakAnswer,
        _ => Fault::None,
    });
    let done = AtomicBool::new(false);
    let writers = async {
        join_all((0..WRITERS).map(|record| write(&stack, record))).await;
        done.store(true, Ordering::Relaxed);
    };
    let reader = async {
        let (table, mut events) = (process(&stack), Vec::new());
        while !done.load(Ordering::Relaxed) {
            read_on(&table, &mut events).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        events
    };
    let ((), mut events) = futures_util::join!(writers, reader);
    faults.end();
    let table = process(&stack);
    read_on(&table, &mut events).await;
    let ids: BTreeSet<EventId> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), events.len(), "an event came twice");
    assert_eq!(events.len() as u64, WRITERS * BATCHES.0 * BATCHES.1, "an event was missed");
    let mut again = Vec::new();
    read_on(&table, &mut again).await;
    assert_eq!(again, events, "the order is fixed");
    for record in 0..WRITERS {
        let own = events
            .iter()
            .filter(|event| event.data.text("id").is_none() && event.data == change(record, event.sequence).data);
        assert!(own.map(|event| event.sequence).is_sorted(), "the events of a record keep their order");
    }
}

#[tokio::test]
async fn a_process_that_has_appended_needs_no_read() {
    let (stack, _) = with_faults(empty()).await;
    let (process, mut calls) = (stack.gateway.service.store.in_another_process(), Vec::new());
    for number in 0..3 {
        let meter = Meter::default();
        let table = Table::new(process.metered(meter.clone()), tenant());
        event::append(&table, &[change(1, number)], None, now()).await.unwrap();
        calls.push(meter.cost().calls);
    }
    assert_eq!(calls, [2, 1, 1]);
}

#[tokio::test]
async fn an_event_can_be_read_for_thirty_days() {
    let (stack, _) = with_faults(empty()).await;
    let table = process(&stack);
    event::append(&table, &[change(1, 1)], None, now()).await.unwrap();
    event::append(&table, &[change(1, 2)], None, now().plus_seconds(DAY)).await.unwrap();
    let events = async |days: i64, after| event::list(&table, &query(10, after), now().plus_seconds(days * DAY)).await;
    let first = change(1, 1).id;
    assert_eq!(events(29, None).await.unwrap().items.len(), 2);
    assert_eq!(events(29, Some(first)).await.unwrap().items.len(), 1);
    assert_eq!(events(30, None).await.unwrap().items.len(), 1);
    assert!(matches!(events(30, Some(first)).await, Err(Error::Invalid(_))), "its place in the log is not known");
    assert!(event::logged(&table, first, now().plus_seconds(30 * DAY)).await.is_err());
}

#[tokio::test]
async fn a_page_of_events_ends_before_it_is_too_long() {
    let (stack, _) = with_faults(empty()).await;
    let table = process(&stack);
    let long =
        |number| Event { data: JsonObject::of(&json!({"text": "x".repeat(250_000)})).unwrap(), ..change(1, number) };
    let all: Vec<Event> = (0..40).map(long).collect();
    event::append(&table, &all, None, now()).await.unwrap();
    let page = event::list(&table, &query(100, None), now()).await.unwrap();
    assert!((10..20).contains(&page.items.len()), "{}", page.items.len());
    assert_eq!(page.next, page.items.last().map(|event| event.id));
    let mut events = Vec::new();
    read_on(&table, &mut events).await;
    assert_eq!(events.len(), all.len());
}
