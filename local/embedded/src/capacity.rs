//! The units that a write takes of each partition, from the item before and after the write.
//!
//! An answer has only the sum of the units of a call. This file splits the sum by partition, with the same functions
//! with which the database makes it. A test compares the sums with the answers.

use std::collections::HashMap;

use dynoxide::Database;
use dynoxide::actions::describe_table::DescribeTableRequest;
use dynoxide::errors::{DynoxideError, Result};
use dynoxide::types::{
    AttributeValue, Item, KeySchemaElement, KeyType, Projection, ProjectionType, item_size, table_write_capacity_units,
    write_capacity_units,
};

use crate::partitions::{Partition, Unit};

/// The keys of the table, and its indexes.
#[derive(Debug)]
pub(crate) struct Schema {
    key: Key,
    indexes: Vec<Index>,
}

/// The attributes of a primary key.
#[derive(Debug)]
struct Key {
    partition: String,
    sort: Option<String>,
}

/// A global secondary index.
#[derive(Debug)]
struct Index {
    name: String,
    key: Key,
    projection: Projection,
}

/// The part of an item that an index contains.
struct Entry {
    key: (String, Option<String>),
    item: Item,
}

impl Key {
    fn of(elements: &[KeySchemaElement]) -> Self {
        let named = |kind: KeyType| elements.iter().find(|element| element.key_type == kind);
        let name = |kind| named(kind).map(|element| element.attribute_name.clone());
        Self { partition: name(KeyType::HASH).unwrap_or_default(), sort: name(KeyType::RANGE) }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.partition).chain(&self.sort)
    }

    /// Partition key and sort key of `item`, if it has both.
    fn values(&self, item: &Item) -> Option<(String, Option<String>)> {
        let sort = match &self.sort {
            Some(sort) => Some(text(item.get(sort)?)),
            None => None,
        };
        Some((text(item.get(&self.partition)?), sort))
    }
}

/// A key's value, as text.
fn text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

impl Index {
    fn entry(&self, table: &Key, item: &Item) -> Option<Entry> {
        let key = self.key.values(item)?;
        let further = self.projection.non_key_attributes.as_deref().unwrap_or_default();
        let holds = |name: &String| match self.projection.projection_type {
            None | Some(ProjectionType::ALL) => true,
            _ => table.names().chain(self.key.names()).chain(further).any(|held| held == name),
        };
        let held = item.iter().filter(|(name, _)| holds(name));
        Some(Entry { key, item: held.map(|(name, value)| (name.clone(), value.clone())).collect() })
    }

    /// The units that a write takes of the index, by its partition keys. An entry that stays in its place costs the
    /// larger of its old and its new size; one that moves is removed and added, and each of the two costs units of its
    /// partition.
    fn written(&self, table: &Key, old: Option<&Item>, new: Option<&Item>) -> Vec<(String, f64)> {
        let entry = |item: Option<&Item>| item.and_then(|item| self.entry(table, item));
        let units = |entry: &Entry| write_capacity_units(item_size(&entry.item));
        match (entry(old), entry(new)) {
            (Some(old), Some(new)) if old.key == new.key && old.item == new.item => Vec::new(),
            (Some(old), Some(new)) if old.key == new.key => vec![(new.key.0.clone(), units(&old).max(units(&new)))],
            (old, new) => {
                let both = old.into_iter().chain(new);
                both.map(|entry| (entry.key.0.clone(), units(&entry))).collect()
            }
        }
    }
}

impl Schema {
    /// The schema of `table`.
    pub(crate) fn of(database: &Database, table: &str) -> Result<Self> {
        let described = database.describe_table(DescribeTableRequest { table_name: table.to_owned() })?.table;
        let index = |index: dynoxide::actions::GlobalSecondaryIndexDescription| Index {
            name: index.index_name,
            key: Key::of(&index.key_schema),
            projection: index.projection,
        };
        let indexes = described.global_secondary_indexes.into_iter().flatten().map(index).collect();
        Ok(Self { key: Key::of(&described.key_schema), indexes })
    }

    /// The primary key of `item`.
    pub(crate) fn key(&self, item: &Item) -> Item {
        let of = |name: &String| item.get(name).map(|value| (name.clone(), value.clone()));
        self.key.names().filter_map(of).collect()
    }

    /// The partition of the table that contains `item`.
    pub(crate) fn partition(&self, unit: Unit, item: &Item) -> Result<Partition> {
        let key = item.get(&self.key.partition).map(text);
        let key = key.ok_or_else(|| DynoxideError::ValidationException("there is no partition key".to_owned()))?;
        Ok(Partition { unit, index: None, key })
    }

    /// The units of a write that changes `old` to `new`; the units of the table count `times` as much, while an index
    /// costs the same in a transaction.
    pub(crate) fn written(
        &self,
        key: &Item,
        (old, new): (Option<&Item>, Option<&Item>),
        times: f64,
    ) -> Result<Vec<(Partition, f64)>> {
        let of_table = times * table_write_capacity_units(old.map(item_size), new.map(item_size));
        let mut taken = vec![(self.partition(Unit::Write, key)?, of_table)];
        for index in &self.indexes {
            let of_index =
                |(key, units)| (Partition { unit: Unit::Write, index: Some(index.name.clone()), key }, units);
            taken.extend(index.written(&self.key, old, new).into_iter().map(of_index));
        }
        Ok(taken)
    }

    /// The units of a write without an effect: its condition failed, or it only checks a condition.
    pub(crate) fn checked(&self, key: &Item, item: Option<&Item>, times: f64) -> Result<(Partition, f64)> {
        let units = times * write_capacity_units(item.map(item_size).unwrap_or_default());
        Ok((self.partition(Unit::Write, key)?, units))
    }

    /// The partitions of indexes that an update may write to: the ones of `old`, and if it names a key of the index,
    /// the ones whose key is among its values.
    pub(crate) fn updated(&self, old: Option<&Item>, names: &[&str], values: &[&str]) -> Vec<Partition> {
        let moved = self.indexes.iter().filter(|index| index.key.names().any(|key| names.contains(&key.as_str())));
        let partitions = moved.flat_map(|index| {
            let was = old.and_then(|item| index.entry(&self.key, item)).map(|entry| entry.key.0);
            let keys = was.into_iter().chain(values.iter().map(|value| (*value).to_owned()));
            keys.map(|key| Partition { unit: Unit::Write, index: Some(index.name.clone()), key })
        });
        partitions.collect()
    }

    /// The partition that a query reads.
    pub(crate) fn queried(
        &self,
        index: Option<&str>,
        condition: &str,
        names: Option<&HashMap<String, String>>,
        values: Option<&HashMap<String, AttributeValue>>,
    ) -> Result<Partition> {
        let of_index = |name: &str| self.indexes.iter().find(|index| index.name == name).map(|index| &index.key);
        let wanted = index.map_or(Some(&self.key), of_index).map(|key| key.partition.as_str());
        let words: Vec<&str> = condition.split_whitespace().collect();
        let is_wanted = |name: &str| {
            let name = names.and_then(|names| names.get(name)).map_or(name, String::as_str);
            Some(name) == wanted
        };
        let value = words.windows(3).find(|words| words[1] == "=" && is_wanted(words[0])).map(|words| words[2]);
        let key = value.and_then(|value| values?.get(value)).map(text);
        let none = || DynoxideError::ValidationException(format!("{condition} names no partition key"));
        Ok(Partition { unit: Unit::Read, index: index.map(str::to_owned), key: key.ok_or_else(none)? })
    }
}
