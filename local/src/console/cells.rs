//! Values of records on a page: ids as links to their records by name, times, words, JSON.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use maud::{Markup, html};
use serde_json::Value;

use super::described::{self, PageRecord};
use super::fields::{FieldInput, InputField};
use super::markup::{moment_of, pretty, state};
use super::{Console, ROWS};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::names::{KnownNames, cut, name_of};

/// The most records that are read for the names on a page.
const READ: usize = 100;

impl Console {
    /// The names of records. Those to which `items` refer are read if they are not known yet.
    pub(super) async fn names<'a>(
        &self,
        organisation: &OrganisationWithKey,
        items: impl Iterator<Item = &'a Value>,
    ) -> &KnownNames {
        let (names, mut unknown) = (&self.journal.names, BTreeSet::new());
        for (member, value) in items.filter_map(Value::as_object).flatten() {
            let ids = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            let Some(read) = described::referred(member).and_then(PageRecord::read) else { continue };
            let is_unknown = |id: &&str| names.find(read.route.record, id).is_none();
            // A record within another one cannot be read without this other one.
            if read.route.parameters().count() == 1 {
                let ids = ids.iter().filter_map(Value::as_str).filter(is_unknown);
                unknown.extend(ids.map(|id| (read.route.name, id)));
            }
        }
        let learned = unknown.into_iter().take(READ).filter_map(|(read, id)| {
            let route = described::operation(read)?.route;
            let parameter = route.parameters().next()?;
            Some(async move {
                let read = self.api.ask(organisation, ApiRequest::of(route).parameter(parameter, id)).await;
                names.learn(route, &read.unwrap_or_default());
            })
        });
        join_all(learned).await;
        names
    }

    /// The ids and names of the newest records that the member `name` may refer to; none where they are within others.
    pub(super) async fn choices(&self, organisation: &OrganisationWithKey, name: &str) -> Vec<(String, String)> {
        let list = described::referred(name).and_then(PageRecord::list);
        let Some(list) = list.filter(|list| list.route.parameters().next().is_none() && !list.has_cursor) else {
            return Vec::new();
        };
        named(&self.api.newest(organisation, list.route, ROWS).await.unwrap_or_default())
    }
}

/// The ids and names of records.
pub fn named(records: &[Value]) -> Vec<(String, String)> {
    let named = records.iter().filter_map(|record| {
        let id = record["id"].as_str()?;
        Some((id.to_owned(), name_of(record).unwrap_or_else(|| short(id))))
    });
    named.collect()
}

/// The end of an id: ids that were made in the same second begin alike.
pub fn short(id: &str) -> String {
    let end = id.char_indices().nth_back(7).map_or(0, |(place, _)| place);
    if end == 0 { id.to_owned() } else { format!("…{}", &id[end..]) }
}

/// The end of an id, as a button that copies the whole of it.
pub fn id_to_copy(id: &str) -> Markup {
    html! { button.id type="button" data-copy=(id) title=(id) { (short(id)) } }
}

/// Names and values as the query of an address.
pub fn query_of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// The address of a record's page. `parents` are the parameters of its path beside its own.
pub fn address(
    organisation: &OrganisationWithKey,
    record: &PageRecord,
    id: Option<&str>,
    parents: &[(&str, &str)],
) -> String {
    let encoded = |id: &str| form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>();
    let id = id.map(|id| format!("/{}", encoded(id))).unwrap_or_default();
    format!(
        "/console/records/{}{id}?{}",
        record.name,
        query_of([("org", organisation.name.as_str())].into_iter().chain(parents.iter().copied()))
    )
}

/// The value of `field` of `item`.
pub fn cell(organisation: &OrganisationWithKey, field: &InputField, item: &Value, names: &KnownNames) -> Markup {
    let value = &item[&field.name];
    let linked = |record: &'static PageRecord, id: &str| {
        let name = names.find(record.name, id).unwrap_or_else(|| short(id));
        // A record within another one is found by the id of the other one.
        let parents: Vec<_> = parents(record, item).collect();
        html! { a href=(address(organisation, record, Some(id), &parents)) title=(id) { (name) } }
    };
    match (value, target(&field.name, item)) {
        (Value::Null, _) => html! { span.quiet { "–" } },
        (Value::String(id), Some(record)) => linked(record, id),
        (Value::Array(ids), Some(record)) if ids.iter().all(Value::is_string) => html! {
            @for id in ids.iter().filter_map(Value::as_str) { div { (linked(record, id)) } }
            @if ids.is_empty() { span.quiet { "none" } }
        },
        (Value::String(_), None) if field.input == FieldInput::Time => moment_of(value),
        (Value::String(id), None) if field.input == FieldInput::Id => id_to_copy(id),
        (Value::String(text), None) if field.is_state() => state(text),
        (Value::String(text), None) => html! { (cut(text)) },
        (Value::Bool(is_true), _) => html! { @if *is_true { "yes" } @else { span.quiet { "no" } } },
        (Value::Number(number), _) => html! { (number) },
        (other, _) => html! { code { (cut(&other.to_string())) } },
    }
}

/// The same with room: JSON on several lines, and texts as they are.
pub fn wide_cell(organisation: &OrganisationWithKey, field: &InputField, item: &Value, names: &KnownNames) -> Markup {
    let value = &item[&field.name];
    match value {
        Value::String(text) if cut(text) != *text => html! { div.text { (text) } },
        Value::Array(list) if list.is_empty() => html! { span.quiet { "none" } },
        Value::Object(members) if members.is_empty() => html! { span.quiet { "none" } },
        Value::Array(_) if target(&field.name, item).is_some() => cell(organisation, field, item, names),
        Value::Array(_) | Value::Object(_) => html! { pre tabindex="0" { (pretty(value)) } },
        _ => cell(organisation, field, item, names),
    }
}

/// The record that the member `name` of `item` refers to: by the name of the member, or by the kind in the member
/// beside it, as in `entity_id` and `entity_type`.
fn target(name: &str, item: &Value) -> Option<&'static PageRecord> {
    let kind = name.strip_suffix("_id").and_then(|name| item[format!("{name}_type")].as_str());
    match kind {
        Some(kind) => described::record(&kind.replace('_', "-")),
        None => described::referred(name),
    }
}

/// The members of `item` that are parameters of the path of `record`, without the id of the record itself.
pub fn parents<'a>(record: &'static PageRecord, item: &'a Value) -> impl Iterator<Item = (&'a str, &'a str)> {
    let of_read = record.read().or(record.list()).into_iter().flat_map(|operation| operation.route.parameters());
    let others = of_read.filter(|parameter| Some(*parameter) != record.own);
    others.filter_map(|parameter| Some((parameter, item[parameter].as_str()?)))
}
