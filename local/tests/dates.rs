//! Filters lists by date: compares the pages with a plain filter of all rows, and measures the cost in long lists.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use fastrand::Rng;
use local::Stack;
use local::database::TABLE_NAME;
use serde_json::{Value, json};
use shared::records::conversation::{Conversation, ConversationStatus};
use shared::table::item::{Item, number, to_item};
use shared::table::keys::{
    Key, filter_block, filter_section, filter_section_of_volume, filter_volume, list_head, list_row,
};
use shared::table::page::Order;
use shared::table::rows::INSERT_LIMIT;
use shared::table::stored::Listed as _;
use shared::values::id::{ConversationId, SPREAD, with_ordinal};
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::fixture::{
    ACME, acme, call, everything, failure, get, go_on_at, id, json, kind, put_items, stack, streaming, tenant,
};
use crate::support::records::NOBODYS;
use crate::support::sweep::cases;

const BLOCK: u64 = 1024;
const DAY: i64 = 86_400_000;
/// The time of the first rows: 2026-03-01.
const BEGIN: i64 = 1_772_323_200_000;

fn conversation(id: ConversationId, assistant: &str, made_at: i64) -> Conversation {
    let now = Timestamp::from_unix_millis(made_at);
    let stored = json!({"id": id, "assistant_id": assistant, "created_at": now, "updated_at": now});
    serde_json::from_value(stored).unwrap()
}

/// The ids and the total of an answered page.
async fn page(stack: &Stack, query: &str) -> (Vec<String>, Value) {
    let page = get(stack, &format!("/api/v1/conversation?{query}")).await;
    let ids = page["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned());
    (ids.collect(), page["total"].clone())
}

/// A row of the plain list.
#[derive(Debug)]
struct Plain {
    id: ConversationId,
    made_at: i64,
    assistant: usize,
    closed: bool,
}

/// The items that count the rows of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Sections only.
    Sections,
    /// A section for the first rows, and the first volume for the others.
    Volumes,
    /// Sections from before the introduction of volumes.
    OlderSections,
}

/// The first spread ordinal whose section belongs to a volume.
const OF_VOLUME: u64 = SPREAD + (1 << 20);

/// Moves all sections to their keys from before the introduction of volumes.
async fn without_volumes(stack: &Stack) {
    for mut item in everything(stack).await {
        let (pk, sk) = (item["pk"].as_s().unwrap().clone(), item["sk"].as_s().unwrap().clone());
        if !pk.ends_with("#SECTIONS") && !sk.starts_with("VOLUME#") {
            continue;
        }
        let delete = stack.client.delete_item().table_name(TABLE_NAME);
        delete.key("pk", item["pk"].clone()).key("sk", item["sk"].clone()).send().await.unwrap();
        if let Some(set) = pk.strip_suffix("#SECTIONS") {
            item.insert("pk".into(), AttributeValue::S(set.to_owned()));
            item.remove("version");
            put_items(stack, [item.into_iter().collect()]).await;
        }
    }
}

/// Whether sections of volumes exist, and whether equally late sections outside of volumes exist.
async fn sections_in_and_outside_of_volumes(stack: &Stack) -> (bool, bool) {
    let keys =
        everything(stack).await.into_iter().map(|item| ["pk", "sk"].map(|key| item[key].as_s().unwrap().clone()));
    let sections: Vec<_> = keys.filter(|[pk, sk]| pk.contains("#SET#") && sk.starts_with("SECTION#")).collect();
    let (inside, outside): (Vec<_>, Vec<_>) = sections.into_iter().partition(|[pk, _]| pk.ends_with("#SECTIONS"));
    let is_far = |sk: &str| sk["SECTION#".len()..].parse::<u64>().unwrap() >= OF_VOLUME / (32 * BLOCK);
    (!inside.is_empty(), outside.iter().any(|[_, sk]| is_far(sk)))
}

#[tokio::test]
async fn dates_select_the_rows_of_a_plain_list() {
    for counted in cases([Counted::Sections, Counted::Volumes, Counted::OlderSections]) {
        compare(counted).await;
    }
}

/// The number of opened conversations.
const OPENED: usize = 2300;

/// Opens conversations with these assistants, a few of them with dates out of order.
async fn opened(stack: &Stack, assistants: &[String; 2], random: &mut Rng) -> Vec<Plain> {
    let (table, mut plain) = (acme(stack), Vec::new());
    while plain.len() < OPENED {
        let count = INSERT_LIMIT.min(OPENED - plain.len());
        let ids: Vec<Uuid> = (0..count).map(|_| Uuid::from_u128(random.u128(..))).collect();
        let mut made = Vec::new();
        for place in plain.len()..plain.len() + count {
            // Nearly in order. One in two hundred is a day old, like the record of a request that is executed again.
            let late = if random.u32(..200) == 0 { DAY } else { 0 };
            let at = BEGIN + i64::try_from(place).unwrap() * 60_000 + random.i64(-180_000..180_000) - late;
            made.push((at, random.usize(..2)));
        }
        let open = |index: usize, id| conversation(id, &assistants[made[index].1], made[index].0);
        let rows = table.insert_all::<Conversation>((), &ids, open).await.unwrap();
        plain.extend(rows.iter().zip(made).map(|(row, (made_at, assistant))| Plain {
            id: row.id,
            made_at,
            assistant,
            closed: false,
        }));
        if random.bool() {
            stack.settle().await.unwrap();
        }
    }
    stack.settle().await.unwrap();
    plain
}

/// Deletes some of the conversations and closes some.
async fn remove_and_close(stack: &Stack, plain: &mut Vec<Plain>, random: &mut Rng) {
    let (table, now) = (acme(stack), Timestamp::from_unix_millis(BEGIN + 30 * DAY));
    for _ in 0..60 {
        let place = random.usize(..plain.len());
        if random.bool() {
            table.remove::<Conversation>(plain.remove(place).id).await.unwrap();
        } else if !plain[place].closed {
            let close = |open: &mut Conversation| open.close(None, now);
            table.try_change(plain[place].id, Uuid::from_u128(random.u128(..)), close).await.unwrap();
            plain[place].closed = true;
        }
    }
    stack.settle().await.unwrap();
    assert_eq!(stack.stream.given_up(), Vec::<Value>::new());
}

/// Compares pages with a plain filter of all rows.
async fn compare(counted: Counted) {
    let mut random = Rng::with_seed(7);
    let stack = Stack::start(streaming()).await.unwrap();
    if counted != Counted::Sections {
        go_on_at::<Conversation>(&stack, OF_VOLUME - 700).await;
    }
    let assistants = [id('a', kind::ASSISTANT, 0), id('a', kind::ASSISTANT, 1)];
    // The conversations of the demo set are older.
    let mut plain = opened(&stack, &assistants, &mut random).await;
    if counted == Counted::OlderSections {
        without_volumes(&stack).await;
    }
    remove_and_close(&stack, &mut plain, &mut random).await;
    let wanted = match counted {
        Counted::Sections => (false, false),
        Counted::Volumes => (true, false),
        // New sets have volumes.
        Counted::OlderSections => (true, true),
    };
    assert_eq!(sections_in_and_outside_of_volumes(&stack).await, wanted);

    let whole = i64::try_from(OPENED).unwrap() * 60_000;
    for number in cases(0..60) {
        // Most times are within a millisecond of the time of a row.
        let mut time = || match random.u32(..4) {
            0 => BEGIN + random.i64(-DAY..whole + DAY),
            _ => plain[random.usize(..plain.len())].made_at + random.i64(-1..=1),
        };
        let (from, to) = (time(), time());
        // Every range begins after the conversations of the demo set.
        let from = if number % 5 == 0 { BEGIN - 2 * DAY } else { from };
        let to = Some(to).filter(|_| number % 7 > 0);
        let closed = (number % 3 == 0).then(|| random.bool());
        let assistant = (number % 4 == 0).then(|| random.usize(..2));
        let chosen = plain.iter().filter(|row| {
            (from..to.unwrap_or(i64::MAX)).contains(&row.made_at)
                && closed.is_none_or(|closed| row.closed == closed)
                && assistant.is_none_or(|assistant| row.assistant == assistant)
        });
        let chosen: Vec<String> = chosen.map(|row| row.id.to_string()).collect();
        let mut query = format!("&date_from={}", Timestamp::from_unix_millis(from));
        query.extend(to.map(|to| format!("&date_to={}", Timestamp::from_unix_millis(to))));
        query.extend(closed.map(|closed| format!("&status={}", if closed { "closed" } else { "open" })));
        query.extend(assistant.map(|assistant| format!("&assistant_id={}", assistants[assistant])));
        let size = [1, 10, 100][random.usize(..3)];
        let pages = chosen.len().div_ceil(size);
        for number in [1, random.usize(..=pages) + 1, pages.max(1), pages + 1] {
            for order in [Order::Ascending, Order::Descending] {
                let wanted = order.of(chosen.clone()).into_iter().skip((number - 1) * size).take(size).collect();
                let query = format!("{query}&page={number}&size={size}&order={}", order.as_str());
                assert_eq!(page(&stack, &query).await, (wanted, json!(chosen.len())), "{counted:?} {query}");
            }
        }
    }
}

#[tokio::test]
async fn dates_select_the_conversations_of_the_demo_set() {
    let stack = stack().await;
    for (query, total) in [
        ("&date_from=2026-01-01&date_to=2026-01-02", 2),
        ("&date_from=2026-01-01T00:00:00Z", 2),
        ("&date_to=2026-01-01", 0),
        ("&date_from=2026-01-01T00:00:00.001Z", 0),
        ("&date_from=2026-01-01&status=open", 1),
        ("&date_from=2025-12-31T23:00:00-01:00&date_to=2026-01-01T00:00:00.001", 2),
        ("&date_from=2026-01-02&date_to=2026-01-01", 0),
        ("&date_from=0001-01-01&date_to=9999-12-31", 2),
    ] {
        let (ids, found) = page(&stack, query).await;
        assert_eq!((ids.len(), found), (total, json!(total)), "{query}");
    }
}

/// The id of a row of a long list.
fn id_at(ordinal: u64) -> Uuid {
    with_ordinal(Uuid::from_u128(0x019c_1912_fa00_7000_8000_0000_0000_0000), ordinal)
}

/// The items of the set of `members` of a list of `count` rows.
fn set_of(set: &str, count: u64, members: impl Fn(u64) -> bool, made_at: impl Fn(u64) -> i64) -> Vec<Item> {
    let (tenant, mut items) = (tenant(), Vec::new());
    let mut sections: BTreeMap<u64, Item> = BTreeMap::new();
    for block in 0..count.div_ceil(BLOCK) {
        let (mut words, mut times) = ([0_u64; 16], Vec::new());
        for ordinal in (block * BLOCK..count.min((block + 1) * BLOCK)).filter(|ordinal| members(*ordinal)) {
            words[(ordinal % BLOCK / 64) as usize] |= 1 << (ordinal % 64);
            times.push(made_at(ordinal));
        }
        let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { continue };
        let mut item = filter_block(&tenant, set, block).attributes();
        item.extend(words.iter().enumerate().map(|(place, word)| (format!("w{place}"), number(word))));
        items.push(item);
        let key = filter_section(&tenant, set, block / 32);
        let section = sections.entry(block / 32).or_insert_with(|| key.attributes());
        let place = block % 32;
        section.insert(format!("b{place}"), number(times.len()));
        section.extend([(format!("f{place}"), number(first)), (format!("l{place}"), number(last))]);
    }
    items.extend(sections.into_values());
    items
}

#[tokio::test]
async fn dates_add_at_most_two_to_the_depth_in_a_million_rows() {
    const ROWS: u64 = 1_000_000;
    let (stack, tenant, list) = (stack().await, tenant(), Conversation::list(()));
    // One row a second, up to a minute out of order.
    let made_at = |ordinal: u64| BEGIN + (ordinal * 1000 + ordinal.wrapping_mul(2_654_435_761) % 60_000).cast_signed();
    let closed = |ordinal: u64| ordinal % 3 == 1;
    let (from, to) = (BEGIN + 300_500_000, BEGIN + 700_500_000);
    let within: Vec<u64> = (0..ROWS).filter(|ordinal| (from..to).contains(&made_at(*ordinal))).collect();
    let within_and_closed: Vec<u64> = within.iter().copied().filter(|ordinal| closed(*ordinal)).collect();
    let mut head = list_head(&tenant, &list).attributes();
    head.insert("next_ordinal".into(), AttributeValue::N(ROWS.to_string()));
    put_items(&stack, [head]).await;
    put_items(&stack, set_of("CONVERSATION#", ROWS, |_| true, made_at)).await;
    put_items(&stack, set_of("CONVERSATION#status=closed", ROWS, closed, made_at)).await;
    // Only the rows of these pages are stored.
    let pages = |chosen: &[u64]| [0, chosen.len() / 200, chosen.len().div_ceil(100) - 1];
    let asked = [&within, &within_and_closed].into_iter().flat_map(|chosen| {
        pages(chosen).into_iter().flat_map(|page| chosen.iter().skip(page * 100).take(100).copied())
    });
    let edges = (299_000..302_000).chain(698_000..702_000).chain(0..100).chain(499_900..500_100);
    let rows: BTreeSet<u64> = asked.chain(edges).collect();
    let row = |ordinal: u64| {
        let mut row = conversation(id_at(ordinal).into(), &id('a', kind::ASSISTANT, 1), made_at(ordinal));
        if closed(ordinal) {
            row.status = ConversationStatus::Closed;
        }
        to_item(&list_row(&tenant, &list, ordinal), &row).unwrap()
    };
    put_items(&stack, rows.into_iter().map(row)).await;

    let dates = format!("&date_from={}&date_to={}", Timestamp::from_unix_millis(from), Timestamp::from_unix_millis(to));
    for (filter, chosen) in [("", &within), ("&status=closed", &within_and_closed)] {
        for number in pages(chosen) {
            let answer = async |dates: &str| {
                let path = format!("/api/v1/conversation?{filter}{dates}&size=100&page={}", number + 1);
                stack.answer(&call("GET", &path, ACME)).await
            };
            // This first request caches the key.
            answer("").await;
            let (without, with) = (answer("").await.cost, answer(&dates).await);
            assert!(with.cost.depth <= without.depth + 2, "{filter} {number}: {:?}, {without:?}", with.cost);
            assert!(with.cost.read_units < 300.0, "{filter} {number}: {:?}", with.cost);
            let found = json(&with)["data"].clone();
            let ids: Vec<&str> =
                found["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
            let wanted: Vec<String> =
                chosen.iter().skip(number * 100).take(100).map(|ordinal| id_at(*ordinal).to_string()).collect();
            assert_eq!((ids, &found["total"]), (wanted.iter().map(String::as_str).collect(), &json!(chosen.len())));
        }
    }
}

/// The rows of a list that is spread from the first row on, with one row a second.
const BILLION: u64 = 1_000_000_000;
/// The first section of that list, and the number of sections; the last one is partly filled.
const FIRST: u64 = SPREAD / (32 * BLOCK);
const SECTIONS: u64 = 30_518;

const fn made_at(row: u64) -> i64 {
    BEGIN + (row * 1000).cast_signed()
}

/// The item at `key`, which counts 32 parts of `of` rows each, from the row `first` on.
fn counting(key: &Key, first: u64, of: u64) -> Item {
    let mut item = key.attributes();
    for place in 0..32 {
        let from = first + place * of;
        let count = BILLION.saturating_sub(from).min(of);
        if count > 0 {
            let (first, last) = (number(made_at(from)), number(made_at(from + count - 1)));
            let counts = [("b", number(count)), ("v", number(count)), ("f", first), ("l", last)];
            item.extend(counts.map(|(name, value)| (format!("{name}{place}"), value)));
        }
    }
    item
}

/// The sections of a set before its first volume, and its volumes.
fn overview(set: &str) -> Vec<Item> {
    let (tenant, rows) = (tenant(), 32 * BLOCK);
    let section = |place: u64| counting(&filter_section(&tenant, set, FIRST + place), place * rows, BLOCK);
    let volume = |place: u64| counting(&filter_volume(&tenant, set, FIRST / 32 + place), place * 32 * rows, rows);
    (0..32).map(section).chain((1..SECTIONS.div_ceil(32)).map(volume)).collect()
}

/// A section of a set with its blocks; without the section if the overview has it.
fn section_with_blocks(set: &str, place: u64) -> Vec<Item> {
    let (tenant, section) = (tenant(), FIRST + place);
    let key = filter_section_of_volume(&tenant, set, section);
    let of_volume = (place >= 32).then(|| counting(&key, place * 32 * BLOCK, BLOCK));
    let block = |block: u64| {
        let mut item = filter_block(&tenant, set, block).attributes();
        item.extend((0..16).map(|word| (format!("w{word}"), number(u64::MAX))));
        item
    };
    of_volume.into_iter().chain((section * 32..(section + 1) * 32).map(block)).collect()
}

#[tokio::test]
async fn a_filtered_page_of_a_billion_rows_costs_under_500_units() {
    /// The first row of the two blocks in which the dates begin.
    const EDGE: u64 = 700_000_000;
    let (stack, tenant, list) = (stack().await, tenant(), Conversation::list(()));
    let of_it = format!("assistant_id={NOBODYS}");
    let mut head = list_head(&tenant, &list).attributes();
    head.extend([("next_ordinal".into(), number(SPREAD + BILLION)), ("spread_from".into(), number(0))]);
    let mut items = vec![head];
    // Only the rows of these pages are stored.
    let pages = [0, 20_000, 5_000_000, 9_999_999];
    let rows = pages.into_iter().flat_map(|page| page * 100..(page + 1) * 100).chain(EDGE..EDGE + 2 * BLOCK);
    items.extend(rows.clone().map(|row| {
        let conversation = conversation(id_at(SPREAD + row).into(), NOBODYS, made_at(row));
        to_item(&list_row(&tenant, &list, SPREAD + row), &conversation).unwrap()
    }));
    // The page may reach into the section behind the edge.
    let sections: BTreeSet<u64> = rows.chain([EDGE + 32 * BLOCK]).map(|row| row / (32 * BLOCK)).collect();
    for set in [format!("CONVERSATION#{of_it}"), "CONVERSATION#".to_owned()] {
        items.extend(overview(&set));
        items.extend(sections.iter().flat_map(|place| section_with_blocks(&set, *place)));
    }
    put_items(&stack, items).await;

    let page_of = async |query: String| {
        let answer = stack.answer(&call("GET", &format!("/api/v1/conversation?{query}"), ACME)).await;
        let data = json(&answer)["data"].clone();
        let ids = data["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), data["total"].as_u64().unwrap(), answer.cost)
    };
    let ids = |from: u64| (from..from + 100).map(|ordinal| id_at(SPREAD + ordinal).to_string()).collect();
    // The first request of a process also notes the use of the key.
    page_of("size=1".to_owned()).await;
    for page in pages {
        let (found, total, cost) = page_of(format!("&{of_it}&size=100&page={}", page + 1)).await;
        assert_eq!((found, total), (ids(page * 100), BILLION), "{page}");
        assert!(cost.read_units < 500.0 && cost.depth <= 5, "{page}: {cost:?}");
    }
    // From the middle of a block on.
    let from = EDGE + 500;
    let dates = format!("&date_from={}&size=100", Timestamp::from_unix_millis(made_at(from)));
    for filter in [String::new(), format!("&{of_it}")] {
        let (found, total, cost) = page_of(format!("{filter}{dates}")).await;
        assert_eq!((found, total), (ids(from), BILLION - from), "{filter}");
        assert!(cost.read_units < 600.0, "{filter}: {cost:?}");
    }
}

/// A time is rounded up to a millisecond, so this one would be in the year 10000.
#[tokio::test]
async fn an_end_after_the_year_9999_is_refused() {
    let stack = stack().await;
    let mut list = call("GET", "/api/v1/conversation", ACME);
    list.query += "&date_to=9999-12-31T23:59:59.9999Z";
    let refused = (422, vec![r#"["query","date_to"] datetime_from_date_parsing"#.to_owned()]);
    assert_eq!(failure(&stack.answer(&list).await), refused);
}
