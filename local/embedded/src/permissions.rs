//! The permissions of IAM that a call of the database needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The partition keys that begin as `key` does, as the condition of a statement names them: `ORG#*`.
fn pattern(key: &str) -> String {
    key.split_once('#').map_or_else(|| key.to_owned(), |(kind, _)| format!("{kind}#*"))
}

/// The parts of a call on which its permissions depend.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct CallBody {
    #[serde(alias = "Item")]
    key: WrittenKey,
    index_name: Option<String>,
    transact_items: Vec<Action>,
    request_items: BTreeMap<String, Vec<BatchAction>>,
}

/// The item that an action writes, or its key.
#[derive(Deserialize)]
struct Written {
    #[serde(rename = "Key", alias = "Item")]
    key: WrittenKey,
}

/// The partition key of an item.
#[derive(Default, Deserialize)]
struct WrittenKey {
    #[serde(default)]
    pk: BTreeMap<String, String>,
}

impl WrittenKey {
    /// The permission for `action` on the item.
    fn permission(&self, action: &str) -> String {
        let pk = self.pk.get("S").map(String::as_str).unwrap_or_default();
        format!("dynamodb:{action} {}", pattern(pk))
    }
}

/// An action of a transaction.
#[derive(Deserialize)]
enum Action {
    ConditionCheck(Written),
    Delete(Written),
    Get(IgnoredAny),
    Put(Written),
    Update(Written),
}

/// An action of a batch.
#[derive(Deserialize)]
enum BatchAction {
    DeleteRequest(Written),
    PutRequest(Written),
}

/// The permissions for a call of the database. A transaction needs the permissions of its actions, and none of its own.
/// A write needs the permission for the partition key of its item, a read of an index the permission for the index.
pub fn of_call(action: &str, body: Option<&[u8]>) -> BTreeSet<String> {
    let is_single = ["DeleteItem", "PutItem", "UpdateItem"].contains(&action);
    let is_looked_into = is_single || action == "BatchWriteItem" || action == "Query" || action.starts_with("Transact");
    let body = body.filter(|_| is_looked_into).and_then(|body| serde_json::from_slice(body).ok());
    let CallBody { key, index_name, transact_items, request_items } = body.unwrap_or_default();
    if is_single {
        return [key.permission(action)].into();
    }
    if action == "BatchWriteItem" {
        let of_item = |each: &BatchAction| match each {
            BatchAction::DeleteRequest(item) | BatchAction::PutRequest(item) => item.key.permission(action),
        };
        return request_items.values().flatten().map(of_item).collect();
    }
    if !action.starts_with("Transact") {
        let index = index_name.map(|index| format!(" index/{index}"));
        return [format!("dynamodb:{action}{}", index.unwrap_or_default())].into();
    }
    let of_item = |each: &Action| match each {
        Action::ConditionCheck(item) => item.key.permission("ConditionCheckItem"),
        Action::Delete(item) => item.key.permission("DeleteItem"),
        Action::Get(_) => "dynamodb:GetItem".to_owned(),
        Action::Put(item) => item.key.permission("PutItem"),
        Action::Update(item) => item.key.permission("UpdateItem"),
    };
    transact_items.iter().map(of_item).collect()
}
