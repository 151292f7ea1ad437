//! `GET /api/v1/conversation`: lists the conversations, filtered by status, assistant and contact.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use local::Stack;
use local::database::TABLE_NAME;
use local::http::Answer;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use shared::records::conversation::{Conversation, ConversationStatus};
use shared::table::filters::{Move, Term, follow};
use shared::table::item::{Item, to_item};
use shared::table::keys::{filter_block, filter_section, list_head, list_row};
use shared::table::rows::NewRow;
use shared::table::stored::Listed as _;
use shared::values::id::{AssistantId, ContactId, ConversationId, with_ordinal};
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::demo_set;
use crate::support::fixture::{
    ACME, NOW, acme, call, data, everything, id, json, kind, post, put_items, stack, streaming, tenant,
};
use crate::support::records::{NO_UUID, NOBODYS, detail, issue};
use crate::support::sweep::cases;

async fn list(stack: &Stack, query: &str) -> Answer {
    stack.answer(&call("GET", &format!("/api/v1/conversation?{query}"), ACME)).await
}

#[tokio::test]
async fn a_filter_accepts_an_id_of_any_form_and_its_last_value() {
    let stack = stack().await;
    let assistant = id('a', kind::ASSISTANT, 1);
    for (query, wanted) in [
        (String::new(), vec![demo_set::conversation(0), demo_set::conversation(1)]),
        (
            format!("&assistant_id={}", assistant.to_uppercase()),
            vec![demo_set::conversation(0), demo_set::conversation(1)],
        ),
        (format!("&assistant_id={NOBODYS}&status=open"), vec![]),
        // Of repeated parameters, the last one counts.
        ("&status=open&status=closed".into(), vec![demo_set::conversation(0)]),
    ] {
        let (total, pages) = (wanted.len(), u64::from(!wanted.is_empty()));
        let wanted = json!({
            "items": wanted,
            "total": total,
            "page": 1,
            "size": 50,
            "pages": pages,
            "previous_page": null,
            "next_page": null,
        });
        let wanted = json!({"message": "", "meta": {}, "data": wanted});
        assert_eq!(json(&list(&stack, &query).await), wanted, "{query}");
        let beyond = data(&list(&stack, &format!("{query}&page=9223372036854775807&size=100")).await);
        assert_eq!((&beyond["items"], &beyond["total"]), (&json!([]), &json!(total)), "{query}");
    }
}

#[tokio::test]
async fn lists_the_issues_of_filters_dates_and_pages() {
    let stack = stack().await;
    let no_filter = json!([
        issue(&json!(["query", "page"]), "greater_than_equal", "Input should be greater than or equal to 1"),
        issue(&json!(["query", "size"]), "less_than_equal", "Input should be less than or equal to 100"),
        issue(&json!(["query", "status"]), "enum", "Input should be 'open' or 'closed'"),
        issue(&json!(["query", "assistant_id"]), "uuid_parsing", NO_UUID),
    ]);
    let msg = "Input should be a valid datetime or date, such as 2030-01-31 or 2030-01-31T12:00:00Z";
    let date = |name: &str| issue(&json!(["query", name]), "datetime_from_date_parsing", msg);
    let no_date = json!([date("date_from"), date("date_to")]);
    let statuses = ["Open", "", "null"];
    let statuses = statuses.map(|text| (format!("&assistant_id=x&status={text}&size=101&page=0"), &no_filter));
    let dates = ["", "yesterday", "2026-02-30", "1767225600", "2026-01-01T00:00:00+99:00"];
    let dates = dates.map(|text| (format!("&date_to={text}&date_from={text}"), &no_date));
    for (query, wanted) in statuses.into_iter().chain(dates) {
        assert_eq!(detail(&list(&stack, &query).await), (422, wanted.clone()), "{query}");
    }
}

/// A conversation in the plain list.
#[derive(Debug, Clone)]
struct Plain {
    id: String,
    assistant: String,
    closed: bool,
    contact: Option<String>,
}

/// The filters of a query.
#[derive(Debug, Clone, Copy)]
struct Choice<'a> {
    closed: Option<bool>,
    assistant: Option<&'a String>,
    contact: Option<&'a String>,
}

impl Choice<'_> {
    fn takes(&self, one: &Plain) -> bool {
        self.closed.is_none_or(|closed| one.closed == closed)
            && self.assistant.is_none_or(|assistant| one.assistant == *assistant)
            && (self.contact.is_none() || one.contact.as_ref() == self.contact)
    }

    /// The filters as part of a query and of the name of a set.
    fn filter(&self) -> String {
        let status = self.closed.map(|closed| if closed { "&status=closed" } else { "&status=open" });
        let assistant = self.assistant.map(|assistant| format!("&assistant_id={assistant}"));
        let contact = self.contact.map(|contact| format!("&contact_id={contact}"));
        status.map(str::to_owned).into_iter().chain(assistant).chain(contact).collect()
    }
}

/// Every combination of a status or none with one of these assistants or none.
fn choices(assistants: &[String]) -> impl Iterator<Item = Choice<'_>> {
    let of = |assistant| [None, Some(false), Some(true)].map(|closed| Choice { closed, assistant, contact: None });
    [None].into_iter().chain(assistants.iter().map(Some)).flat_map(of)
}

/// Asserts that the pages of every size and of every filter have the rows of the plain list.
async fn same(stack: &Stack, plain: &[Plain], assistants: &[String]) {
    for choice in choices(assistants) {
        let ids: Vec<_> = plain.iter().filter(|one| choice.takes(one)).map(|one| one.id.clone()).collect();
        for size in [1, 7, 100] {
            let pages = ids.len().div_ceil(size);
            for page in (1..=pages + 1).step_by(if size == 1 { 7 } else { 1 }) {
                let query = format!("{}&page={page}&size={size}", choice.filter());
                let found = data(&list(stack, &query).await);
                let rows = found["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap());
                let wanted: Vec<_> = ids.iter().skip((page - 1) * size).take(size).collect();
                assert_eq!(rows.collect::<Vec<_>>(), wanted, "{query}");
                assert_eq!((&found["total"], &found["pages"]), (&json!(ids.len()), &json!(pages)), "{query}");
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Opens a conversation with the assistant at this place.
    Open(usize),
    /// Closes the conversation at this place, a fraction of the list.
    Close(f64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let open = (0..3_usize).prop_map(Step::Open);
    let close = (0.0..1.0).prop_map(Step::Close);
    prop::collection::vec(prop_oneof![3 => open, 2 => close], 1..60)
}

#[tokio::test]
async fn every_filter_selects_the_rows_of_a_plain_list() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    for _ in cases(0..4) {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        println!("{steps:?}");
        let stack = Stack::start(streaming()).await.unwrap();
        let table = acme(&stack);
        let mut assistants = vec![id('a', kind::ASSISTANT, 1)];
        for _ in 0..2 {
            let created = data(&stack.answer(&post("/api/v1/assistant", ACME, "{}")).await);
            assistants.push(created["id"].as_str().unwrap().to_owned());
        }
        let demo = [true, false].into_iter().zip(0..);
        let opened = |id: String, assistant: usize| Plain {
            id,
            assistant: assistants[assistant].clone(),
            closed: false,
            contact: None,
        };
        let mut plain: Vec<Plain> =
            demo.map(|(closed, n)| Plain { closed, ..opened(id('a', kind::CONVERSATION, n), 0) }).collect();
        for (number, step) in (1..).zip(&steps) {
            let (now, by) = (Timestamp::from_unix_millis(NOW), Uuid::from_u128(number << 64));
            match step {
                Step::Open(assistant) => {
                    let row = NewRow { of: (), id: by, origin: None, now };
                    let row = table.insert(row, |id| conversation(id, &assistants[*assistant])).await.unwrap();
                    plain.push(opened(row.id.to_string(), *assistant));
                }
                Step::Close(place) => {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        clippy::cast_precision_loss,
                        reason = "a fraction of a length"
                    )]
                    let place = (place * plain.len() as f64) as usize;
                    let one = &mut plain[place];
                    let id = ConversationId(one.id.parse().unwrap());
                    let closed = table.try_change(id, by, |open: &mut Conversation| open.close(None, now)).await;
                    assert_eq!(closed.is_err(), one.closed);
                    one.closed = true;
                }
            }
        }
        assistants.push(NOBODYS.to_owned());
        stack.settle().await.unwrap();
        assert_eq!(stack.stream.given_up(), Vec::<Value>::new());
        same(&stack, &plain, &assistants).await;
    }
}

fn conversation(id: ConversationId, assistant: &str) -> Conversation {
    let now = Timestamp::from_unix_millis(NOW);
    let stored = json!({"id": id, "assistant_id": assistant, "created_at": now, "updated_at": now});
    serde_json::from_value(stored).unwrap()
}

/// The items of the set `name` after all `members` of a list were put into it.
fn set_of(name: &str, members: impl Fn(u64) -> bool, count: u64) -> Vec<Item> {
    const BLOCK: u64 = 1024;
    let number = |value: u64| AttributeValue::N(value.to_string());
    let (tenant, mut items) = (tenant(), Vec::new());
    for section in 0..count.div_ceil(BLOCK * 32) {
        let mut counts = filter_section(&tenant, name, section).attributes();
        for block in 0..32 {
            let first = (section * 32 + block) * BLOCK;
            let mut words = [0_u64; 16];
            for bit in (0..BLOCK).filter(|bit| first + bit < count && members(first + bit)) {
                words[(bit / 64) as usize] |= 1 << (bit % 64);
            }
            let size: u32 = words.iter().map(|word| word.count_ones()).sum();
            if size > 0 {
                counts.insert(format!("b{block}"), number(size.into()));
                let mut item = filter_block(&tenant, name, section * 32 + block).attributes();
                let words = words.iter().enumerate().filter(|(_, word)| **word > 0);
                item.extend(words.map(|(place, word)| (format!("w{place}"), number(*word))));
                items.push(item);
            }
        }
        if counts.len() > 2 {
            items.push(counts);
        }
    }
    items
}

#[tokio::test]
async fn the_service_stores_sets_as_these_tests_write_them() {
    const PLACES: [u64; 12] = [0, 1, 63, 64, 1023, 1024, 2047, 32_767, 32_768, 65_535, 65_536, 69_999];
    let stack = stack().await;
    let table = acme(&stack);
    let assistant = id('a', kind::ASSISTANT, 1);
    let of_it = || Term::of("assistant_id", &AssistantId(assistant.parse().unwrap())).unwrap();
    let term = |status: ConversationStatus| Some(vec![Term::of("status", &status).unwrap(), of_it()]);
    let (open, closed) = (term(ConversationStatus::Open), term(ConversationStatus::Closed));
    let moved = |place, was: &Option<Vec<Term>>, is: &Option<Vec<Term>>| Move {
        key: list_row(&tenant(), "TEST", place),
        was: was.clone(),
        is: is.clone(),
        made_at: None,
    };
    let row = |place: u64, is_open: bool| {
        let mut row = conversation(ConversationId(with_ordinal(Uuid::max(), place)), &assistant);
        if !is_open {
            row.close(None, row.created_at).unwrap();
        }
        to_item(&list_row(&tenant(), "TEST", place), &row).unwrap()
    };
    let follow = async |changes: &[Move]| {
        // A stream may deliver each change twice.
        for _ in 0..2 {
            follow::<Conversation>(&table, changes, Timestamp::from_unix_millis(NOW)).await.unwrap();
        }
    };
    let new = None;
    let all: Vec<u64> = PLACES.into_iter().chain(70_000..70_100).collect();
    put_items(&stack, all.iter().map(|place| row(*place, true)).collect::<Vec<_>>()).await;
    let opened: Vec<Move> = all.into_iter().map(|place| moved(place, &new, &open)).collect();
    follow(&opened).await;
    for place in 70_000..70_100 {
        let key = list_row(&tenant(), "TEST", place).attributes();
        stack.client.delete_item().table_name(TABLE_NAME).set_key(Some(key)).send().await.unwrap();
    }
    let left = (70_000..70_100).map(|place| moved(place, &open, &closed));
    follow(&left.chain((70_000..70_100).map(|place| moved(place, &closed, &new))).collect::<Vec<_>>()).await;
    put_items(&stack, PLACES.iter().map(|place| row(*place, false)).collect::<Vec<_>>()).await;
    follow(&PLACES.iter().map(|place| moved(*place, &open, &closed)).collect::<Vec<_>>()).await;
    // A late change has no effect.
    follow(&opened).await;
    // A set that has lost members has zeros, and blocks without a bit.
    let none = AttributeValue::N("0".into());
    let bare = |item: BTreeMap<String, AttributeValue>| {
        item.into_iter()
            .filter(|(name, value)| name != "ttl" && !name.starts_with('v') && *value != none)
            .collect::<Item>()
    };
    let of_status = |pk: &str| pk.contains("#SET#TEST#status=") && !pk.contains('&');
    let found = everything(&stack).await.into_iter().filter(|item| of_status(item["pk"].as_s().unwrap()));
    let mut wanted = set_of("TEST#status=closed", |place| PLACES.contains(&place), 70_000);
    wanted.sort_by_cached_key(|item| format!("{:?}{:?}", item["pk"], item["sk"]));
    assert_eq!(found.map(bare).filter(|item| item.len() > 2).collect::<Vec<_>>(), wanted);
}

/// The rows of a long list: two sections of 32 blocks, and a part of a third.
const COUNT: usize = 70_000;

fn long_list(assistants: &[String], contact: &str) -> Vec<Plain> {
    let seed = Uuid::from_u128(0x019c_1912_fa00_7000_8000_0000_0000_0000);
    // The second assistant has few rows, with a gap of more than a section. No row of the last section is closed.
    let second = |place: usize| place.wrapping_mul(2_654_435_761) % 50 == 7 && !(10_000..50_000).contains(&place);
    let row = |place: usize| Plain {
        id: with_ordinal(seed, place as u64).to_string(),
        assistant: assistants[usize::from(second(place))].clone(),
        closed: place.wrapping_mul(2_246_822_519) % 3 == 1 && place < 65_536,
        contact: (place % 997 == 5).then(|| contact.to_owned()),
    };
    (0..COUNT).map(row).collect()
}

/// The pages of `places` around the ends of blocks and sections, the first and the last: size, number and rows.
fn pages_at_edges(places: &[usize]) -> Vec<(usize, usize, &[usize])> {
    let at = |(edge, size): (usize, usize)| {
        let number = places.partition_point(|place| *place < edge).saturating_sub(size / 2) / size + 1;
        let first = ((number - 1) * size).min(places.len());
        (size, number, &places[first..places.len().min(first + size)])
    };
    let edges = [0, 1024, 2048, 9_999, 32_768, 50_000, 65_536, COUNT];
    edges.into_iter().flat_map(|edge| [(edge, 7), (edge, 100)]).map(at).collect()
}

#[tokio::test]
async fn pages_are_found_across_blocks_and_sections() {
    let (stack, contact) = (stack().await, id('a', kind::CONTACT, 1));
    let assistants = [id('a', kind::ASSISTANT, 1), id('a', kind::ASSISTANT, 2)];
    let plain = long_list(&assistants, &contact);
    let with_contact = choices(&assistants).map(|choice| Choice { contact: Some(&contact), ..choice });
    let choices: Vec<_> = choices(&assistants).chain(with_contact).collect();
    let (tenant, list_name) = (tenant(), Conversation::list(()));
    let mut head = list_head(&tenant, &list_name).attributes();
    head.insert("next_ordinal".into(), AttributeValue::N(COUNT.to_string()));
    let mut items = vec![head];
    // A contact has few conversations, so no set combines a contact with another filter.
    let is_kept = |choice: &&Choice<'_>| {
        let others = choice.closed.is_some() || choice.assistant.is_some();
        others != choice.contact.is_some()
    };
    for choice in choices.iter().filter(is_kept) {
        let name = format!("CONVERSATION#{}", choice.filter().trim_start_matches('&'));
        items.extend(set_of(&name, |place| choice.takes(&plain[usize::try_from(place).unwrap()]), COUNT as u64));
    }
    let chosen: Vec<(&Choice<'_>, Vec<usize>)> = choices
        .iter()
        .map(|choice| (choice, (0..COUNT).filter(|place| choice.takes(&plain[*place])).collect()))
        .collect();
    // Only the rows of these pages are stored.
    let present = chosen.iter().flat_map(|(_, places)| pages_at_edges(places)).flat_map(|(.., rows)| rows);
    for place in present.collect::<BTreeSet<_>>() {
        let Plain { id, assistant, closed, contact } = &plain[*place];
        let mut row = conversation(ConversationId(id.parse().unwrap()), assistant);
        row.contact_id = contact.as_ref().map(|contact| ContactId(contact.parse().unwrap()));
        if *closed {
            row.close(None, row.created_at).unwrap();
        }
        items.push(to_item(&list_row(&tenant, &list_name, *place as u64), &row).unwrap());
    }
    put_items(&stack, items).await;

    // The first request of a process also notes the use of the key.
    list(&stack, "&size=1").await;
    for (choice, places) in cases(&chosen) {
        for (size, number, rows) in pages_at_edges(places) {
            let query = format!("{}&page={number}&size={size}", choice.filter());
            let answer = list(&stack, &query).await;
            let found = data(&answer);
            let ids = found["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap());
            assert_eq!(
                ids.collect::<Vec<_>>(),
                rows.iter().map(|place| &plain[*place].id).collect::<Vec<_>>(),
                "{query}"
            );
            assert_eq!((&found["total"], &found["page"]), (&json!(places.len()), &json!(number)), "{query}");
            assert!(answer.cost.depth <= 3, "{query} {:?}", answer.cost);
        }
    }
}

/// Voice is a message of this type, or a call that the service began.
#[tokio::test]
async fn a_filter_selects_conversations_with_or_without_voice() {
    let stack = Stack::start(streaming()).await.unwrap();
    let total = async |query: &str| {
        stack.settle().await.unwrap();
        let page = data(&list(&stack, query).await);
        let has =
            page["items"].as_array().unwrap().iter().all(|one| query.contains(&one["includes_voice"].to_string()));
        assert!(has, "{page}");
        page["total"].as_u64().unwrap()
    };
    let with_message = async |kind: &str| {
        let body = json!({"assistant_id": id('a', kind::ASSISTANT, 1)}).to_string();
        let opened = data(&stack.answer(&post("/api/v1/conversation", ACME, body)).await);
        let path = format!("/api/v1/conversation/{}/message", opened["id"].as_str().unwrap());
        let said = json!({"sender_type": "user", "text": "Hi", "message_type": kind}).to_string();
        data(&stack.answer(&post(&path, ACME, said)).await);
    };
    assert_eq!((total("includes_voice=true").await, total("includes_voice=false").await), (0, 2));
    with_message("text").await;
    with_message("voice").await;
    assert_eq!((total("includes_voice=true").await, total("includes_voice=false").await), (1, 3));
    let call = format!("/api/v1/call/{}", id('a', kind::WIDGET, 2));
    data(&stack.answer(&post(&call, ACME, r#"{"to":"+49 151 2345678"}"#)).await);
    assert_eq!((total("includes_voice=true").await, total("includes_voice=false").await), (2, 3));
    assert_eq!(total("includes_voice=true&status=closed").await, 0);
    assert_eq!(total("includes_voice=false&status=closed").await, 1);
    // A parameter that is not known is still ignored.
    assert_eq!(data(&list(&stack, "includes_video=true").await)["total"], 5);
    let issue = issue(
        &json!(["query", "includes_voice"]),
        "bool_parsing",
        "Input should be a valid boolean, unable to interpret input",
    );
    assert_eq!(detail(&list(&stack, "includes_voice=maybe").await), (422, json!([issue])));
}
