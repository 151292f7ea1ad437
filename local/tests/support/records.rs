//! Gives the tests of single operations the wanted answers, and the items of the table before and after.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use local::Stack;
use local::http::{Answer, Call};
use repository::camel_case;
use serde_json::{Value, json};
use shared::records::campaign::NEIGHBOURS;
use shared::records::delivery;
use shared::records::delivery::EndpointHealth;
use shared::routes;
use shared::table::item::{Item, from_item};
use shared::values::id::{with_flag, with_ordinal};
use shared::values::time::Timestamp;

use crate::support::fixture::{ACME, NOW, acme, call, contact_id, data, everything, id, json, kind, post, stack};

/// Acme's organisation.
pub const ACME_ORG: &str = "01900000-0000-7000-8000-a00000000001";

/// An id that no record has.
pub const NOBODYS: &str = "01900000-0000-7000-8000-ffffffffffff";

/// The first and the second id that a new stack assigns.
pub const FRESH: [&str; 2] = ["019c1912-fa00-7000-8000-000000000000", "019c1912-fa00-7000-8000-000100000000"];

/// The time at which the demo set was made.
pub const DEMO_TIME: &str = "2026-01-01T00:00:00.000Z";

/// The time of every test.
pub const TEST_TIME: &str = "2026-02-01T12:00:00.000Z";

/// The message of `uuid_parsing` for the text `x`.
pub const NO_UUID: &str = "Input should be a valid UUID, invalid character: expected an optional prefix of `urn:uuid:` followed by \
                       [0-9a-fA-F-], found `x` at 1";

/// Partition key and sort key.
pub type Key = (String, String);

/// Items by their keys, as JSON; free-form values stay text, as they are stored.
pub type Items = BTreeMap<Key, Value>;

/// The key of an item of Acme.
pub fn key(pk: &str, sk: &str) -> Key {
    (format!("ORG#{ACME_ORG}#{pk}"), sk.to_owned())
}

/// The whole table, without what the quotas count, which has tests of its own.
pub async fn items(stack: &Stack) -> Items {
    let text = |item: &BTreeMap<_, AttributeValue>, name| item[name].as_s().unwrap().clone();
    let all = everything(stack).await.into_iter().filter(|item| !is_counter(&text(item, "pk")));
    let all = all.map(|mut item| {
        item.remove("counted");
        item
    });
    all.map(|item| ((text(&item, "pk"), text(&item, "sk")), from_item(item.into_iter().collect()).unwrap())).collect()
}

/// Whether items with this partition key count the use of quotas.
fn is_counter(pk: &str) -> bool {
    pk.ends_with("#USE") || pk.contains("#SENDS#")
}

/// The items that are gone from the table since `before`, and the new ones; a changed item is in both.
pub async fn changes(stack: &Stack, before: &Items) -> (Items, Items) {
    let after = items(stack).await;
    let without = |these: &Items, those: &Items| {
        let differs = |(key, item): &(&Key, &Value)| those.get(*key) != Some(*item);
        these.iter().filter(differs).map(|(key, item)| (key.clone(), item.clone())).collect()
    };
    (without(before, &after), without(&after, before))
}

/// The item of an answered `record` at this key, with the members `free_form` as text.
pub fn stored(record: &Value, free_form: &[&str], (pk, sk): &Key) -> Value {
    let mut item = record.clone();
    for name in free_form {
        item[*name] = record[*name].to_string().into();
    }
    // The row of a list names the type of its record.
    if let Some((_, list)) = pk.split_once("#LIST#") {
        let list = list.split('#').next().unwrap().to_lowercase().replace('_', "-");
        item["record"] = camel_case(&list).into();
    }
    item["pk"] = pk.as_str().into();
    item["sk"] = sk.as_str().into();
    item
}

/// The members of `item` that `record` has as well.
pub fn members_of(record: &Value, item: &Value) -> Value {
    record.as_object().unwrap().keys().map(|name| (name.clone(), item[name].clone())).collect()
}

/// The status and the whole issues of a failure.
pub fn detail(answer: &Answer) -> (u16, Value) {
    (answer.status, json(answer)["detail"].clone())
}

pub fn issue(loc: &Value, kind: &str, msg: &str) -> Value {
    json!({"loc": loc, "msg": msg, "type": kind})
}

/// The refusal of a path whose `parameter` names no record.
pub fn not_found(parameter: &str) -> (u16, Value) {
    (404, json!([issue(&json!(["path", parameter]), "not_found", "Not found")]))
}

/// The refusal of a request that the state of the record of `parameter` forbids.
pub fn conflict(parameter: &str, kind: &str, msg: &str) -> (u16, Value) {
    (409, json!([issue(&json!(["path", parameter]), kind, msg)]))
}

/// The refusal of a body with a wrong `field`.
pub fn wrong(field: &str, kind: &str, msg: &str) -> (u16, Value) {
    (422, json!([issue(&json!(["body", field]), kind, msg)]))
}

/// Opens the circuit of an endpoint of Acme and sends `body` to its record at `path`. Asserts that this closes the
/// circuit, or that the circuit stays as it was.
pub async fn update_with_open_circuit(stack: &Stack, path: &str, healthy: EndpointHealth, body: &Value, closes: bool) {
    let (table, id, now) = (acme(stack), healthy.id, Timestamp::from_unix_millis(NOW));
    // The time of the last deferral stays, because the tick finds the deferred deliveries by it.
    let healthy = EndpointHealth { deferred_at: Some(now), ..healthy };
    let bad = EndpointHealth { failures: 7, failing_since: Some(now), slow: true, ..healthy.clone() };
    table.put_single(id, &bad).await.unwrap();
    let put = call("PUT", &format!("/api/v1/{path}/{id}"), ACME);
    data(&stack.answer(&Call { body: body.to_string().into(), ..put }).await);
    let is = delivery::health::of(&table, id).await.unwrap();
    let wanted = EndpointHealth { due_at: Some(now), reset_at: Some(now), version: is.version, ..healthy };
    assert_eq!(is, if closes { wanted } else { bad }, "{body}");
}

/// No change of the table.
pub fn nothing() -> (Items, Items) {
    (Items::new(), Items::new())
}

/// The head of a list whose next ordinal is `next`.
pub fn head(list: &str, next: u32) -> Items {
    let key = key(&format!("LIST#{list}"), "HEAD");
    let item = json!({"pk": key.0, "sk": key.1, "next_ordinal": next});
    [(key, item)].into()
}

/// The key of a row of a list.
pub fn row(list: &str, place: u32) -> Key {
    key(&format!("LIST#{list}#ROWS"), &format!("{place:010}"))
}

/// A campaign to Acme's first `contacts` contacts, and the ids of the campaign's contacts.
pub async fn campaign_to(stack: &Stack, contacts: u32) -> (String, Vec<String>) {
    let ids: Vec<_> = (0..contacts).map(contact_id).collect();
    let path = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1));
    let answer = stack.answer(&post(&path, ACME, json!({"contact_ids": ids}).to_string())).await;
    let campaign = data(&answer)["campaign_id"].as_str().unwrap().to_owned();
    let id = |place| with_ordinal(campaign.parse().unwrap(), u64::from(place) + 1);
    // Later contacts are spread over partitions, and their ids have a flag for this.
    let ids = (0..contacts).map(|place| if place < NEIGHBOURS { id(place) } else { with_flag(id(place)) });
    let ids = ids.map(|id| id.to_string()).collect();
    (campaign, ids)
}

/// The `number`-th id that a new stack assigns, at an ordinal.
pub fn fresh(number: usize, ordinal: u32) -> String {
    format!("{}{ordinal:08x}", &FRESH[number][..28])
}

/// The changes of an insert of `record` at `ordinal`: the head with the next ordinal, and the row.
pub fn inserted(list: &str, ordinal: u32, record: &Value, free_form: &[&str]) -> (Items, Items) {
    let row = row(list, ordinal);
    let (gone, mut new) = (head(list, ordinal), head(list, ordinal + 1));
    new.insert(row.clone(), stored(record, free_form, &row));
    (if ordinal == 0 { Items::new() } else { gone }, new)
}

/// The items of the first hole in a list.
pub fn hole(list: &str, ordinal: u32) -> Items {
    let (block, section) =
        (key(&format!("LIST#{list}#HOLES"), "00000000"), key(&format!("LIST#{list}"), "SECTION#00000000"));
    Items::from([
        (block.clone(), json!({"pk": block.0, "sk": block.1, "holes": [ordinal]})),
        (section.clone(), json!({"pk": section.0, "sk": section.1, "b0": 1})),
    ])
}

/// Asserts that a delete at `path` answers `record`, removes only its row, and gives 404 the second time.
pub async fn deletes(path: &str, record: Value, list: &str, ordinal: u32, parameter: &str) {
    deletes_with(path, record, &[row(list, ordinal)], hole(list, ordinal), parameter).await;
}

/// Asserts that a delete at `path` answers `record`, removes or changes the `gone` items, makes the `new` ones, and
/// gives 404 the second time.
pub async fn deletes_with(path: &str, record: Value, gone: &[Key], new: Items, parameter: &str) {
    let stack = stack().await;
    let before = items(&stack).await;
    let answer = stack.answer(&call("DELETE", path, ACME)).await;
    assert_eq!(data(&answer), record);
    let (gone_now, new_now) = changes(&stack, &before).await;
    assert_eq!((gone_now.into_keys().collect::<Vec<_>>().as_slice(), new_now), (gone, new));
    assert_eq!(detail(&stack.answer(&call("DELETE", path, ACME)).await), not_found(parameter));
}

/// Makes a key of Acme with the key `by`, and returns the key and its id.
pub async fn make_key(stack: &Stack, by: &str, body: &Value) -> (String, String) {
    let made = data(&stack.answer(&post(routes::CREATE_KEY.path, by, body.to_string())).await);
    (made["api_key"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

/// An item that DynamoDB has written.
pub fn item_of(wire: &Value) -> Item {
    serde_json::from_value::<serde_dynamo::Item>(wire.clone()).unwrap().into()
}
