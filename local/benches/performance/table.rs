//! Restores the table: every measured call finds it in the state in which the first call found it.

use std::collections::HashMap;

use dynoxide::actions::delete_item::DeleteItemRequest;
use dynoxide::actions::put_item::PutItemRequest;
use dynoxide::actions::scan::ScanRequest;
use dynoxide::{AttributeValue, Database};
use local::Stack;
use local::database::TABLE_NAME;
use shared::table::keys::LIST_HEAD;

use crate::Result;

type Item = HashMap<String, AttributeValue>;
/// Partition key and sort key.
type Key = [String; 2];

/// The content of the table at one time.
#[derive(Debug)]
pub struct Snapshot(HashMap<Key, Item>);

impl Snapshot {
    /// The content of the table now.
    pub fn take(database: &Database) -> Result<Self> {
        let (mut items, mut next) = (HashMap::new(), None);
        loop {
            let table_name = TABLE_NAME.to_owned();
            let page = database.scan(ScanRequest { table_name, exclusive_start_key: next, ..Default::default() })?;
            items.extend(page.items.unwrap_or_default().into_iter().map(|item| (key_of(&item), item)));
            next = page.last_evaluated_key;
            if next.is_none() {
                return Ok(Self(items));
            }
        }
    }

    /// Restores the table, except the heads of lists if `but_heads` says so: a process that has appended knows their
    /// position, so they must not go back.
    pub fn restore(&self, database: &Database, but_heads: bool) -> Result<()> {
        let changed = self.changed(database)?.into_iter();
        let mut changed = changed.filter(|([_, sk], _)| !(but_heads && sk == LIST_HEAD));
        changed.try_for_each(|(key, item)| write(database, &key, item.as_ref()))
    }

    /// The keys of the items that differ, and their old content, if they existed.
    fn changed(&self, database: &Database) -> Result<Vec<(Key, Option<Item>)>> {
        let now = Self::take(database)?.0;
        let new = now.keys().filter(|key| !self.0.contains_key(*key)).map(|key| (key.clone(), None));
        let others = self.0.iter().filter(|(key, item)| now.get(*key) != Some(*item));
        Ok(new.chain(others.map(|(key, item)| (key.clone(), Some(item.clone())))).collect())
    }
}

/// Puts the item at `key`, or removes it where there is none.
fn write(database: &Database, key: &Key, item: Option<&Item>) -> Result<()> {
    let table_name = TABLE_NAME.to_owned();
    if let Some(item) = item {
        database.put_item(PutItemRequest { table_name, item: item.clone(), ..Default::default() })?;
    } else {
        let key = ["pk", "sk"].map(str::to_owned).into_iter().zip(key.clone().map(AttributeValue::S)).collect();
        database.delete_item(DeleteItemRequest { table_name, key, ..Default::default() })?;
    }
    Ok(())
}

/// Prepares the table for another execution of the same event: puts removed items back. The event changes the same
/// items each time, so the table is compared only once.
#[derive(Debug)]
pub struct Again {
    before: Option<Snapshot>,
    changed: Vec<(Key, Option<Item>)>,
}

impl Again {
    /// The preparation for the operation `name`.
    pub fn of(stack: &Stack, name: &str) -> Result<Self> {
        let before = if name.starts_with("delete-") { Some(Snapshot::take(&stack.database)?) } else { None };
        Ok(Self { before, changed: Vec::new() })
    }

    /// Prepares the table.
    pub fn prepare(&mut self, stack: &Stack) -> Result<()> {
        if let Some(before) = self.before.take() {
            self.changed = before.changed(&stack.database)?;
        }
        self.changed.iter().try_for_each(|(key, item)| write(&stack.database, key, item.as_ref()))
    }
}

fn key_of(item: &Item) -> Key {
    let text = |name: &str| match item.get(name) {
        Some(AttributeValue::S(text)) => text.clone(),
        _ => String::new(),
    };
    ["pk", "sk"].map(text)
}
