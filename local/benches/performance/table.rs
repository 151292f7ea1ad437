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
        let now = Self::take(database)?;
        let stays = |item: &Value| but_heads && item["sk"]["S"] == LIST_HEAD;
        for (text, item) in &now.0 {
            if !stays(item) && !self.0.contains_key(text) {
                let request = json!({"TableName": TABLE_NAME, "Key": key(item)});
                database.delete_item(serde_json::from_value(request)?)?;
            }
        }
        for (text, item) in &self.0 {
            if !stays(item) && now.0.get(text) != Some(item) {
                let request = json!({"TableName": TABLE_NAME, "Item": item});
                database.put_item(serde_json::from_value(request)?)?;
            }
        }
        Ok(())
    }
}

/// What has to be done before the same event may come again, without looking through the table: what it removed is put back.
#[derive(Debug)]
pub struct Again(Option<Value>);

impl Again {
    /// For the operation `name`.
    pub fn of(stack: &Stack, name: &str, event: &str) -> Result<Self> {
        if !name.starts_with("delete-") {
            return Ok(Self(None));
        }
        let event: Value = serde_json::from_str(event)?;
        let id = event["path"].as_str().and_then(|path| path.rsplit('/').next()).ok_or("no path")?;
        let items = Snapshot::take(&stack.database)?.0;
        // Beside a record there may be others in its partition, which are numbered.
        let named = |item: &Value| {
            let (pk, sk) = (item["pk"]["S"].as_str(), item["sk"]["S"].as_str());
            pk.is_some_and(|pk| pk.ends_with(id)) && sk.is_some_and(|sk| !sk.contains('#'))
        };
        let mut items = items.into_values().filter(named);
        match (items.next(), items.next()) {
            (Some(item), None) => Ok(Self(Some(item))),
            _ => Err(format!("{name} does not remove one item").into()),
        }
    }

    /// Does it.
    pub fn prepare(&self, stack: &Stack) -> Result<()> {
        if let Some(item) = &self.0 {
            let request = json!({"TableName": TABLE_NAME, "Item": item});
            stack.database.put_item(serde_json::from_value(request)?)?;
        }
        Ok(())
    }
}

fn key(item: &Value) -> Value {
    json!({"pk": item["pk"], "sk": item["sk"]})
}
