//! The calls of the SDK, each in one place, with what they cost and how they fail. Nothing outside this file calls it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, ConsumedCapacity, Delete, KeysAndAttributes, Put, PutRequest,
    ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, WriteRequest,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use futures_util::future::try_join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::records::api_key::{ApiKeyRecord, KeyHash};
use crate::request::error::chain;
use crate::runtime::meter::{Meter, Unit};
use crate::table::TableError;
use crate::table::keys::{DUE_INDEX, Key, PK, SK, api_key, listed_api_key};
use crate::table::wire::{Answer, Record, Rows};
use crate::values::id::{ApiKeyId, OrgId};
use crate::values::time::Timestamp;

/// An item as the SDK has it.
pub type Item = HashMap<String, AttributeValue>;

/// The most actions of a transaction.
pub const TRANSACTION_LIMIT: usize = 100;
/// The most keys of a batch get.
pub const BATCH_GET_LIMIT: usize = 100;
/// The most items of a batch write.
pub const BATCH_WRITE_LIMIT: usize = 25;

/// How often a call is repeated that met another transaction, or that left something unprocessed.
const ROUNDS: u32 = 8;
/// The key under which `serde_json` hands over a raw value; see [`to_item`].
const RAW_VALUE: &str = "$serde_json::private::RawValue";
/// Where the listing of an organisation's keys says under which hash a key is found.
const KEY_HASH: &str = "key_hash";
const EXISTS: &str = "attribute_exists(pk)";

/// The table. Clones share the connection; each request has one with a meter of its own.
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    table_name: Arc<str>,
    meter: Meter,
    heads: Heads,
}

/// The next ordinal of the lists that this process appended to, as far as it knows.
type Heads = Arc<Mutex<HashMap<String, u32>>>;

/// One action of a transaction. In an expression `#name` stands for the attribute `name`, which may then be a word of DynamoDB's own.
#[derive(Debug, Clone)]
pub enum Write {
    /// Puts an item.
    Put {
        /// The item.
        item: Item,
        /// `ConditionExpression`.
        condition: Option<&'static str>,
        /// Values in it.
        values: Item,
    },
    /// Requires something of an item.
    Check {
        /// The item.
        key: Key,
        /// `ConditionExpression`.
        condition: &'static str,
        /// Values in it.
        values: Item,
    },
    /// Changes an item.
    Update {
        /// The item.
        key: Key,
        /// `UpdateExpression`.
        expression: Cow<'static, str>,
        /// `ConditionExpression`.
        condition: Option<&'static str>,
        /// Values in both.
        values: Item,
    },
    /// Removes an item.
    Delete {
        /// The item.
        key: Key,
        /// `ConditionExpression`.
        condition: Option<&'static str>,
        /// Values in it.
        values: Item,
    },
}

impl Write {
    /// Puts `item`, whatever was there before.
    pub fn put(item: Item) -> Self {
        Self::Put { item, condition: None, values: Item::new() }
    }

    /// Puts `item` where there is none yet.
    pub fn create(item: Item) -> Self {
        Self::Put { item, condition: Some("attribute_not_exists(pk)"), values: Item::new() }
    }

    /// Requires that the item of `key` is there, and has this id where one is given.
    pub fn check(key: Key, id: Option<Uuid>) -> Self {
        let values = id.map(|id| (":id".to_owned(), text(id))).into_iter().collect();
        Self::Check { key, condition: if id.is_some() { "id = :id" } else { EXISTS }, values }
    }
}

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

/// No value, which an attribute may have.
pub const fn null() -> AttributeValue {
    AttributeValue::Null(true)
}

/// Values of an expression by their names.
pub fn values<const N: usize>(values: [(&'static str, AttributeValue); N]) -> Item {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What each `#name` of `expressions` stands for; DynamoDB wants none at all where there is none.
fn names<'a>(expressions: impl IntoIterator<Item = &'a str>) -> Option<HashMap<String, String>> {
    let starts = expressions.into_iter().flat_map(|expression| expression.split('#').skip(1));
    let end = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    let names: HashMap<_, _> =
        starts.filter_map(|start| start.split(end).next()).map(|name| (format!("#{name}"), name.to_owned())).collect();
    (!names.is_empty()).then_some(names)
}

fn some(values: &Item) -> Option<Item> {
    (!values.is_empty()).then(|| values.clone())
}

/// Why a transaction did nothing.
#[derive(Debug)]
pub enum Cancelled {
    /// The condition of the action at this index did not hold; the item as it was, where there was one.
    Condition(usize, Option<Item>),
    /// Anything else.
    Failed(TableError),
}

impl From<Cancelled> for TableError {
    fn from(cancelled: Cancelled) -> Self {
        match cancelled {
            Cancelled::Condition(..) => Self::Missing,
            Cancelled::Failed(error) => error,
        }
    }
}

impl Store {
    /// The table `table_name`.
    pub fn new(client: Client, table_name: String) -> Self {
        Self { client, table_name: table_name.into(), meter: Meter::default(), heads: Heads::default() }
    }

    /// The same table, whose calls `meter` counts.
    #[must_use]
    pub fn metered(&self, meter: Meter) -> Self {
        Self { meter, ..self.clone() }
    }

    /// Opens the connection, by reading an item that is not there.
    ///
    /// # Errors
    /// [`TableError`], where the table does not answer.
    pub async fn warm_up(&self) -> Result<(), TableError> {
        let key = Key { pk: "WARM_UP".into(), sk: "WARM_UP".into() };
        self.get(&key).await.map(drop)
    }

    /// What the database holds of an API key.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn api_key(&self, hash: &KeyHash) -> Result<Option<ApiKeyRecord>, TableError> {
        self.get(&api_key(hash)).await?.map(from_item).transpose()
    }

    /// Adds an API key, under its hash for whoever calls with it, and to the listing of its organisation.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn add_api_key(&self, hash: &KeyHash, record: &ApiKeyRecord) -> Result<(), TableError> {
        let mut listed = to_item(&listed_api_key(record.org_id, record.id), record)?;
        listed.insert(KEY_HASH.to_owned(), AttributeValue::S(hash.to_string()));
        let found = to_item(&api_key(hash), record)?;
        Ok(self.transact(&[Write::put(found), Write::put(listed)]).await?)
    }

    /// Ends the API key `id` at `now`, unless it ended before, and returns what is kept of it.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the organisation has no such key.
    pub async fn revoke_api_key(&self, org: OrgId, id: ApiKeyId, now: Timestamp) -> Result<ApiKeyRecord, TableError> {
        let listed = listed_api_key(org, id);
        let item = self.get(&listed).await?.ok_or(TableError::Missing)?;
        let hash = item.get(KEY_HASH).and_then(|hash| hash.as_s().ok()).cloned().ok_or(TableError::Missing)?;
        let mut record: ApiKeyRecord = from_item(item)?;
        if record.revoked_at.is_none() {
            record.revoked_at = Some(now);
            let end = |key| Write::Update {
                key,
                expression: "SET revoked_at = :now".into(),
                condition: Some(EXISTS),
                values: values([(":now", text(now))]),
            };
            self.transact(&[end(api_key(&KeyHash::from_hex(hash))), end(listed)]).await?;
        }
        Ok(record)
    }

    /// The API keys of an organisation, oldest first.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn api_keys_of(&self, org: OrgId) -> Result<Vec<ApiKeyRecord>, TableError> {
        let first = listed_api_key(org, ApiKeyId(Uuid::nil()));
        self.query_records(&first.pk, &first.sk, None).await
    }

    /// The item of `key`, as it is now.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        let call = self.client.get_item().table_name(&*self.table_name).set_key(Some(key.attributes()));
        let call = call.consistent_read(true).return_consumed_capacity(ReturnConsumedCapacity::Total);
        let depth = self.meter.begin();
        let result = call.send().await;
        self.meter.end(
            depth,
            Unit::Read,
            units(result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref())),
        );
        result.map(|output| output.item).map_err(|error| failure(&error))
    }

    /// Puts `item`, whatever was there before.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put(&self, item: Item) -> Result<(), TableError> {
        Ok(self.put_where(&item, None, &Item::new()).await?)
    }

    /// Puts `item` where `condition` holds of what was there before.
    ///
    /// # Errors
    /// [`Cancelled::Condition`] with what was there, where it does not. It may be `item` itself, where an attempt's answer was lost.
    pub async fn put_if(&self, item: &Item, condition: &'static str, values: &Item) -> Result<(), Cancelled> {
        self.put_where(item, Some(condition), values).await
    }

    async fn put_where(&self, item: &Item, condition: Option<&'static str>, values: &Item) -> Result<(), Cancelled> {
        let mut round = Backoff::default();
        loop {
            let call = self.client.put_item().table_name(&*self.table_name).set_item(Some(item.clone()));
            let call = call.set_condition_expression(condition.map(str::to_owned));
            let call = call.set_expression_attribute_names(names(condition));
            let call = call.set_expression_attribute_values(some(values));
            // Without a condition it must not be asked for.
            let stood = condition.map(|_| ReturnValuesOnConditionCheckFailure::AllOld);
            let call = call.set_return_values_on_condition_check_failure(stood);
            let depth = self.meter.begin();
            let error = match call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await {
                Ok(output) => {
                    self.meter.end(depth, Unit::Write, units(output.consumed_capacity.as_ref()));
                    return Ok(());
                }
                Err(error) => error,
            };
            let refused = match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(exception)) => {
                    Some(Cancelled::Condition(0, exception.item.clone()))
                }
                _ => None,
            };
            if let Some(cancelled) = self.settle(depth, refused, &error, &mut round).await {
                return Err(cancelled);
            }
        }
    }

    /// What a write of a single item that failed comes to, `refused` where its condition failed; `None` where it only
    /// met a transaction, and should be tried again.
    async fn settle<E>(
        &self,
        depth: u32,
        refused: Option<Cancelled>,
        error: &SdkError<E, HttpResponse>,
        round: &mut Backoff,
    ) -> Option<Cancelled>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        // A condition that fails is billed as the write it would have been; the answer does not say so.
        self.meter.end(depth, Unit::Write, if refused.is_some() { 1.0 } else { 0.0 });
        match refused {
            None if is_conflict(error) && round.wait().await => None,
            None => Some(Cancelled::Failed(failure(error))),
            refused => refused,
        }
    }

    /// Changes a single item on a condition, and returns what it is then.
    ///
    /// # Errors
    /// [`Cancelled`]. Where an attempt's answer was lost, the condition may be found broken by that very attempt.
    pub async fn update(
        &self,
        key: &Key,
        expression: &str,
        condition: &'static str,
        values: &Item,
    ) -> Result<Item, Cancelled> {
        let mut round = Backoff::default();
        loop {
            let call = self.client.update_item().table_name(&*self.table_name).set_key(Some(key.attributes()));
            let call = call.update_expression(expression).condition_expression(condition);
            let call = call.set_expression_attribute_names(names([expression, condition]));
            let call = call.set_expression_attribute_values(some(values)).return_values(ReturnValue::AllNew);
            let call = call.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
            let depth = self.meter.begin();
            let error = match call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await {
                Ok(output) => {
                    self.meter.end(depth, Unit::Write, units(output.consumed_capacity.as_ref()));
                    return Ok(output.attributes.unwrap_or_default());
                }
                Err(error) => error,
            };
            let refused = match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(exception)) => {
                    Some(Cancelled::Condition(0, exception.item.clone()))
                }
                _ => None,
            };
            if let Some(cancelled) = self.settle(depth, refused, &error, &mut round).await {
                return Err(cancelled);
            }
        }
    }

    /// Removes the item of `key` and returns what it was.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none. Where an attempt's answer was lost and the next found nothing, nobody can tell
    /// who removed it: that is [`TableError::Unavailable`].
    pub async fn delete(&self, key: &Key) -> Result<Item, TableError> {
        let mut round = Backoff::default();
        loop {
            let lost = LostAnswer::default();
            let call = self.client.delete_item().table_name(&*self.table_name).set_key(Some(key.attributes()));
            let call = call.condition_expression(EXISTS).return_values(ReturnValue::AllOld);
            let call = call.return_consumed_capacity(ReturnConsumedCapacity::Total);
            let depth = self.meter.begin();
            let result = call.customize().interceptor(lost.clone()).send().await;
            let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
            // A condition that fails is billed as the write it would have been; the answer does not say so.
            self.meter.end(depth, Unit::Write, consumed.map_or(1.0, |consumed| units(Some(consumed))));
            match result {
                Ok(output) => return output.attributes.ok_or(TableError::Missing),
                Err(error) if is_conflict(&error) && round.wait().await => {}
                Err(error) if error.code() == Some("ConditionalCheckFailedException") => {
                    return Err(if lost.happened() {
                        TableError::Unavailable("the answer to a delete was lost".into())
                    } else {
                        TableError::Missing
                    });
                }
                Err(error) => return Err(failure(&error)),
            }
        }
    }

    /// The items of a partition from the sort key `from` on, in order, at most `limit`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn query(&self, pk: &str, from: &str, limit: Option<usize>) -> Result<Vec<Item>, TableError> {
        let mut items = Vec::new();
        let mut start = None;
        loop {
            let call = self.range(pk, from, start.take(), limit.map(|limit| limit - items.len()));
            let depth = self.meter.begin();
            let result = call.send().await;
            let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
            self.meter.end(depth, Unit::Read, units(consumed));
            let output = result.map_err(|error| failure(&error))?;
            items.extend(output.items.unwrap_or_default());
            start = output.last_evaluated_key.filter(|_| limit.is_none_or(|limit| items.len() < limit));
            if start.is_none() {
                return Ok(items);
            }
        }
    }

    /// The same, as the records that they hold.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn query_records<R: DeserializeOwned>(
        &self,
        pk: &str,
        from: &str,
        limit: Option<usize>,
    ) -> Result<Vec<R>, TableError> {
        let mut records = Vec::new();
        let mut start = None;
        loop {
            let rows = Rows::default();
            let call = self.range(pk, from, start.take(), limit.map(|limit| limit - records.len()));
            let depth = self.meter.begin();
            let result = call.customize().interceptor(rows.clone()).send().await.map_err(|error| failure(&error));
            let answer = result.and_then(|_| serde_json::from_slice::<Answer<R>>(&rows.take()).map_err(broken));
            let consumed = answer.as_ref().ok().and_then(|answer| answer.consumed_capacity.as_ref());
            self.meter.end(depth, Unit::Read, consumed.map_or(0.0, |consumed| consumed.capacity_units));
            let answer = answer?;
            records.extend(answer.items.into_iter().map(|Record(record)| record));
            let next = answer.last_evaluated_key.filter(|_| limit.is_none_or(|limit| records.len() < limit));
            start = next.map(|Record(key)| key.attributes());
            if start.is_none() {
                return Ok(records);
            }
        }
    }

    /// The call that reads a partition from the sort key `from` on, or from behind `start`.
    fn range(&self, pk: &str, from: &str, start: Option<Item>, limit: Option<usize>) -> QueryFluentBuilder {
        let limit = limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX));
        let call = self.client.query().table_name(&*self.table_name).consistent_read(true).set_limit(limit);
        let call = call.key_condition_expression("pk = :pk AND sk >= :from");
        let call = call.expression_attribute_values(":pk", AttributeValue::S(pk.to_owned()));
        let call = call.expression_attribute_values(":from", AttributeValue::S(from.to_owned()));
        call.set_exclusive_start_key(start).return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// The keys of a secondary index's items whose sort key is not beyond `until`, the lowest first, at most `limit`. An index is
    /// brought up to date a moment after its table.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn query_due(&self, partition: &str, until: &str, limit: i32) -> Result<Vec<Key>, TableError> {
        let call = self.client.query().table_name(&*self.table_name).index_name(DUE_INDEX).limit(limit);
        let call = call.key_condition_expression("due_pk = :due_pk AND due_at <= :until");
        let call = call.expression_attribute_values(":due_pk", text(partition));
        let call = call.expression_attribute_values(":until", text(until));
        let depth = self.meter.begin();
        let result = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
        let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
        self.meter.end(depth, Unit::Read, units(consumed));
        let output = result.map_err(|error| failure(&error))?;
        Ok(output.items.unwrap_or_default().iter().filter_map(key_of).collect())
    }

    /// Which of at most [`BATCH_GET_LIMIT`] keys have an item. Without `consistent`, an item written in the last second may be missed,
    /// at half the price.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn existing(&self, keys: &[Key], consistent: bool) -> Result<Vec<Key>, TableError> {
        let items = self.batch_get(keys, consistent, Some("pk, sk")).await?;
        Ok(items.iter().filter_map(key_of).collect())
    }

    /// The items of `keys` as they are now, in no order; those that are not there are left out.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_all(&self, keys: &[Key]) -> Result<Vec<Item>, TableError> {
        let batches: Vec<_> = keys.chunks(BATCH_GET_LIMIT).map(|keys| self.batch_get(keys, true, None)).collect();
        Ok(try_join_all(batches).await?.concat())
    }

    async fn batch_get(
        &self,
        keys: &[Key],
        consistent: bool,
        projection: Option<&str>,
    ) -> Result<Vec<Item>, TableError> {
        let mut found = Vec::with_capacity(keys.len());
        let mut wanted: Vec<Item> = keys.iter().map(Key::attributes).collect();
        let mut round = Backoff::default();
        while !wanted.is_empty() {
            let request = KeysAndAttributes::builder()
                .set_keys(Some(wanted))
                .consistent_read(consistent)
                .set_projection_expression(projection.map(str::to_owned))
                .build()
                .map_err(broken)?;
            let call = self.client.batch_get_item().request_items(&*self.table_name, request);
            let depth = self.meter.begin();
            let result = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
            let consumed =
                result.as_ref().ok().and_then(|output| output.consumed_capacity.as_deref()).unwrap_or_default();
            self.meter.end(depth, Unit::Read, consumed.iter().map(|one| units(Some(one))).sum());
            let output = result.map_err(|error| failure(&error))?;
            let mut items = output.responses.unwrap_or_default().remove(&*self.table_name).unwrap_or_default();
            // An answer that holds as much as one may is no reason to wait.
            let progress = !items.is_empty();
            found.append(&mut items);
            let left = output.unprocessed_keys.unwrap_or_default().remove(&*self.table_name);
            wanted = left.map(|left| left.keys).unwrap_or_default();
            if !wanted.is_empty() && !progress && !round.wait().await {
                return Err(TableError::Unavailable("keys were left unprocessed".into()));
            }
        }
        Ok(found)
    }

    /// Puts at most [`BATCH_WRITE_LIMIT`] items, each whatever was there before.
    ///
    /// # Errors
    /// [`TableError`]: some of the items may have been put.
    pub async fn put_batch(&self, items: Vec<Item>) -> Result<(), TableError> {
        let mut wanted = Vec::with_capacity(items.len());
        for item in items {
            let put = PutRequest::builder().set_item(Some(item)).build().map_err(broken)?;
            wanted.push(WriteRequest::builder().put_request(put).build());
        }
        let mut round = Backoff::default();
        while !wanted.is_empty() {
            let call = self.client.batch_write_item().request_items(&*self.table_name, wanted);
            let depth = self.meter.begin();
            let result = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
            let consumed =
                result.as_ref().ok().and_then(|output| output.consumed_capacity.as_deref()).unwrap_or_default();
            self.meter.end(depth, Unit::Write, consumed.iter().map(|one| units(Some(one))).sum());
            let output = result.map_err(|error| failure(&error))?;
            wanted = output.unprocessed_items.unwrap_or_default().remove(&*self.table_name).unwrap_or_default();
            if !wanted.is_empty() && !round.wait().await {
                return Err(TableError::Unavailable("items were left unprocessed".into()));
            }
        }
        Ok(())
    }

    /// Does all of `writes`, at most [`TRANSACTION_LIMIT`], or none. Meeting another transaction, it tries again.
    ///
    /// # Errors
    /// [`Cancelled`] says whose condition failed.
    pub async fn transact(&self, writes: &[Write]) -> Result<(), Cancelled> {
        let mut round = Backoff::default();
        loop {
            let actions = writes.iter().map(|write| self.action(write)).collect::<Result<Vec<_>, _>>();
            let actions = actions.map_err(Cancelled::Failed)?;
            let call = self.client.transact_write_items().set_transact_items(Some(actions));
            let depth = self.meter.begin();
            let result = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
            let consumed =
                result.as_ref().ok().and_then(|output| output.consumed_capacity.as_deref()).unwrap_or_default();
            self.meter.end(depth, Unit::Write, consumed.iter().map(|one| units(Some(one))).sum());
            let Err(error) = result else { return Ok(()) };
            let cancelled = cancelled(&error);
            match cancelled {
                None if round.wait().await => {}
                None => return Err(Cancelled::Failed(TableError::Unavailable("transactions kept conflicting".into()))),
                Some(cancelled) => return Err(cancelled),
            }
        }
    }

    fn action(&self, write: &Write) -> Result<TransactWriteItem, TableError> {
        let table = &*self.table_name;
        // Without a condition it must not be asked for.
        let old = |condition: Option<&'static str>| condition.map(|_| ReturnValuesOnConditionCheckFailure::AllOld);
        let action = TransactWriteItem::builder();
        Ok(match write {
            Write::Put { item, condition, values } => action.put(
                Put::builder()
                    .table_name(table)
                    .set_item(Some(item.clone()))
                    .set_condition_expression(condition.map(str::to_owned))
                    .set_expression_attribute_names(names(*condition))
                    .set_expression_attribute_values(some(values))
                    .set_return_values_on_condition_check_failure(old(*condition))
                    .build()
                    .map_err(broken)?,
            ),
            Write::Check { key, condition, values } => action.condition_check(
                ConditionCheck::builder()
                    .table_name(table)
                    .set_key(Some(key.attributes()))
                    .condition_expression(*condition)
                    .set_expression_attribute_names(names([*condition]))
                    .set_expression_attribute_values(some(values))
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                    .build()
                    .map_err(broken)?,
            ),
            Write::Update { key, expression, condition, values } => action.update(
                Update::builder()
                    .table_name(table)
                    .set_key(Some(key.attributes()))
                    .update_expression(expression.as_ref())
                    .set_condition_expression(condition.map(str::to_owned))
                    .set_expression_attribute_names(names(condition.iter().copied().chain([expression.as_ref()])))
                    .set_expression_attribute_values(some(values))
                    .set_return_values_on_condition_check_failure(old(*condition))
                    .build()
                    .map_err(broken)?,
            ),
            Write::Delete { key, condition, values } => action.delete(
                Delete::builder()
                    .table_name(table)
                    .set_key(Some(key.attributes()))
                    .set_condition_expression(condition.map(str::to_owned))
                    .set_expression_attribute_names(names(*condition))
                    .set_expression_attribute_values(some(values))
                    .set_return_values_on_condition_check_failure(old(*condition))
                    .build()
                    .map_err(broken)?,
            ),
        }
        .build())
    }

    /// What this process believes the next ordinal of the list at `pk` to be; none where it has not heard of the list.
    pub(crate) fn head_guess(&self, pk: &str) -> Option<u32> {
        self.heads().get(pk).copied()
    }

    /// Corrects that belief.
    pub(crate) fn learn_head(&self, pk: &str, next: u32) {
        self.heads().insert(pk.to_owned(), next);
    }

    fn heads(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `record` as an item at `key`, with free-form JSON as text.
///
/// # Errors
/// [`TableError::Broken`] where the record cannot be an item, which none of ours is.
pub fn to_item(key: &Key, record: &impl Serialize) -> Result<Item, TableError> {
    let mut item: Item = serde_dynamo::to_item(record).map_err(broken)?;
    for value in item.values_mut() {
        if let AttributeValue::M(map) = value
            && let Some(text) = map.remove(RAW_VALUE)
        {
            *value = text;
        }
    }
    item.extend(key.attributes());
    Ok(item)
}

/// The record that `item` holds.
///
/// # Errors
/// [`TableError::Broken`] where it does not.
pub fn from_item<R: DeserializeOwned>(item: Item) -> Result<R, TableError> {
    serde_dynamo::from_item(item).map_err(broken)
}

/// The key of `item`.
pub fn key_of(item: &Item) -> Option<Key> {
    Some(Key { pk: item.get(PK)?.as_s().ok()?.clone(), sk: item.get(SK)?.as_s().ok()?.clone() })
}

fn units(consumed: Option<&ConsumedCapacity>) -> f64 {
    consumed.and_then(|consumed| consumed.capacity_units).unwrap_or_default()
}

fn broken(error: impl std::error::Error) -> TableError {
    TableError::Broken(chain(&error))
}

/// Another transaction is at work on the same item. The SDK does not try again by itself.
fn is_conflict<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    error.code() == Some("TransactionConflictException")
}

fn failure<E, R>(error: &SdkError<E, R>) -> TableError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug + 'static,
{
    const BUSY: [&str; 8] = [
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    ];
    let text = chain(error);
    match error {
        SdkError::ServiceError(service) if service.err().code().is_some_and(|code| !BUSY.contains(&code)) => {
            TableError::Broken(text)
        }
        SdkError::ConstructionFailure(_) => TableError::Broken(text),
        _ => TableError::Unavailable(text),
    }
}

/// Why a transaction was cancelled; `None` where it only met another one, and should be tried again.
fn cancelled<R: std::fmt::Debug + 'static>(error: &SdkError<TransactWriteItemsError, R>) -> Option<Cancelled> {
    let Some(TransactWriteItemsError::TransactionCanceledException(exception)) = error.as_service_error() else {
        return (!is_conflict(error)).then(|| Cancelled::Failed(failure(error)));
    };
    let reasons = exception.cancellation_reasons();
    let with_code = |code: &str| reasons.iter().position(|reason| reason.code() == Some(code));
    if let Some(index) = with_code("ConditionalCheckFailed") {
        return Some(Cancelled::Condition(index, reasons.get(index).and_then(|reason| reason.item.clone())));
    }
    if with_code("TransactionConflict").is_some() {
        return None;
    }
    let busy = ["ThrottlingError", "ProvisionedThroughputExceeded"].iter().any(|code| with_code(code).is_some());
    let codes = reasons.iter().filter_map(CancellationReason::code).collect::<Vec<_>>().join(", ");
    Some(Cancelled::Failed(if busy { TableError::Unavailable(codes) } else { TableError::Broken(codes) }))
}

/// Waits between the rounds of a call, longer each time, and never as long as another caller that began at the same moment.
#[derive(Debug, Default)]
struct Backoff(u32);

impl Backoff {
    /// Waits; false where there were rounds enough.
    async fn wait(&mut self) -> bool {
        self.0 += 1;
        if self.0 >= ROUNDS {
            return false;
        }
        let most = Duration::from_millis(10) * 2_u32.pow(self.0);
        tokio::time::sleep(most.mul_f64(fastrand::f64())).await;
        true
    }
}

/// Notes whether an attempt of a call ended without an answer, so that it may have done its work unseen.
#[derive(Debug, Clone, Default)]
struct LostAnswer(Arc<AtomicBool>);

impl LostAnswer {
    fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Intercept for LostAnswer {
    fn name(&self) -> &'static str {
        "LostAnswer"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // An operation error is an answer: the database said that it did nothing. Everything else leaves it open.
        let answered = match context.output_or_error() {
            Some(Err(error)) => {
                error.as_operation_error().is_some()
                    && context.response().is_some_and(|response| !response.status().is_server_error())
            }
            _ => true,
        };
        self.0.fetch_or(!answered, Ordering::Relaxed);
        Ok(())
    }
}
