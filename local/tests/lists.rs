//! Tests that compare lists with a plain `Vec`: appends and removals, alone and concurrent, with conflicts and crashes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use local::database::TABLE_NAME;
use local::faults::Fault;
use local::{Settings, Stack};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use shared::records::tag::{EntityType, Link};
use shared::table::expiry::expire;
use shared::table::item::{Item, to_item};
use shared::table::keys::{Key, list_block, list_head, list_row, list_section};
use shared::table::meter::{Cost, Meter};
use shared::table::page::{Order, Page, PageQuery};
use shared::table::rows::INSERT_LIMIT;
use shared::table::stored::Listed as _;
use shared::table::version::Version;
use shared::table::{Table, TableError};
use shared::values::id::{LinkId, OrgId, SPREAD, TagId, ordinal, uuid_v7, with_ordinal};
use shared::values::tenant::Tenant;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::fixture::{NOW, die_in_every_list, empty, everything, put_items, with_faults};
use crate::support::sweep::cases;

fn now() -> Timestamp {
    Timestamp::from_unix_millis(NOW)
}

fn tenant() -> Tenant {
    #[expect(clippy::disallowed_methods, reason = "the tests are their own operator")]
    let tenant = Tenant::operator(OrgId(Uuid::from_u128(7)));
    tenant
}

/// The table of a warm function, with its own cached heads and its own meter.
fn function(stack: &Stack) -> (Table, Meter) {
    let meter = Meter::default();
    let faulty = stack.gateway.service.store.metered(meter.clone());
    (Table::new(faulty, tenant()), meter)
}

/// The table of a cold function, which has cached nothing.
fn cold_function(stack: &Stack) -> Table {
    Table::new(stack.store(), tenant())
}

/// The ordinal that the next row gets.
async fn next_ordinal(stack: &Stack) -> u64 {
    let head = stack.client.get_item().table_name(TABLE_NAME);
    let head = head.set_key(Some(list_head(&tenant(), &Link::list(())).attributes())).send().await.unwrap();
    head.item.map_or(0, |head| head["next_ordinal"].as_n().unwrap().parse().unwrap())
}

fn link(number: u64) -> impl Fn(u64) -> Link + Sync {
    move |place| {
        let random = (u128::from(number) << 64).to_be_bytes();
        let mut tail = [0; 10];
        tail.copy_from_slice(&random[..10]);
        Link {
            id: LinkId(with_ordinal(uuid_v7(now(), tail), place)),
            // There is one link for each tag and entity.
            entity_id: format!("{number}-{place}").into(),
            entity_type: EntityType::Widget,
            tag_id: TagId(Uuid::nil()),
            created_at: now(),
            updated_at: now(),
            created_by_id: None,
            version: Version::default(),
        }
    }
}

fn query(page: i64, size: i64) -> PageQuery {
    PageQuery::oldest_first(page, size)
}

/// The same page in both orders.
fn in_both_orders(page: i64, size: i64) -> [PageQuery; 2] {
    [Order::Ascending, Order::Descending].map(|order| PageQuery { order, ..query(page, size) })
}

/// Appends `count` rows. `make` makes each one from its ordinal.
async fn append(table: &Table, count: u64, make: impl Fn(u64) -> Link + Sync) -> Vec<Link> {
    let ids = vec![Uuid::nil(); usize::try_from(count).unwrap()];
    let make = |_, id: LinkId| make(ordinal(id.0));
    table.insert_all((), &ids, make).await.unwrap()
}

/// Compares pages of several sizes with the plain list.
async fn same(table: &Table, plain: &[Link]) {
    for size in [1, 3, 100] {
        let pages = i64::try_from(plain.len()).unwrap() / size + 2;
        for page in (1..=pages).step_by(if size == 1 { 7 } else { 1 }) {
            for query in in_both_orders(page, size) {
                let found: Page<Link> = table.page((), &query).await.unwrap();
                let start = usize::try_from((page - 1) * size).unwrap();
                let all = query.order.of(plain.to_vec());
                let wanted: Vec<_> = all.into_iter().skip(start).take(usize::try_from(size).unwrap()).collect();
                assert_eq!(found.items, wanted, "page {page} of {size}, {:?}", query.order);
                assert_eq!(found.total, plain.len() as u64);
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(u64),
    /// Rows at these places, as fractions of the list.
    Remove(Vec<f64>),
    /// The same, by their TTL.
    Expire(Vec<f64>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let append = (1..=INSERT_LIMIT as u64).prop_map(Step::Append);
    let places = || prop::collection::vec(0.0..1.0, 1..=25);
    let (remove, expire) = (places().prop_map(Step::Remove), places().prop_map(Step::Expire));
    prop::collection::vec(prop_oneof![append, remove, expire], 1..40)
}

/// Plays `steps` on the table and on a plain list.
async fn play(stack: &Stack, table: &Table, steps: &[Step]) -> Vec<Link> {
    let mut plain: Vec<Link> = Vec::new();
    for (number, step) in (0..).zip(steps) {
        match step {
            Step::Append(count) => plain.extend(append(table, *count, link(number)).await),
            Step::Remove(places) => remove_some(table, &mut plain, places).await,
            Step::Expire(places) => {
                let expired = expire_some(stack, &mut plain, places).await;
                // The stream delivers some of them again, perhaps at the same time.
                let again: BTreeSet<u64> = expired.iter().copied().step_by(2).collect();
                let list = Link::list(());
                let (first, second) = tokio::join!(expire(table, &list, expired), expire(table, &list, again));
                first.and(second).unwrap();
            }
        }
    }
    plain
}

/// Takes the rows at these places, which are fractions of the list, from a plain list.
fn take_some(plain: &mut Vec<Link>, places: &[f64]) -> Vec<LinkId> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a fraction of a length"
    )]
    let mut places: Vec<usize> = places.iter().map(|place| (place * plain.len() as f64) as usize).collect();
    places.sort_unstable();
    places.dedup();
    let ids: Vec<LinkId> = places.iter().filter_map(|place| Some(plain.get(*place)?.id)).collect();
    plain.retain(|row| !ids.contains(&row.id));
    ids
}

/// Removes rows from the table and from a plain list.
async fn remove_some(table: &Table, plain: &mut Vec<Link>, places: &[f64]) {
    for id in take_some(plain, places) {
        table.remove::<Link>(id).await.unwrap();
    }
}

/// Removes rows from the table and from a plain list, like their TTL: the list does not learn of it. Returns the ordinals.
async fn expire_some(stack: &Stack, plain: &mut Vec<Link>, places: &[f64]) -> BTreeSet<u64> {
    let expired: BTreeSet<u64> = take_some(plain, places).into_iter().map(|id| ordinal(id.0)).collect();
    for ordinal in &expired {
        delete(stack, &list_row(&tenant(), &Link::list(()), *ordinal)).await;
    }
    expired
}

/// Deletes an item and nothing else.
async fn delete(stack: &Stack, key: &Key) {
    let delete = stack.client.delete_item().table_name(TABLE_NAME).set_key(Some(key.attributes()));
    delete.send().await.unwrap();
}

/// The removed rows that a list has before the rows of the test.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// None.
    New,
    /// So many that the next rows are soon spread.
    NearlyLong,
    /// So many spread rows that the next ones reach the end of the last partition and continue in the first one.
    Spread,
}

const FORMS: [Form; 3] = [Form::New, Form::NearlyLong, Form::Spread];

impl Form {
    async fn begin(self, stack: &Stack) {
        match self {
            Self::New => {}
            Self::NearlyLong => long_list(stack, 1000, |_| true, &[]).await,
            Self::Spread => {
                let (from, next) = (1050, SPREAD + 900);
                let head = [("next_ordinal", next), ("spread_from", from)];
                list_of(stack, &head, &[0..from, SPREAD..next], |_| true, &[]).await;
            }
        }
    }
}

#[tokio::test]
async fn a_list_equals_a_vec() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    for form in cases(FORMS.into_iter().cycle().take(2 * FORMS.len())) {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        println!("{form:?} {steps:?}");
        let stack = Stack::start(empty()).await.unwrap();
        form.begin(&stack).await;
        let (table, _) = function(&stack);
        let plain = play(&stack, &table, &steps).await;
        same(&table, &plain).await;
        same(&cold_function(&stack), &plain).await;
    }
}

#[tokio::test]
async fn a_list_equals_a_vec_under_conflicts_and_lost_answers() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    for form in FORMS {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        println!("{form:?} {steps:?}");
        let attempt = Duration::from_millis(400);
        let (stack, faults) = with_faults(Settings { attempt, ..empty() }).await;
        form.begin(&stack).await;
        let (table, _) = function(&stack);
        faults.plan(|action, number| match (action, number % 7) {
            ("TransactWriteItems", 0 | 3) => Fault::Conflict,
            ("TransactWriteItems", 5) if number % 5 == 0 => Fault::LoseAnswer,
            (_, 1) => Fault::Throttle,
            _ => Fault::None,
        });
        let plain = play(&stack, &table, &steps).await;
        faults.end();
        same(&table, &plain).await;
    }
}

#[tokio::test]
async fn a_list_equals_a_vec_after_a_crash_between_any_writes() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    for form in FORMS {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        println!("{form:?} {steps:?}");
        let (stack, faults) = with_faults(empty()).await;
        form.begin(&stack).await;
        let mut plain: Vec<Link> = Vec::new();
        for (number, step) in (0..).zip(&steps) {
            let (table, _) = function(&stack);
            match step {
                // The crash comes before the ordinals, after them, after the rows, or never.
                Step::Append(count) => {
                    let first = next_ordinal(&stack).await;
                    // One more write marks the list as spread.
                    let writes = if (1024..SPREAD).contains(&(first + count)) { 3 } else { 2 };
                    faults.die_after_writes(number % 4);
                    let mut rows = Vec::new();
                    let appends = Box::pin(append(&table, *count, link(number as u64)));
                    faults.kill(async { rows = appends.await }).await;
                    faults.end();
                    let wrote = number % 4 >= 2;
                    assert_eq!(rows.is_empty(), number % 4 <= writes, "a crash at the last write leaves no answer");
                    if wrote && rows.is_empty() {
                        rows = (first..first + count).map(link(number as u64)).collect();
                    }
                    plain.extend(rows);
                }
                Step::Remove(places) => remove_some(&table, &mut plain, places).await,
                // After a crash, the stream delivers the change again.
                Step::Expire(places) => {
                    let expired = expire_some(&stack, &mut plain, places).await;
                    faults.die_after_writes(number % 2);
                    faults.kill(async { expire(&table, &Link::list(()), expired.clone()).await.unwrap() }).await;
                    faults.end();
                    expire(&cold_function(&stack), &Link::list(()), expired).await.unwrap();
                }
            }
            if number % 5 == 0 {
                same(&cold_function(&stack), &plain).await;
            }
        }
        same(&cold_function(&stack), &plain).await;
        // The ordinals of crashed processes become holes when others append ten minutes later.
        die_in_every_list(&stack, 10).await;
        let table = cold_function(&stack);
        for number in 0..2 {
            plain.extend(append(&table, 1, link(1000 + number)).await);
            same(&cold_function(&stack), &plain).await;
        }
        let head = stack.client.get_item().table_name(TABLE_NAME);
        let head = head.set_key(Some(list_head(&tenant(), &Link::list(())).attributes())).send().await.unwrap();
        assert!(!format!("{head:?}").contains("goner"), "{head:?}");
    }
}

#[tokio::test]
async fn a_refused_create_returns_its_ordinal() {
    let stack = Stack::start(empty()).await.unwrap();
    let (table, _) = function(&stack);
    let mut plain = append(&table, 3, link(1)).await;
    // The last ordinals return to the list. Earlier ones become holes.
    let (first, second) = (table.reserve::<Link>((), 2).await.unwrap(), table.reserve::<Link>((), 1).await.unwrap());
    assert_eq!((first.ordinals(), second.ordinals()), (3..5, 5..6));
    table.give_back([first]).await;
    same(&cold_function(&stack), &plain).await;
    table.give_back([second]).await;
    same(&cold_function(&stack), &plain).await;
    plain.extend(append(&table, 2, link(2)).await);
    assert_eq!(ordinal(plain[3].id.0), 5);
    same(&cold_function(&stack), &plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_and_totals_agree_while_many_append() {
    let stack = Arc::new(Stack::start(empty()).await.unwrap());
    let done = Arc::new(AtomicU64::new(0));
    let writers = (0..6).map(|writer| {
        let (stack, done) = (Arc::clone(&stack), Arc::clone(&done));
        tokio::spawn(async move {
            let table = cold_function(&stack);
            for number in 0..80 {
                append(&table, 1, link(writer * 100 + number)).await;
                done.fetch_add(1, Ordering::SeqCst);
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let table = cold_function(&stack);
    let mut looked = 0;
    while writers.iter().any(|writer| !writer.is_finished()) {
        let before = done.load(Ordering::SeqCst);
        for size in [5, 100] {
            let last = i64::try_from(before).unwrap() / size + 1;
            for query in [1, last].into_iter().flat_map(|page| in_both_orders(page, size)) {
                let found: Page<Link> = table.page((), &query).await.unwrap();
                let page = i64::try_from(query.page()).unwrap();
                assert!(found.total >= before, "answered rows are missing: {} of {before}", found.total);
                let from = u64::try_from((page - 1) * size).unwrap();
                let wanted = found.total.saturating_sub(from).min(u64::try_from(size).unwrap());
                assert_eq!(found.items.len() as u64, wanted, "page {page} of {size}, {} in all", found.total);
                assert!(query.order.of(found.items).is_sorted_by_key(|row| ordinal(row.id.0)));
                looked += 1;
            }
        }
    }
    assert!(looked > 8, "{looked}");
    for writer in writers {
        writer.await.unwrap();
    }
    let found: Page<Link> = table.page((), &query(1, 100)).await.unwrap();
    assert_eq!(found.total, 480);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_appends_and_removals_keep_each_row_once() {
    let stack = Arc::new(Stack::start(empty()).await.unwrap());
    let numbers = Arc::new(AtomicU64::new(0));
    let workers = (0..8).map(|worker| {
        let (stack, numbers) = (Arc::clone(&stack), Arc::clone(&numbers));
        tokio::spawn(async move {
            let table = cold_function(&stack);
            let mut mine: Vec<Link> = Vec::new();
            for round in 0..15 {
                let rows = append(&table, 1 + round % 4, link(numbers.fetch_add(1, Ordering::SeqCst))).await;
                mine.extend(rows);
                if round % 3 == worker % 3 {
                    let gone = mine.remove(mine.len() / 2);
                    table.remove::<Link>(gone.id).await.unwrap();
                }
            }
            mine
        })
    });
    let mut all = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        all.extend(worker.await.unwrap());
    }
    all.sort_by_key(|row| ordinal(row.id.0));
    same(&cold_function(&stack), &all).await;
}

#[tokio::test]
async fn a_removal_of_a_missing_row_changes_nothing() {
    let stack = Stack::start(empty()).await.unwrap();
    let (table, _) = function(&stack);
    let rows = append(&table, 5, link(1)).await;
    let foreign = LinkId(with_ordinal(Uuid::from_u128(u128::MAX), 2));
    let absent = LinkId(with_ordinal(rows[0].id.0, 99));
    for stranger in [foreign, absent] {
        let result = table.remove::<Link>(stranger).await;
        assert!(matches!(result, Err(TableError::Missing)), "{result:?}");
        assert!(matches!(table.get::<Link>(stranger).await, Err(TableError::Missing)));
    }
    same(&table, &rows).await;
    assert_eq!(table.get::<Link>(rows[2].id).await.unwrap(), rows[2]);
    table.remove::<Link>(rows[2].id).await.unwrap();
    assert!(matches!(table.remove::<Link>(rows[2].id).await, Err(TableError::Missing)));
}

#[tokio::test]
async fn a_long_list_spreads_its_rows_over_partitions() {
    let stack = Stack::start(empty()).await.unwrap();
    Form::NearlyLong.begin(&stack).await;
    let (table, meter) = function(&stack);
    let mut rows = Vec::new();
    while rows.len() < 400 {
        rows.extend(append(&table, 30, link(rows.len() as u64)).await);
    }
    let (before, after): (Vec<u64>, Vec<u64>) =
        rows.iter().map(|row| ordinal(row.id.0)).partition(|ordinal| *ordinal < SPREAD);
    assert_eq!((before, after.first(), after.len()), ((1000..1030).collect(), Some(&SPREAD), rows.len() - 30));
    let keys: BTreeSet<String> = rows.iter().map(|row| table.key::<Link>(row.id).pk).collect();
    assert_eq!(keys.len(), 1 + after.len().div_ceil(128), "{keys:?}");
    for (page, calls) in [(2, 2), (3, 2), (4, 3)] {
        let before = meter.cost();
        let found: Page<Link> = table.page((), &query(page, 50)).await.unwrap();
        assert_eq!(found.items, rows[usize::try_from(page - 1).unwrap() * 50..][..50]);
        let cost = meter.cost();
        assert_eq!((cost.calls - before.calls, cost.depth - before.depth), (calls, 2), "page {page}");
    }
}

#[tokio::test]
async fn empty_sections_at_the_start_of_a_list_are_cut_off() {
    // Section 0 has 1,050 rows, before the list is spread. Each later section has 32,768.
    let (from, section, first) = (1050, 32 * 1024, SPREAD / (32 * 1024));
    let end = SPREAD + 2 * section + 1024;
    let left = [7, SPREAD + 5, SPREAD + section + 9, end - 1];
    let stack = Stack::start(empty()).await.unwrap();
    let head = [("next_ordinal", end + 40), ("spread_from", from)];
    let rows: Vec<u64> = left.into_iter().chain(end..end + 40).collect();
    let present: Vec<Range<u64>> = rows.iter().map(|row| *row..row + 1).collect();
    list_of(&stack, &head, &[0..from, SPREAD..end + 40], |ordinal| !rows.contains(&ordinal), &present).await;
    let mut plain: Vec<Link> = rows.iter().map(|row| link(*row)(*row)).collect();
    let (list, table) = (&Link::list(()), cold_function(&stack));
    same(&table, &plain).await;
    let keys = async || {
        let items = everything(&stack).await.into_iter();
        let text = |item: &BTreeMap<String, AttributeValue>, name: &str| item[name].as_s().unwrap().clone();
        let keys = items.map(|item| Key { pk: text(&item, "pk"), sk: text(&item, "sk") });
        keys.filter(|key| !key.pk.contains("#ROWS")).collect::<HashSet<Key>>()
    };
    let of_section = |section: u64| {
        let blocks = (section * 32..section * 32 + 32).map(|block| list_block(&tenant(), list, block));
        blocks.chain([list_section(&tenant(), list, section)]).collect::<HashSet<Key>>()
    };
    let all = keys().await;
    // The third section is emptied before the second one, and cut off together with it.
    for (ordinal, cut, gone) in [
        (left[0], 1050, vec![]),
        (left[2], 1050, vec![0]),
        (left[1], 1050 + 2 * section, vec![0]),
        (left[3], 1050 + 2 * section, vec![0, first, first + 1]),
    ] {
        delete(&stack, &list_row(&tenant(), list, ordinal)).await;
        plain.retain(|row| shared::values::id::ordinal(row.id.0) != ordinal);
        for _ in 0..2 {
            expire(&table, list, BTreeSet::from([ordinal])).await.unwrap();
            same(&cold_function(&stack), &plain).await;
        }
        let head = stack.client.get_item().table_name(TABLE_NAME);
        let head = head.set_key(Some(list_head(&tenant(), list).attributes())).send().await.unwrap().item.unwrap();
        assert_eq!(head["cut"].as_n().unwrap(), &cut.to_string(), "{ordinal}");
        let gone: HashSet<Key> = gone.into_iter().flat_map(of_section).collect();
        assert_eq!(keys().await, all.difference(&gone).cloned().collect(), "{ordinal}");
    }
    plain.extend(append(&table, 30, link(1)).await);
    same(&cold_function(&stack), &plain).await;
    // After the list is gone, an expiry writes nothing.
    for key in keys().await {
        delete(&stack, &key).await;
    }
    expire(&table, list, BTreeSet::from([end])).await.unwrap();
    assert_eq!(keys().await, HashSet::new());
}

/// Stores a list of `rows` rows without the `removed` ones, item by item, as appends and removals leave it. Only the
/// rows in `present` are stored: the test reads no others.
async fn long_list(stack: &Stack, rows: u64, removed: impl Fn(u64) -> bool, present: &[Range<u64>]) {
    list_of(stack, &[("next_ordinal", rows)], std::slice::from_ref(&(0..rows)), removed, present).await;
}

/// Stores such a list with this head and the ordinals `given`.
async fn list_of(
    stack: &Stack,
    head_is: &[(&str, u64)],
    given: &[Range<u64>],
    removed: impl Fn(u64) -> bool,
    present: &[Range<u64>],
) {
    const BLOCK: u64 = 1024;
    let (tenant, list) = (tenant(), &Link::list(()));
    let number = |value: u64| AttributeValue::N(value.to_string());
    let mut items: Vec<Item> = Vec::new();
    let mut head = list_head(&tenant, list).attributes();
    head.extend(head_is.iter().map(|(name, value)| ((*name).to_owned(), number(*value))));
    items.push(head);
    let mut holes: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for ordinal in given.iter().cloned().flatten().filter(|ordinal| removed(*ordinal)) {
        holes.entry(ordinal / BLOCK).or_default().push((ordinal % BLOCK).to_string());
    }
    let mut sections: BTreeMap<u64, Item> = BTreeMap::new();
    for (block, holes) in holes {
        let section = sections.entry(block / 32);
        let counts = section.or_insert_with(|| list_section(&tenant, list, block / 32).attributes());
        counts.insert(format!("b{}", block % 32), number(holes.len() as u64));
        let mut set = list_block(&tenant, list, block).attributes();
        set.insert("holes".into(), AttributeValue::Ns(holes));
        items.push(set);
    }
    items.extend(sections.into_values());
    let near: BTreeSet<u64> = present.iter().cloned().flatten().collect();
    let is_given = |ordinal: &u64| given.iter().any(|given| given.contains(ordinal));
    for place in near.into_iter().filter(|place| is_given(place) && !removed(*place)) {
        let row = link(place)(place);
        items.push(to_item(&list_row(&tenant, list, place), &row).unwrap());
    }
    put_items(stack, items).await;
}

/// Reads the page `query` that begins with the row `first`. Returns its cost without the units of the rows themselves.
async fn cost_of(stack: &Stack, query: &PageQuery, first: u64) -> Cost {
    let (table, meter) = function(stack);
    let found: Page<Link> = table.page((), query).await.unwrap();
    assert_eq!(ordinal(found.items[0].id.0), first, "the page begins with another row");
    let mut cost = meter.cost();
    let bytes: usize =
        found.items.iter().map(|row| 200 + serde_json::to_string(&row.entity_id).unwrap().len() - 2).sum();
    cost.read_units -= f64::from(u32::try_from(bytes.div_ceil(4096)).unwrap());
    cost
}

#[tokio::test]
async fn a_page_of_a_million_rows_costs_at_most_three_round_trips() {
    const ROWS: u64 = 1_000_000;
    let scattered = |place: u64| place.wrapping_mul(2_654_435_761) % 10 == 3;
    let clumped = |place: u64| (300_000..400_000).contains(&place);
    let patterns: [&(dyn Fn(u64) -> bool + Sync); 3] = [&|_| false, &scattered, &clumped];
    // The most round trips and read units of a page.
    let limits = [(2, 3.0), (3, 10.0), (3, 10.0)];
    for (removed, (depth, units)) in patterns.into_iter().zip(limits) {
        let live: Vec<u64> = (0..ROWS).filter(|place| !removed(*place)).collect();
        let ranks = [0, 50, 299_950, 300_000, 450_000, 500_000, live.len() / 50 * 50 - 50];
        // As many places as the rows of a page take, with the removed ones between them.
        let present: Vec<_> = ranks.iter().map(|rank| live[*rank]..live[*rank] + 60).collect();
        let stack = Stack::start(empty()).await.unwrap();
        long_list(&stack, ROWS, removed, &present).await;
        for rank in ranks {
            let page = i64::try_from(rank / 50 + 1).unwrap();
            let cost = cost_of(&stack, &query(page, 50), live[rank]).await;
            assert!(cost.depth <= depth && cost.read_units <= units, "{rank}: {cost:?}");
            // The number of rows is a multiple of fifty, so the same rows are a page of the other order.
            let page = i64::try_from((live.len() - rank) / 50).unwrap();
            let newest_first = PageQuery { order: Order::Descending, ..query(page, 50) };
            let reverse = cost_of(&stack, &newest_first, live[rank + 49]).await;
            assert!(reverse.depth <= depth && reverse.read_units <= units, "{rank}: {reverse:?}");
        }
    }
}
