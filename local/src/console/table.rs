//! The table: the items of an organisation as they are stored, by their partitions. Secrets are masked.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use maud::{Markup, html};
use serde_json::Value;
use shared::table::item::{Item, key_of};
use shared::table::keys::{PK, SK};
use shared::values::mask::{has_secret_form, is_secret_name};

use super::markup::{pretty, rows};
use super::{Asked, Console, ROWS, Shown};
use crate::api::OrganisationWithKey;
use crate::database::TABLE_NAME;

/// The most items whose partitions are counted: the scan of a larger table stops there.
const LOOKED_THROUGH: usize = 100_000;

impl Console {
    pub(super) async fn table(&self, organisation: &OrganisationWithKey, asked: &Asked) -> Shown {
        let start = format!("ORG#{}#", organisation.id);
        if let Some(partition) = asked.partition.as_deref().filter(|partition| partition.starts_with(&start)) {
            return self.partition(organisation, partition, asked.after.as_deref()).await;
        }
        let (partitions, whole) = self.partitions(&start).await?;
        let listed: Vec<_> = partitions
            .iter()
            .map(|(partition, count)| {
                html! {
                    td.wide { a href=(address(organisation, partition, None)) { code { (partition[start.len()..]) } } }
                    td.number { (count) }
                }
            })
            .collect();
        Ok(html! {
            p { "Every partition key of this organisation begins with " code { (start) } "." }
            @if !whole { p.bad { "The table is large: only its first items were counted." } }
            (rows("partitions", &["Partition", "#Items"], &listed, "Nothing is stored."))
        })
    }

    /// The number of items in each partition whose key begins with `start`, and whether these are all of them.
    async fn partitions(&self, start: &str) -> Result<(BTreeMap<String, usize>, bool), String> {
        let (mut partitions, mut looked_through, mut from) = (BTreeMap::new(), 0, None);
        loop {
            let scan = self.scan().projection_expression("pk").set_exclusive_start_key(from);
            let page = scan.send().await.map_err(|error| error.to_string())?;
            for item in page.items() {
                if let Some(partition) = item.get(PK).and_then(|pk| pk.as_s().ok()).filter(|pk| pk.starts_with(start)) {
                    *partitions.entry(partition.clone()).or_default() += 1;
                }
            }
            looked_through += page.items().len();
            from = page.last_evaluated_key;
            if from.is_none() || looked_through >= LOOKED_THROUGH {
                return Ok((partitions, from.is_none()));
            }
        }
    }

    async fn partition(&self, organisation: &OrganisationWithKey, partition: &str, after: Option<&str>) -> Shown {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let limit = i32::try_from(ROWS).unwrap_or(i32::MAX);
        let query = self.client.query().table_name(TABLE_NAME).limit(limit).consistent_read(true);
        let query = query.key_condition_expression("pk = :pk AND sk > :after");
        let query = query.expression_attribute_values(":pk", text(partition));
        // No sort key is empty, and each comes after a space.
        let query = query.expression_attribute_values(":after", text(after.unwrap_or(" ")));
        let page = query.send().await.map_err(|error| error.to_string())?;
        let items: Vec<_> = page.items().iter().map(item).collect();
        let next =
            page.last_evaluated_key().and_then(key_of).map(|key| address(organisation, partition, Some(&key.sk)));
        Ok(html! {
            p { code { (partition) } }
            (rows("items", &["Sort key", "Item"], &items, "Nothing is stored here."))
            @if let Some(next) = next { p { a href=(next) { "Next" } } }
        })
    }
}

/// The address of a partition's items after the sort key `after`.
fn address(organisation: &OrganisationWithKey, partition: &str, after: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("org", &organisation.name).append_pair("partition", partition);
    if let Some(after) = after {
        query.append_pair("after", after);
    }
    format!("/console/table?{}", query.finish())
}

fn item(item: &Item) -> Markup {
    let sk = item.get(SK).and_then(|sk| sk.as_s().ok()).map_or("", String::as_str);
    html! {
        td { code { (sk) } }
        td.wide { pre tabindex="0" { (pretty(&plain("", &AttributeValue::M(item.clone())))) } }
    }
}

/// The value `name` of an item as plain JSON: free-form JSON, which is stored as text, is parsed; secrets are masked.
fn plain(name: &str, value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => match serde_json::from_str(text) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => masked(name, json),
            _ => masked(name, text.as_str().into()),
        },
        AttributeValue::N(number) => serde_json::from_str(number).unwrap_or_else(|_| number.as_str().into()),
        AttributeValue::Bool(value) => (*value).into(),
        AttributeValue::L(values) => values.iter().map(|value| plain(name, value)).collect(),
        AttributeValue::M(values) => {
            let sorted: BTreeMap<_, _> = values.iter().collect();
            let plain = sorted.into_iter().filter(|(name, _)| ![PK, SK].contains(&name.as_str()));
            Value::Object(plain.map(|(name, value)| (name.clone(), self::plain(name, value))).collect())
        }
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::B(bytes) => format!("{} bytes", bytes.as_ref().len()).into(),
        // No item of this service has a set.
        other => format!("{other:?}").into(),
    }
}

/// `value` with its secrets masked.
pub(super) fn masked(name: &str, value: Value) -> Value {
    match value {
        Value::String(text) => {
            let secret = is_secret_name(name) || has_secret_form(&text);
            if secret && !text.is_empty() { "masked".into() } else { text.into() }
        }
        Value::Array(values) => values.into_iter().map(|value| masked(name, value)).collect(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name.clone(), masked(&name, value)));
            Value::Object(members.collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_at_every_depth() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let map = |name: &str, value: AttributeValue| AttributeValue::M([(name.to_owned(), value)].into());
        let secret = map("secret", text("x"));
        for (stored, shown) in [
            (map("name", text("a tag")), json!({"name": "a tag"})),
            (map("secrets", AttributeValue::L(vec![secret])), json!({"secrets": [{"secret": "masked"}]})),
            (
                map("a", text(r#"{"payment_api_key": "y", "b": 1}"#)),
                json!({"a": {"b": 1, "payment_api_key": "masked"}}),
            ),
            (
                map("answer", text(r#"{"data": {"secret": ["whsec_abc"]}}"#)),
                json!({"answer": {"data": {"secret": ["masked"]}}}),
            ),
            (map("body", text("say whsec_abc")), json!({"body": "masked"})),
            (map("secret", text("")), json!({"secret": ""})),
            (map("n", AttributeValue::N("1.5".into())), json!({"n": 1.5})),
        ] {
            assert_eq!(plain("", &stored), shown);
        }
    }
}
