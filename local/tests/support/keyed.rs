//! Requests with an idempotency key, and their records in a form that is comparable between stacks.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use local::Stack;
use local::http::Call;

use crate::support::fixture::everything;

pub const KEY: &str = "6b2d0a52-1f5c-4c1e-9f0e-canary000001";
pub const LEASE: i64 = 30_000;

pub type Item = BTreeMap<String, AttributeValue>;

pub fn keyed(call: Call, key: &str) -> Call {
    let mut call = call;
    call.headers.insert("idempotency-key".to_owned(), key.to_owned());
    call
}

pub fn is_claim(item: &Item) -> bool {
    item["sk"] == AttributeValue::S("IDEMPOTENCY".into())
}

/// The key that orders the items.
pub fn key(item: &Item) -> [&str; 2] {
    ["pk", "sk"].map(|name| item[name].as_s().unwrap().as_str())
}

/// All items except claims and the staged contacts of campaigns that do not exist.
pub async fn records(stack: &Stack) -> Vec<Item> {
    let mut items = everything(stack).await;
    for item in &mut items {
        // The partition of the index follows from the id, which differs between stacks.
        if let Some(AttributeValue::S(due)) = item.get_mut("due_pk") {
            due.truncate(due.find('#').unwrap_or(due.len()));
        }
    }
    for item in items.iter_mut().filter(|item| item["pk"].as_s().unwrap().contains("#SENDS#")) {
        // So does the item that counts a send.
        item.insert("sk".into(), AttributeValue::S("00".into()));
    }
    let text = |item: &Item, name: &str| item.get(name).map_or_else(String::new, |value| value.as_s().unwrap().clone());
    let campaigns: BTreeSet<String> =
        items.iter().filter(|item| text(item, "record") == "Campaign").map(|item| text(item, "id")).collect();
    let runs: BTreeSet<&str> = campaigns.iter().map(|id| &id[..28]).collect();
    let of_none = |item: &Item| {
        let (pk, sk) = (text(item, "pk"), text(item, "sk"));
        let is_of_none = |run: &str| !runs.contains(run.get(..28).unwrap_or_default());
        (pk.contains("#CAMPAIGN_CONTACT#") && !campaigns.contains(&text(item, "campaign_id")))
            || (sk == "CAMPAIGN_TEXT" && pk.rsplit('#').next().is_some_and(is_of_none))
            || pk.split_once("#CAMPAIGN_POINTERS#").is_some_and(|(_, run)| is_of_none(run))
    };
    items.retain(|item| !is_claim(item) && !of_none(item));
    items
}

/// `text` with a placeholder for every id, hash and secret that is absent from `known`.
pub fn masked(text: &str, known: &str) -> String {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let digits = |at: usize, length: usize| text.get(at..at + length).filter(|part| part.as_bytes().iter().all(is_hex));
    let uuid = |at: usize| {
        let groups = |part: &&str| part.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
        text.get(at..at + 36).filter(|part| part.bytes().all(|byte| byte == b'-' || is_hex(&byte))).filter(groups)
    };
    let secret = |at: usize| text.get(at..at + "whsec_".len() + 44).filter(|part| part.starts_with("whsec_"));
    // An API key, or the part of it that is shown.
    let in_quotes = |at: usize, length: usize| {
        text.get(at..at + length).filter(|part| part.ends_with('"') && part[..length - 1].rfind('"') == Some(0))
    };
    let api_key = |at: usize| in_quotes(at, 48).or_else(|| in_quotes(at, 9)).filter(|part| part.starts_with("\"in-"));
    let (mut out, mut at) = (String::new(), 0);
    while let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let part = digits(at, 64)
            .or_else(|| uuid(at))
            .or_else(|| digits(at, 32))
            .or_else(|| secret(at))
            .or_else(|| api_key(at));
        if let Some(part) = part {
            out += if known.contains(part) { part } else { "NEW" };
            at += part.len();
        } else {
            out.push(character);
            at += character.len_utf8();
        }
    }
    out
}

/// The items that differ in `other`. Both slices are ordered by key.
pub fn differing<'a>(items: &'a [Item], other: &'a [Item]) -> impl Iterator<Item = &'a Item> {
    let same = |item: &Item| other.binary_search_by_key(&key(item), key).is_ok_and(|at| other[at] == *item);
    items.iter().filter(move |item| !same(item))
}
