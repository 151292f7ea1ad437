//! The table as it was: every measured call finds what the first one found.

use std::collections::HashMap;

use dynoxide::Database;
use local::Stack;
use local::database::TABLE_NAME;
use serde_json::{Value, json};
use shared::table::keys::LIST_HEAD;

use crate::Result;

/// What was in the table.
#[derive(Debug)]
pub struct Snapshot(HashMap<String, Value>);

impl Snapshot {
    /// What is in the table now.
    pub fn take(database: &Database) -> Result<Self> {
        let mut items = HashMap::new();
        let mut start = Value::Null;
        loop {
            let mut request = json!({"TableName": TABLE_NAME});
            if !start.is_null() {
                request["ExclusiveStartKey"] = start;
            }
            let answer = serde_json::to_value(database.scan(serde_json::from_value(request)?)?)?;
            for item in answer["Items"].as_array().into_iter().flatten() {
                items.insert(key(item).to_string(), item.clone());
            }
            start = answer["LastEvaluatedKey"].clone();
            if start.is_null() {
                return Ok(Self(items));
            }
        }
    }

    /// Makes the table what it was, but for the heads of lists where `but_heads` says so: a process that appended once knows where they
    /// stand, and so they must not go back.
    pub fn restore(&self, database: &Database, but_heads: bool) -> Result<()> {
        let changed = self.changed(database)?.into_iter();
        let mut changed = changed.filter(|(key, _)| !(but_heads && key["sk"]["S"] == LIST_HEAD));
        changed.try_for_each(|(key, item)| write(database, &key, item.as_ref()))
    }

    /// The keys of the items that are not what they were, and what they were, if they were there.
    fn changed(&self, database: &Database) -> Result<Vec<(Value, Option<Value>)>> {
        let now = Self::take(database)?.0;
        let new = now.iter().filter(|(text, _)| !self.0.contains_key(*text)).map(|(_, item)| (key(item), None));
        let others = self.0.iter().filter(|(text, item)| now.get(*text) != Some(*item));
        Ok(new.chain(others.map(|(_, item)| (key(item), Some(item.clone())))).collect())
    }
}

/// Puts the item at `key`, or removes it where there is none.
fn write(database: &Database, key: &Value, item: Option<&Value>) -> Result<()> {
    match item {
        Some(item) => {
            database.put_item(serde_json::from_value(json!({"TableName": TABLE_NAME, "Item": item}))?)?;
        }
        None => {
            database.delete_item(serde_json::from_value(json!({"TableName": TABLE_NAME, "Key": key}))?)?;
        }
    }
    Ok(())
}

/// What has to be done before the same event may come again: what it removed is put back. It changes the same items each time, so the
/// table is looked through once.
#[derive(Debug)]
pub struct Again {
    before: Option<Snapshot>,
    changed: Vec<(Value, Option<Value>)>,
}

impl Again {
    /// For the operation `name`.
    pub fn of(stack: &Stack, name: &str) -> Result<Self> {
        let before = if name.starts_with("delete-") { Some(Snapshot::take(&stack.database)?) } else { None };
        Ok(Self { before, changed: Vec::new() })
    }

    /// Does it.
    pub fn prepare(&mut self, stack: &Stack) -> Result<()> {
        if let Some(before) = self.before.take() {
            self.changed = before.changed(&stack.database)?;
        }
        self.changed.iter().try_for_each(|(key, item)| write(&stack.database, key, item.as_ref()))
    }
}

fn key(item: &Value) -> Value {
    json!({"pk": item["pk"], "sk": item["sk"]})
}
