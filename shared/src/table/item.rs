//! Items: the form of a record in the table.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::table::error::{TableError, broken};
use crate::table::keys::{Key, PK, SK};

/// An item in the type of the SDK.
pub type Item = HashMap<String, AttributeValue>;

/// The key under which `serde_json` passes a raw value; see [`to_item`].
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// `value` as the text of an attribute.
#[expect(clippy::needless_pass_by_value, reason = "most are copied, and the others are given as references")]
pub fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

/// `value` as a number.
#[expect(clippy::needless_pass_by_value, reason = "all are copied")]
pub fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// The null value of an attribute.
pub const fn null() -> AttributeValue {
    AttributeValue::Null(true)
}

/// Values of an expression by their names.
pub fn values<const N: usize>(values: [(&'static str, AttributeValue); N]) -> Item {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// `record` as an item at `key`, with free-form JSON as text.
///
/// # Errors
/// [`TableError::Broken`] where the record cannot be an item. Every record of the service can.
pub fn to_item(key: &Key, record: &impl Serialize) -> Result<Item, TableError> {
    let mut item: Item = serde_dynamo::to_item(record).map_err(broken)?;
    item.values_mut().for_each(flatten);
    item.extend(key.attributes());
    Ok(item)
}

/// Turns free-form JSON into text.
fn flatten(value: &mut AttributeValue) {
    if let AttributeValue::M(map) = value
        && let Some(text) = map.remove(RAW_VALUE)
    {
        *value = text;
    }
}

/// Adds an attribute that answers do not contain. A null value adds nothing, since a key of an index cannot be null.
///
/// # Errors
/// [`TableError::Broken`] where the value cannot be an attribute.
pub fn hide(item: &mut Item, name: &str, value: &impl Serialize) -> Result<(), TableError> {
    let value = attribute(value)?;
    if !value.is_null() {
        item.insert(name.to_owned(), value);
    }
    Ok(())
}

/// `value` as an attribute, with free-form JSON as text.
///
/// # Errors
/// [`TableError::Broken`] where it cannot be one.
pub(crate) fn attribute(value: &impl Serialize) -> Result<AttributeValue, TableError> {
    let mut value: AttributeValue = serde_dynamo::to_attribute_value(value).map_err(broken)?;
    flatten(&mut value);
    Ok(value)
}

/// The id of the record to which a pointer leads, or which a marker names.
///
/// # Errors
/// [`TableError::Broken`] where the item names none.
pub(crate) fn target_id(item: &Item) -> Result<Uuid, TableError> {
    let id = item.get("id").and_then(|id| id.as_s().ok()?.parse().ok());
    id.ok_or_else(|| TableError::Broken("a marker without an id".into()))
}

/// The record in `item`.
///
/// # Errors
/// [`TableError::Broken`] where the item is another record.
pub fn from_item<R: DeserializeOwned>(item: Item) -> Result<R, TableError> {
    serde_dynamo::from_item(item).map_err(broken)
}

/// The key of `item`.
pub fn key_of(item: &Item) -> Option<Key> {
    Some(Key { pk: item.get(PK)?.as_s().ok()?.clone(), sk: item.get(SK)?.as_s().ok()?.clone() })
}

/// Whether `item` has this id, if one is given.
pub(crate) fn has_id(item: &Item, id: Option<Uuid>) -> bool {
    id.is_none_or(|id| item.get("id") == Some(&text(id)))
}

/// The records in `items`. An unreadable one is left out and logged, so that the rest of the page is still answered. An
/// alarm counts these lines.
pub(crate) fn readable<R: DeserializeOwned>(items: impl IntoIterator<Item = Item>) -> Vec<R> {
    let read = |item: Item| {
        let key = key_of(&item);
        from_item(item).inspect_err(|error| unreadable(key.as_ref(), error)).ok()
    };
    items.into_iter().filter_map(read).collect()
}

/// Logs that the item at `key` cannot be read.
pub(crate) fn unreadable(key: Option<&Key>, cause: &dyn std::fmt::Display) {
    let (pk, sk) = key.map(|key| (key.pk.as_str(), key.sk.as_str())).unwrap_or_default();
    tracing::error!(pk, sk, %cause, "unreadable item");
}
