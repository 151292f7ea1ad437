//! The table: the items of an organisation as they are stored, by their partitions or by their record, and the last
//! changes of the stream. Secrets are masked.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use maud::{Markup, html};
use serde_json::Value;
use shared::input::schema::capitalised;
use shared::table::item::{Item, key_of};
use shared::table::keys::{PK, SK};
use shared::values::mask::{has_secret_form, is_secret_name};

use super::cells::query_of;
use super::keys::{explained, form_of, group_of, partition_form};
use super::markup::{Tone, badge, pretty, rows, tabs};
use super::{Asked, Console, ROWS, Shown};
use crate::api::OrganisationWithKey;
use crate::database::TABLE_NAME;

/// The most items whose partitions are counted: the scan of a larger table stops there.
const LOOKED_THROUGH: usize = 100_000;
/// The most items of a record that are shown.
const MOST_OF_A_RECORD: usize = 200;
/// Partitions with the numbers of their items, by the form of their keys and what this is.
type PartitionsByForm<'a> = BTreeMap<(&'static str, String), Vec<(&'a String, usize)>>;
/// The view of the stream's last changes.
const CHANGES: &str = "changes";

impl Console {
    pub(super) async fn table(&self, organisation: &OrganisationWithKey, asked: &Asked) -> Shown {
        let start = format!("ORG#{}#", organisation.id);
        let partition = asked.partition.as_deref().filter(|partition| partition.starts_with(&start));
        let shown = match (partition, asked.record.as_deref(), asked.view.as_deref()) {
            (Some(partition), ..) => self.partition(organisation, partition, asked.after.as_deref()).await?,
            (None, Some(id), _) => self.items_of(organisation, id).await?,
            (None, None, Some(CHANGES)) => self.stream_changes(organisation),
            (None, None, _) => self.all_partitions(organisation, &start).await?,
        };
        let view = |view: &str| address(organisation, &[("view", view)]);
        let is_changes = partition.is_none() && asked.record.is_none() && asked.view.as_deref() == Some(CHANGES);
        Ok(html! {
            (tabs("Views", &[("Items", view("items"), !is_changes), ("Changes", view(CHANGES), is_changes)]))
            (shown)
        })
    }

    /// The partitions, by the records that their items belong to.
    async fn all_partitions(&self, organisation: &OrganisationWithKey, start: &str) -> Shown {
        let (partitions, whole) = self.partitions(start).await?;
        // By group, then by the form of the key.
        let mut groups: BTreeMap<String, PartitionsByForm<'_>> = BTreeMap::new();
        for (partition, count) in &partitions {
            let pk = &partition[start.len()..];
            let form = partition_form(pk).unwrap_or(("other", String::new()));
            groups.entry(group_of(pk)).or_default().entry(form).or_default().push((partition, *count));
        }
        Ok(html! {
            p.quiet { "Every partition key of this organisation begins with " code { (start) } ", which is left out here." }
            @if !whole { p.failure { "The table is large: only its first items were counted." } }
            @if groups.is_empty() { div.card { div.empty { "Nothing is stored." } } }
            div.groups {
                @for (group, forms) in &groups {
                    @let id = format!("group-{}", group.replace(' ', "-"));
                    @let (partitions, items) = forms.values().flatten().fold((0, 0), |(partitions, items), one| (partitions + 1, items + one.1));
                    details.card id=(id) {
                        summary {
                            strong { (capitalised(group)) }
                            span.quiet { " " (counted(items, "item")) " in " (counted(partitions, "partition")) }
                        }
                        @for ((form, about), partitions) in forms {
                        h3 { code { (form) } }
                        p.quiet { (about) }
                        ul.partitions {
                            @for (partition, count) in partitions {
                                li { a href=(address(organisation, &[("partition", partition)])) { code { (partition[start.len()..]) } } span.quiet { (count) } }
                            }
                        }
                        }
                    }
                }
            }
        })
    }

    /// The number of items in each partition whose key begins with `start`, and whether these are all of them.
    async fn partitions(&self, start: &str) -> Result<(BTreeMap<String, usize>, bool), String> {
        let mut partitions = BTreeMap::new();
        let whole = self.look_through(Some("pk"), |item| {
            if let Some(partition) = text_of(item, PK).filter(|pk| pk.starts_with(start)) {
                *partitions.entry(partition.to_owned()).or_default() += 1;
            }
        });
        let whole = whole.await?;
        Ok((partitions, whole))
    }

    /// Looks at the items of the table, and returns whether these were all of them.
    async fn look_through(&self, wanted: Option<&str>, mut look: impl FnMut(&Item)) -> Result<bool, String> {
        let (mut looked_through, mut from) = (0, None);
        loop {
            let scan = self.scan().set_projection_expression(wanted.map(str::to_owned)).set_exclusive_start_key(from);
            let page = scan.send().await.map_err(|error| error.to_string())?;
            page.items().iter().for_each(&mut look);
            looked_through += page.items().len();
            from = page.last_evaluated_key;
            if from.is_none() || looked_through >= LOOKED_THROUGH {
                return Ok(from.is_none());
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
        let next = page
            .last_evaluated_key()
            .and_then(key_of)
            .map(|key| address(organisation, &[("partition", partition), ("after", &key.sk)]));
        Ok(html! {
            h2 { code { (partition) } }
            (items(organisation, "items", page.items(), false))
            @if let Some(next) = next { p { a.button href=(next) { "Next" } } }
        })
    }

    /// The items that belong to the record with this id, and the ones of other records that name it.
    async fn items_of(&self, organisation: &OrganisationWithKey, id: &str) -> Shown {
        let start = format!("ORG#{}#", organisation.id);
        let (mut own, mut others) = (Vec::new(), Vec::new());
        self.look_through(None, |item| {
            let key = |name: &str| text_of(item, name).unwrap_or_default();
            if !key(PK).starts_with(&start) || own.len() + others.len() >= MOST_OF_A_RECORD {
                return;
            }
            // The organisation's own id is in every key.
            if key(PK)[start.len()..].contains(id) || key(SK).contains(id) || text_of(item, "id") == Some(id) {
                own.push(item.clone());
            } else if item.values().any(|value| value.as_s().is_ok_and(|text| text == id)) {
                others.push(item.clone());
            }
        })
        .await?;
        let sort = |items: &mut Vec<Item>| {
            items.sort_by(|one, other| {
                [PK, SK].map(|name| text_of(one, name)).cmp(&[PK, SK].map(|name| text_of(other, name)))
            });
        };
        sort(&mut own);
        sort(&mut others);
        Ok(html! {
            h2 { "Items of " code { (id) } }
            (items(organisation, "items", &own, true))
            @if !others.is_empty() {
                h2 { "Items of other records that name it" }
                (items(organisation, "others", &others, true))
            }
        })
    }

    /// The last changes of the stream, with what took them.
    fn stream_changes(&self, organisation: &OrganisationWithKey) -> Markup {
        let start = format!("ORG#{}#", organisation.id);
        let changes = self.journal.traces.newest_changes(usize::MAX);
        let changes = changes.iter().filter_map(|change| Some((change, change.pk.strip_prefix(&start)?)));
        let listed: Vec<_> = changes
            .enumerate()
            .map(|(place, (change, pk))| {
                let (tone, word) = match change.name.as_str() {
                    "INSERT" => (Tone::Good, "made"),
                    "REMOVE" => (Tone::Bad, "removed"),
                    _ => (Tone::Quiet, "changed"),
                };
                html! {
                    td { (badge(tone, word)) }
                    td.wide { (explained(&format!("change-{place}"), pk, &change.sk, &format!("{pk} {}", change.sk))) }
                    td {
                        @if change.taken_by.is_empty() { span.quiet { "nobody" } }
                        @for name in &change.taken_by { div { (name) } }
                    }
                    td {
                        @if change.reactions.is_empty() { span.quiet { "none" } }
                        @for name in &change.reactions { div { (name) } }
                    }
                    td { @if let Some(trace) = &change.trace { a href=(format!("/console/requests/{trace}")) { "Request" } } }
                }
            })
            .collect();
        html! {
            p.quiet { "The stream of the table reports each change of an item. The last 200 are here, the newest first, with the functions that took each, and their reactions." }
            (rows("changes", &["Change", "Item", "Taken by", "Reactions", "From"], &listed, "The stream has reported no change yet. Make a record."))
        }
    }
}

/// A number of things, such as `1 item` and `2 items`.
fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// The address of a view of the table.
fn address(organisation: &OrganisationWithKey, asked: &[(&str, &str)]) -> String {
    let query = [("org", organisation.name.as_str())].into_iter().chain(asked.iter().copied());
    format!("/console/table?{}", query_of(query))
}

/// A text of an item.
fn text_of<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(|value| value.as_s().ok()).map(String::as_str)
}

/// Items with their keys. Each leads to the other items of its record.
fn items(organisation: &OrganisationWithKey, id: &str, items: &[Item], with_partition: bool) -> Markup {
    let start = format!("ORG#{}#", organisation.id).len();
    let listed: Vec<_> = items
        .iter()
        .enumerate()
        .map(|(place, item)| {
            let key = |name: &str| text_of(item, name).unwrap_or_default();
            let pk = key(PK).get(start..).unwrap_or_default();
            let shown = if with_partition { format!("{pk} {}", key(SK)) } else { key(SK).to_owned() };
            let record = text_of(item, "id").filter(|id| id.len() == 36 && !with_partition);
            html! {
                td.key {
                    (explained(&format!("{id}-{place}"), pk, key(SK), &shown))
                    small { (form_of(pk, key(SK)).map_or("unknown", |form| form.item.as_str())) }
                    @if let Some(record) = record { small { a href=(address(organisation, &[("record", record)])) { "All items of the record" } } }
                }
                td.wide { pre tabindex="0" { (pretty(&plain("", &AttributeValue::M(item.clone())))) } }
            }
        })
        .collect();
    rows(id, &["Key", "Item"], &listed, "Nothing is stored here.")
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
