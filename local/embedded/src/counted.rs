//! Counts the units of each call by partition. A call to a partition without units left gets DynamoDB's answer to a
//! throttled call.

use std::collections::HashMap;
use std::sync::PoisonError;

use dynoxide::actions::get_item::GetItemRequest;
use dynoxide::actions::query::QueryRequest;
use dynoxide::errors::{DynoxideError, Result};
use dynoxide::types::{
    AttributeValue, ConsumedCapacity, Item, TRANSACTIONAL_CAPACITY_FACTOR, item_size, read_capacity_units,
    read_capacity_units_with_consistency,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::capacity::Schema;
use crate::partitions::{Partition, Unit};
use crate::{Embedded, answer, request, text};

/// Why a call did nothing.
pub(crate) enum Refused {
    /// The error comes from the database.
    Database(DynoxideError),
    /// A partition has no units left in this second; this is the body of the answer.
    Throttled(Value),
}

impl From<DynoxideError> for Refused {
    fn from(error: DynoxideError) -> Self {
        Self::Database(error)
    }
}

type Answered = std::result::Result<String, Refused>;

/// A write to an item: by a call, by an action of a transaction, or as a part of a batch.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Writing {
    table_name: String,
    key: Option<Item>,
    item: Option<Item>,
    update_expression: Option<String>,
    expression_attribute_names: HashMap<String, String>,
    expression_attribute_values: Item,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Transaction {
    transact_items: Vec<Action>,
}

/// An action of a transaction.
#[derive(Deserialize)]
enum Action {
    ConditionCheck(Writing),
    Delete(Writing),
    Put(Writing),
    Update(Writing),
}

/// A write, and the item before it.
struct Before {
    table: String,
    key: Item,
    item: Option<Item>,
    /// Whether it only checks a condition.
    only_checks: bool,
    /// The partitions that it may write to.
    partitions: Vec<Partition>,
}

impl Embedded {
    /// The answer to a call; its units are counted.
    pub(crate) fn counted(&self, action: &str, body: &[u8]) -> Answered {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        match action {
            "GetItem" => self.get(request(body)?),
            "Query" => self.query(request(body)?),
            "PutItem" | "UpdateItem" | "DeleteItem" => self.write(action, body),
            "TransactWriteItems" => self.transact(body),
            "BatchGetItem" => self.batch(action, body, "UnprocessedKeys"),
            "BatchWriteItem" => self.batch(action, body, "UnprocessedItems"),
            // No function makes any other call.
            _ => Ok(answer(&self.database, action, body)?),
        }
    }

    fn get(&self, mut get: GetItemRequest) -> Answered {
        let partition = self.schema(&get.table_name)?.partition(Unit::Read, &get.key)?;
        self.admit([&partition])?;
        get.return_consumed_capacity = Some("TOTAL".to_owned());
        let got = self.database.get_item(get)?;
        self.partitions.take(&partition, units(got.consumed_capacity.as_ref()));
        Ok(text(&got)?)
    }

    fn query(&self, mut query: QueryRequest) -> Answered {
        let condition = query.key_condition_expression.clone().unwrap_or_default();
        let (names, values) = (&query.expression_attribute_names, &query.expression_attribute_values);
        let schema = self.schema(&query.table_name)?;
        let partition = schema.queried(query.index_name.as_deref(), &condition, names.as_ref(), values.as_ref())?;
        self.admit([&partition])?;
        query.return_consumed_capacity = Some("TOTAL".to_owned());
        let found = self.database.query(query)?;
        self.partitions.take(&partition, units(found.consumed_capacity.as_ref()));
        Ok(text(&found)?)
    }

    fn write(&self, action: &str, body: &[u8]) -> Answered {
        let before = self.before(request(body)?, false)?;
        self.admit(&before.partitions)?;
        let answered = answer(&self.database, action, body);
        match &answered {
            Ok(_) => self.take_written(&before, 1.0)?,
            Err(DynoxideError::ConditionalCheckFailedException(..)) => self.take_checked(&before, 1.0)?,
            Err(_) => {}
        }
        Ok(answered?)
    }

    fn transact(&self, body: &[u8]) -> Answered {
        let Transaction { transact_items } = request(body)?;
        let before = transact_items.into_iter().map(|action| match action {
            Action::ConditionCheck(check) => self.before(check, true),
            Action::Delete(writing) | Action::Put(writing) | Action::Update(writing) => self.before(writing, false),
        });
        let before: Vec<Before> = before.collect::<Result<_>>()?;
        let full: Vec<Option<Partition>> = before.iter().map(|one| self.full(&one.partitions)).collect();
        if full.iter().any(Option::is_some) {
            return Err(Refused::Throttled(cancelled(&full)));
        }
        let times = TRANSACTIONAL_CAPACITY_FACTOR;
        match answer(&self.database, "TransactWriteItems", body) {
            Ok(text) if was_done_before(&text) => {
                // A transaction that comes again with the same token is read, and not written.
                for one in &before {
                    let units = times * read_capacity_units(one.item.as_ref().map(item_size).unwrap_or_default());
                    self.partitions.take(&self.schema(&one.table)?.partition(Unit::Read, &one.key)?, units);
                }
                Ok(text)
            }
            Ok(text) => {
                before.iter().try_for_each(|one| self.take_written(one, times))?;
                Ok(text)
            }
            Err(error) => {
                // Each item was read twice: to prepare, and to cancel.
                if matches!(error, DynoxideError::TransactionCanceledException(..)) {
                    before.iter().try_for_each(|one| self.take_checked(one, times))?;
                }
                Err(error.into())
            }
        }
    }

    /// A batch. Its parts for partitions without units left stay unprocessed.
    fn batch(&self, action: &str, body: &[u8], unprocessed: &str) -> Answered {
        let mut document: Value = request(body)?;
        let none = || DynoxideError::ValidationException("there are no RequestItems".to_owned());
        let tables = document["RequestItems"].as_object_mut().ok_or_else(none)?;
        let (mut held_back, mut refused) = (Map::new(), None);
        for (table, wanted) in &mut *tables {
            let consistent = wanted["ConsistentRead"] == true;
            let (mut admitted, mut held) = (Vec::new(), Vec::new());
            for part in parts(wanted) {
                let taken = self.taken_by_part(table, &part, consistent)?;
                if let Some(full) = self.full(taken.iter().map(|(partition, _)| partition)) {
                    refused = Some(full);
                    held.push(part);
                } else {
                    self.take(&taken);
                    admitted.push(part);
                }
            }
            if !held.is_empty() {
                let mut rest = wanted.clone();
                *list(&mut rest) = held.into();
                held_back.insert(table.clone(), rest);
            }
            *list(wanted) = admitted.into();
        }
        tables.retain(|_, wanted| !list(wanted).as_array().is_some_and(Vec::is_empty));
        match refused {
            None => Ok(answer(&self.database, action, body)?),
            Some(full) if tables.is_empty() => Err(Refused::Throttled(throttled(&full))),
            Some(_) => {
                let answered = answer(&self.database, action, document.to_string().as_bytes())?;
                let mut answered: Value = request(answered.as_bytes())?;
                answered[unprocessed] = held_back.into();
                Ok(answered.to_string())
            }
        }
    }

    /// The units of a part of a batch: a key that is read, or an item that is put or removed.
    fn taken_by_part(&self, table: &str, part: &Value, consistent: bool) -> Result<Vec<(Partition, f64)>> {
        let schema = self.schema(table)?;
        let write = if part["PutRequest"].is_null() { &part["DeleteRequest"] } else { &part["PutRequest"] };
        if write.is_null() {
            let key: Item = request(part.to_string().as_bytes())?;
            let size = self.image(table, &key)?.as_ref().map(item_size).unwrap_or_default();
            let units = read_capacity_units_with_consistency(size, consistent);
            return Ok(vec![(schema.partition(Unit::Read, &key)?, units)]);
        }
        let Writing { key, item, .. } = request(write.to_string().as_bytes())?;
        let key = schema.key(&key.or_else(|| item.clone()).unwrap_or_default());
        schema.written(&key, (self.image(table, &key)?.as_ref(), item.as_ref()), 1.0)
    }

    /// A write before it is made.
    fn before(&self, writing: Writing, only_checks: bool) -> Result<Before> {
        let schema = self.schema(&writing.table_name)?;
        let key = schema.key(writing.key.as_ref().or(writing.item.as_ref()).unwrap_or(&Item::new()));
        let old = self.image(&writing.table_name, &key)?;
        let partitions = if let Some(expression) = &writing.update_expression {
            let resolved = |word| writing.expression_attribute_names.get(word).map_or(word, String::as_str);
            let words = expression.split(|character: char| !character.is_alphanumeric() && !"#_".contains(character));
            let names: Vec<&str> = words.map(resolved).collect();
            let texts = writing.expression_attribute_values.values().filter_map(|value| match value {
                AttributeValue::S(text) => Some(text.as_str()),
                _ => None,
            });
            let values: Vec<&str> = texts.collect();
            let of_table = schema.partition(Unit::Write, &key)?;
            std::iter::once(of_table).chain(schema.updated(old.as_ref(), &names, &values)).collect()
        } else if only_checks {
            vec![schema.partition(Unit::Write, &key)?]
        } else {
            let written = schema.written(&key, (old.as_ref(), writing.item.as_ref()), 1.0)?;
            written.into_iter().map(|(partition, _)| partition).collect()
        };
        Ok(Before { table: writing.table_name, key, item: old, only_checks, partitions })
    }

    fn take(&self, taken: &[(Partition, f64)]) {
        for (partition, units) in taken {
            self.partitions.take(partition, *units);
        }
    }

    /// Counts a write that was made.
    fn take_written(&self, before: &Before, times: f64) -> Result<()> {
        if before.only_checks {
            return self.take_checked(before, times);
        }
        let new = self.image(&before.table, &before.key)?;
        let schema = self.schema(&before.table)?;
        let taken = schema.written(&before.key, (before.item.as_ref(), new.as_ref()), times)?;
        self.take(&taken);
        Ok(())
    }

    /// Counts a write that only checked its item.
    fn take_checked(&self, before: &Before, times: f64) -> Result<()> {
        let (partition, units) = self.schema(&before.table)?.checked(&before.key, before.item.as_ref(), times)?;
        self.partitions.take(&partition, units);
        Ok(())
    }

    /// The item of `key` as it is now.
    fn image(&self, table: &str, key: &Item) -> Result<Option<Item>> {
        let get = GetItemRequest {
            table_name: table.to_owned(),
            key: key.clone(),
            consistent_read: Some(true),
            ..GetItemRequest::default()
        };
        Ok(self.database.get_item(get)?.item)
    }

    fn schema(&self, table: &str) -> Result<&Schema> {
        if let Some(schema) = self.schema.get() {
            return Ok(schema);
        }
        let schema = Schema::of(&self.database, table)?;
        Ok(self.schema.get_or_init(|| schema))
    }

    /// Refuses a call that needs a partition without units left.
    fn admit<'a>(&self, partitions: impl IntoIterator<Item = &'a Partition>) -> std::result::Result<(), Refused> {
        self.full(partitions).map_or(Ok(()), |full| Err(Refused::Throttled(throttled(&full))))
    }

    /// The first of these partitions without units left.
    fn full<'a>(&self, partitions: impl IntoIterator<Item = &'a Partition>) -> Option<Partition> {
        partitions.into_iter().find(|partition| self.partitions.refuses(partition)).cloned()
    }
}

/// The list of the requests of a batch for a table.
fn list(wanted: &mut Value) -> &mut Value {
    if wanted.is_array() { wanted } else { &mut wanted["Keys"] }
}

/// Takes the parts of a batch for a table.
fn parts(wanted: &mut Value) -> Vec<Value> {
    list(wanted).as_array_mut().map(std::mem::take).unwrap_or_default()
}

/// The units in an answer.
fn units(consumed: Option<&ConsumedCapacity>) -> f64 {
    consumed.map_or(0.0, |consumed| consumed.capacity_units)
}

/// Whether the answer to a transaction says that it was made by an earlier call: then the answer has read units.
fn was_done_before(answered: &str) -> bool {
    #[derive(Deserialize)]
    struct TransactionAnswer {
        #[serde(rename = "ConsumedCapacity", default)]
        consumed: Vec<ConsumedCapacity>,
    }
    let answer = serde_json::from_str::<TransactionAnswer>(answered);
    answer.is_ok_and(|answer| answer.consumed.iter().any(|consumed| consumed.read_capacity_units.is_some()))
}

/// DynamoDB's message if a partition of a table without provisioned capacity has no units left.
fn message(full: &Partition) -> &'static str {
    if full.index.is_some() {
        "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is automatically scaling your index so \
         please try again shortly."
    } else {
        "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try \
         again shortly. If exceptions persist, check if you have a hot key."
    }
}

/// The body of the answer to a refused call, or to a completely refused batch.
fn throttled(full: &Partition) -> Value {
    let of = if full.index.is_some() { "Index" } else { "Table" };
    let reason = format!("{of}{:?}KeyRangeThroughputExceeded", full.unit);
    let resource = full.index.as_ref().map_or_else(|| "table".to_owned(), |index| format!("table/index/{index}"));
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException",
        "message": message(full),
        "throttlingReasons": [{"reason": reason, "resource": resource}],
    })
}

/// The body of the answer to a transaction, with a reason for each action.
fn cancelled(full: &[Option<Partition>]) -> Value {
    let code = |full: &Option<Partition>| if full.is_some() { "ThrottlingError" } else { "None" };
    let reason = |full: &Option<Partition>| match full {
        Some(full) => json!({"Code": "ThrottlingError", "Message": message(full)}),
        None => json!({"Code": "None"}),
    };
    let codes = full.iter().map(code).collect::<Vec<_>>().join(", ");
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"),
        "CancellationReasons": full.iter().map(reason).collect::<Vec<_>>(),
    })
}
