//! What is particular to each operation; mirrors `functions/`.

mod create_agency;
mod create_agency_billing_plan;
mod create_assistant;
mod delete_campaign_contact;
mod delete_datasource_file;
mod delete_form;
mod delete_intent;
mod delete_linked_assistant_datasource;
mod delete_tag;
mod get_agent_list;
mod read_link_tag_entity_list;
mod run_campaign;
mod setup_payment_webhook;

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use local::Stack;
use local::gateway::Answer;
use serde_json::{Value, json};
use shared::model::api_key::ApiKey;
use shared::table::store::from_item;

use crate::fixture::{ACME, call, data, empty, everything, id, json, stack};

/// Acme's organisation.
const ACME_ORG: &str = "01900000-0000-7000-8000-a00000000001";

/// An id that nobody has.
const NOBODYS: &str = "01900000-0000-7000-8000-ffffffffffff";

/// The first id that a new stack gives, and the second.
const FRESH: [&str; 2] = ["019c1912-fa00-7000-8000-000000000000", "019c1912-fa00-7000-8000-000100000000"];

/// When the demo set was made.
const DEMO_TIME: &str = "2026-01-01T00:00:00.000Z";

/// Partition key and sort key.
type Key = (String, String);

/// Items by their keys, as JSON; what is free-form stays the text that it is stored as.
type Items = BTreeMap<Key, Value>;

/// The key of an item of Acme's.
fn key(pk: &str, sk: &str) -> Key {
    (format!("ORG#{ACME_ORG}#{pk}"), sk.to_owned())
}

/// The whole table.
async fn items(stack: &Stack) -> Items {
    let text = |item: &BTreeMap<_, AttributeValue>, name| item[name].as_s().unwrap().clone();
    let all = everything(stack).await.into_iter();
    all.map(|item| ((text(&item, "pk"), text(&item, "sk")), from_item(item.into_iter().collect()).unwrap())).collect()
}

/// What is gone from the table since `before`, and what is new in it; a changed item is both.
async fn changes(stack: &Stack, before: &Items) -> (Items, Items) {
    let after = items(stack).await;
    let without = |these: &Items, those: &Items| {
        let differs = |(key, item): &(&Key, &Value)| those.get(*key) != Some(*item);
        these.iter().filter(differs).map(|(key, item)| (key.clone(), item.clone())).collect()
    };
    (without(before, &after), without(&after, before))
}

/// The item of `record` at `key`: all that is answered, the members `free_form` as text.
fn stored(record: &Value, free_form: &[&str], (pk, sk): &Key) -> Value {
    let mut item = record.clone();
    for name in free_form {
        item[*name] = record[*name].to_string().into();
    }
    item["pk"] = pk.as_str().into();
    item["sk"] = sk.as_str().into();
    item
}

/// Status and issues, words and all.
fn detail(answer: &Answer) -> (u16, Value) {
    (answer.status, json(answer)["detail"].clone())
}

fn issue(loc: &Value, kind: &str, msg: &str) -> Value {
    json!({"loc": loc, "msg": msg, "type": kind})
}

/// A delete at `path` answers `record`, removes the item at `key` and nothing else, and finds nothing the second time.
async fn deletes(path: &str, record: Value, key: Key, parameter: &str) {
    let stack = stack().await;
    let before = items(&stack).await;
    let answer = stack.answer(&call("DELETE", path, ACME)).await;
    let wanted = json!({"message": "Data deleted successfully", "meta": {}, "data": record});
    assert_eq!((answer.status, json(&answer)), (200, wanted));
    let (gone, new) = changes(&stack, &before).await;
    assert_eq!((gone.into_keys().collect(), new), (vec![key], Items::new()));
    let again = stack.answer(&call("DELETE", path, ACME)).await;
    let wanted = format!(r#"{{"detail":[{{"loc":["path","{parameter}"],"msg":"Not found","type":"not_found"}}]}}"#);
    assert_eq!((again.status, again.body), (404, wanted));
}

/// A list of Acme's demo set: where it answers, the kind of its ids, how many rows it has.
struct List {
    path: &'static str,
    kind: u8,
    total: u64,
}

impl List {
    async fn answer(&self, stack: &Stack, query: &str) -> Answer {
        let mut call = call("GET", self.path, ACME);
        call.query += query;
        stack.answer(&call).await
    }

    /// The page object, of its items the ids only.
    async fn page(&self, stack: &Stack, query: &str) -> Value {
        let mut page = data(&self.answer(stack, query).await);
        page["items"] = page["items"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
        page
    }

    /// The ids of the rows from `first` on, `count` at most.
    fn ids(&self, first: u64, count: u64) -> Vec<String> {
        let rows = first..self.total.min(first.saturating_add(count));
        rows.map(|row| id('a', self.kind, u32::try_from(row).unwrap())).collect()
    }

    async fn has_every_page(&self) {
        let stack = stack().await;
        let huge = u64::try_from(i64::MAX).unwrap();
        for size in [1, 7, 50, 99, 100] {
            let pages = self.total.div_ceil(size);
            for page in [1, 2, pages - 1, pages, pages + 1, huge] {
                let wanted = json!({
                    "items": self.ids((page - 1).saturating_mul(size), size),
                    "total": self.total,
                    "page": page,
                    "size": size,
                    "pages": pages,
                    "previous_page": (page > 1).then(|| page - 1),
                    "next_page": (page < pages).then(|| page + 1),
                });
                assert_eq!(self.page(&stack, &format!("&page={page}&size={size}")).await, wanted);
            }
        }
    }

    async fn begins_with(&self, row: Value) {
        let answer = self.answer(&stack().await, "").await;
        let body = json(&answer);
        assert_eq!((answer.status, &body["message"], &body["meta"]), (200, &json!(""), &json!({})));
        assert_eq!(body["data"]["items"][0], row);
    }

    async fn is_walked_from_page_to_page(&self) {
        let stack = stack().await;
        let (mut seen, mut next) = (Vec::new(), json!(1));
        while !next.is_null() {
            let page = self.page(&stack, &format!("&size=7&page={next}")).await;
            seen.extend(page["items"].as_array().unwrap().clone());
            next = page["next_page"].clone();
        }
        assert_eq!(json!(seen), json!(self.ids(0, self.total)));
    }

    async fn reads_page_and_size_in_every_form(&self) {
        let stack = stack().await;
        for (query, page, size) in [
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
            let found = self.page(&stack, query).await;
            assert_eq!((&found["page"], &found["size"]), (&json!(page), &json!(size)), "{query}");
        }
    }

    async fn refuses_what_is_no_page(&self) {
        const TEXT: (&str, &str) =
            ("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
        const SMALL: (&str, &str) = ("greater_than_equal", "Input should be greater than or equal to 1");
        const LARGE: (&str, &str) = ("less_than_equal", "Input should be less than or equal to 100");
        const HUGE: (&str, &str) =
            ("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size");
        let stack = stack().await;
        #[expect(clippy::type_complexity, reason = "a table is easier to read than its type")]
        let cases: [(&str, &[(&str, (&str, &str))]); 14] = [
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
        ];
        for (query, issues) in cases {
            let issues = issues.iter().map(|(name, (kind, msg))| issue(&json!(["query", name]), kind, msg));
            assert_eq!(detail(&self.answer(&stack, query).await), (422, issues.collect()), "{query}");
        }
    }

    async fn is_empty_where_nothing_has_been_made(&self) {
        let stack = Stack::start(empty()).await.unwrap();
        let record = json!({"id": ACME_ORG, "org_id": ACME_ORG, "prefix": "in-", "name": "", "role": "full", "created_at": DEMO_TIME});
        let (key, record) = (ApiKey::parse(ACME).unwrap(), serde_json::from_value(record).unwrap());
        stack.gateway.service.store.add_api_key(&key.hash(), &record).await.unwrap();
        for page in [1, 2] {
            let wanted = json!({
                "items": [],
                "total": 0,
                "page": page,
                "size": 50,
                "pages": 0,
                "previous_page": (page > 1).then(|| page - 1),
                "next_page": null,
            });
            assert_eq!(self.page(&stack, &format!("&page={page}")).await, wanted);
        }
    }
}
