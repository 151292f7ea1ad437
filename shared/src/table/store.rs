//! The calls of the DynamoDB SDK about single items and batches, each in one place, with their costs and failures.
//! Queries, transactions, tokens and the times of rows have files of their own in this module. No other module calls
//! this SDK.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    ConsumedCapacity, DeleteRequest, KeysAndAttributes, PutRequest, ReturnConsumedCapacity, ReturnValue,
    ReturnValuesOnConditionCheckFailure, WriteRequest,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use futures_util::future::try_join_all;
use uuid::Uuid;

use crate::sealing::Secrets;
use crate::table::call::{Calls, UnderWay};
use crate::table::error::{Cancelled, TableError, broken};
use crate::table::expression::{Condition, Expressions, UpdateExpression};
use crate::table::item::{Item, key_of, target_id};
use crate::table::keys::Key;
use crate::table::meter::{Meter, Unit};
use crate::table::quota::Quotas;
use crate::table::recent::Recent;
use crate::table::retry::{Backoff, LostAnswer, PATIENCE, failure, is_conflict};

/// The most actions of a transaction.
pub const TRANSACTION_LIMIT: usize = 100;
/// The most keys of a batch get.
pub const BATCH_GET_LIMIT: usize = 100;
/// The most items of a batch write.
pub const BATCH_WRITE_LIMIT: usize = 25;

/// The table. Clones share the connection; each request has a clone with a meter of its own.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) client: Client,
    pub(super) table_name: Arc<str>,
    pub(super) meter: Meter,
    pub(super) calls: Calls,
    pub(crate) recent: Recent,
    /// The limits of each organisation.
    pub(super) quotas: Quotas,
    /// Seals and opens the secrets of records.
    pub(super) secrets: Secrets,
    /// When the request began for which the calls are made.
    begun: Option<Instant>,
    /// How long a request retries after conflicts with others.
    patience: Duration,
}

impl Store {
    /// The table `table_name`.
    pub fn new(client: Client, table_name: String) -> Self {
        Self {
            client,
            table_name: table_name.into(),
            meter: Meter::default(),
            calls: Calls::default(),
            recent: Recent::default(),
            quotas: Quotas::default(),
            secrets: Secrets::new(None),
            begun: None,
            patience: PATIENCE,
        }
    }

    /// The same table, whose secrets `secrets` seals and opens.
    #[must_use]
    pub fn sealing(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The same table for requests that have this much time for retries.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The same table with these limits of each organisation.
    #[must_use]
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }

    /// The same table in another process, with an empty memory.
    #[must_use]
    pub fn in_another_process(&self) -> Self {
        let secrets = self.secrets.in_another_process();
        Self { recent: Recent::default(), calls: Calls::default(), secrets, ..self.clone() }
    }

    /// The same table for a request that begins now, whose calls `meter` counts.
    #[must_use]
    pub fn metered(&self, meter: Meter) -> Self {
        Self { meter, begun: Some(Instant::now()), ..self.clone() }
    }

    /// The waits between attempts: until the request's time is over, or without a request for as long from now.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.begun.unwrap_or_else(Instant::now), self.patience)
    }

    /// Opens the connection, by reading an item that does not exist.
    ///
    /// # Errors
    /// [`TableError`], where the table does not answer.
    pub async fn warm_up(&self) -> Result<(), TableError> {
        let key = Key { pk: "WARM_UP".into(), sk: "WARM_UP".into() };
        self.get(&key).await.map(drop)
    }

    /// The item of `key`, as it is now.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        let call = self.client.get_item().table_name(&*self.table_name).set_key(Some(key.attributes()));
        let call = call.consistent_read(true).return_consumed_capacity(ReturnConsumedCapacity::Total);
        let under_way = self.calls.begin(&self.meter).await;
        let result = call.send().await;
        under_way.end(Unit::Read, units(result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref())));
        result.map(|output| output.item).map_err(|error| failure(&error))
    }

    /// Puts `item`; replaces an existing one.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn put(&self, item: Item) -> Result<(), TableError> {
        Ok(self.put_where(&item, None, &LostAnswer::default()).await?)
    }

    /// Puts `item` if `condition` is true for the existing item.
    ///
    /// # Errors
    /// [`Cancelled::Condition`] with the existing item, if the condition failed. It may be `item` itself, if an
    /// attempt's answer was lost.
    pub(crate) async fn put_if(&self, item: &Item, condition: &Condition) -> Result<(), Cancelled> {
        self.put_where(item, Some(condition), &LostAnswer::default()).await
    }

    /// Puts `item`, on a condition if there is one.
    pub(super) async fn put_where(
        &self,
        item: &Item,
        condition: Option<&Condition>,
        lost: &LostAnswer,
    ) -> Result<(), Cancelled> {
        let (mut round, expressions) = (self.backoff(), Expressions::of(None, condition));
        // DynamoDB refuses this setting without a condition.
        let returned = condition.map(|_| ReturnValuesOnConditionCheckFailure::AllOld);
        loop {
            let Expressions { condition, names, values, .. } = expressions.clone();
            let call = self.client.put_item().table_name(&*self.table_name).set_item(Some(item.clone()));
            let call = call.set_condition_expression(condition).set_expression_attribute_names(names);
            let call = call.set_expression_attribute_values(values);
            let call = call.set_return_values_on_condition_check_failure(returned.clone());
            let call = call.return_consumed_capacity(ReturnConsumedCapacity::Total);
            let under_way = self.calls.begin(&self.meter).await;
            let error = match call.customize().interceptor(lost.clone()).send().await {
                Ok(output) => {
                    under_way.end(Unit::Write, units(output.consumed_capacity.as_ref()));
                    return Ok(());
                }
                Err(error) => error,
            };
            let refused = match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(exception)) => {
                    Some(Cancelled::Condition((), exception.item.clone()))
                }
                _ => None,
            };
            if let Some(cancelled) = self.settle(under_way, refused, &error, &mut round).await {
                return Err(cancelled);
            }
        }
    }

    /// The result of a failed write of a single item, with `refused` if its condition failed; `None` if it conflicted
    /// with a transaction and should be retried.
    async fn settle<E>(
        &self,
        under_way: UnderWay<'_>,
        refused: Option<Cancelled>,
        error: &SdkError<E, HttpResponse>,
        round: &mut Backoff,
    ) -> Option<Cancelled>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        // A failed condition costs as much as the write would have; the answer does not include the cost.
        under_way.end(Unit::Write, if refused.is_some() { 1.0 } else { 0.0 });
        match refused {
            None if is_conflict(error) && round.wait().await => None,
            None => Some(Cancelled::Failed(failure(error))),
            refused => refused,
        }
    }

    /// Changes a single item, on a condition if there is one, and returns it as it is after that.
    ///
    /// # Errors
    /// [`Cancelled`]. If an attempt's answer was lost, that attempt may be the reason why the condition fails.
    pub(crate) async fn update(
        &self,
        key: &Key,
        update: &UpdateExpression,
        condition: Option<&Condition>,
    ) -> Result<Item, Cancelled> {
        self.update_noting(key, update, condition, &LostAnswer::default()).await
    }

    /// Changes an item in a single attempt, if a caller waits who does not need the change.
    ///
    /// # Errors
    /// [`TableError`]; the change may have been made.
    pub(crate) async fn try_update(&self, key: &Key, update: &UpdateExpression) -> Result<(), TableError> {
        let under_way = self.calls.begin(&self.meter).await;
        let once = Builder::new().retry_config(RetryConfig::disabled());
        let result = self.update_item(key, update, None).customize().config_override(once).send().await;
        let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
        under_way.end(Unit::Write, units(consumed));
        result.map(drop).map_err(|error| failure(&error))
    }

    /// The same, and records in `lost` whether an attempt got no answer.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub(super) async fn update_noting(
        &self,
        key: &Key,
        update: &UpdateExpression,
        condition: Option<&Condition>,
        lost: &LostAnswer,
    ) -> Result<Item, Cancelled> {
        let mut round = self.backoff();
        loop {
            let call = self.update_item(key, update, condition);
            let under_way = self.calls.begin(&self.meter).await;
            let error = match call.customize().interceptor(lost.clone()).send().await {
                Ok(output) => {
                    under_way.end(Unit::Write, units(output.consumed_capacity.as_ref()));
                    return Ok(output.attributes.unwrap_or_default());
                }
                Err(error) => error,
            };
            let refused = match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(exception)) => {
                    Some(Cancelled::Condition((), exception.item.clone()))
                }
                _ => None,
            };
            if let Some(cancelled) = self.settle(under_way, refused, &error, &mut round).await {
                return Err(cancelled);
            }
        }
    }

    /// The call that changes a single item.
    pub(super) fn update_item(
        &self,
        key: &Key,
        update: &UpdateExpression,
        condition: Option<&Condition>,
    ) -> UpdateItemFluentBuilder {
        // DynamoDB refuses this setting without a condition.
        let returned = condition.map(|_| ReturnValuesOnConditionCheckFailure::AllOld);
        let Expressions { update, condition, names, values } = Expressions::of(Some(update), condition);
        let call = self.client.update_item().table_name(&*self.table_name).set_key(Some(key.attributes()));
        let call = call.set_update_expression(update).set_condition_expression(condition);
        let call = call.set_expression_attribute_names(names);
        let call = call.set_expression_attribute_values(values).return_values(ReturnValue::AllNew);
        let call = call.set_return_values_on_condition_check_failure(returned);
        call.return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// Removes the item of `key` and returns it as it was.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none. If an attempt's answer was lost and the next attempt found nothing,
    /// it is unknown who removed the item: that is [`TableError::Unavailable`].
    pub(crate) async fn delete(&self, key: &Key) -> Result<Item, TableError> {
        let (mut round, lost) = (self.backoff(), LostAnswer::default());
        loop {
            let call = self.client.delete_item().table_name(&*self.table_name).set_key(Some(key.attributes()));
            let call = call.condition_expression("attribute_exists(pk)").return_values(ReturnValue::AllOld);
            let call = call.return_consumed_capacity(ReturnConsumedCapacity::Total);
            let under_way = self.calls.begin(&self.meter).await;
            let result = call.customize().interceptor(lost.clone()).send().await;
            let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
            // A failed condition costs as much as the write would have; the answer does not include the cost.
            under_way.end(Unit::Write, consumed.map_or(1.0, |consumed| units(Some(consumed))));
            match result {
                Ok(output) => return output.attributes.ok_or(TableError::Missing),
                Err(error) if is_conflict(&error) && round.wait().await => {}
                Err(error) if error.code() == Some("ConditionalCheckFailedException") => return Err(lost.missing()),
                Err(error) => return Err(failure(&error)),
            }
        }
    }

    /// The ids of the records at these keys, at most [`BATCH_GET_LIMIT`]; missing ones are left out. Without
    /// `consistent`, the read may miss an item of the last second, and costs half as much.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn existing(&self, keys: &[Key], consistent: bool) -> Result<Vec<Uuid>, TableError> {
        let items = self.batch_get(keys, consistent, Some("id")).await?;
        Ok(items.iter().filter_map(|item| target_id(item).ok()).collect())
    }

    /// The items of `keys` as they are now, in no order; missing ones are left out.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_all(&self, keys: &[Key]) -> Result<Vec<Item>, TableError> {
        let batches: Vec<_> = keys.chunks(BATCH_GET_LIMIT).map(|keys| self.batch_get(keys, true, None)).collect();
        Ok(try_join_all(batches).await?.concat())
    }

    /// These attributes of the items of `keys` as they are now; `pk` and `sk` must be included. Missing items are left
    /// out.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn get_attributes(
        &self,
        keys: &[Key],
        attributes: &'static str,
    ) -> Result<HashMap<Key, Item>, TableError> {
        let batches: Vec<_> =
            keys.chunks(BATCH_GET_LIMIT).map(|keys| self.batch_get(keys, true, Some(attributes))).collect();
        let items = try_join_all(batches).await?.concat();
        Ok(items.into_iter().filter_map(|item| Some((key_of(&item)?, item))).collect())
    }

    async fn batch_get(
        &self,
        keys: &[Key],
        consistent: bool,
        projection: Option<&str>,
    ) -> Result<Vec<Item>, TableError> {
        let mut found = Vec::with_capacity(keys.len());
        // DynamoDB refuses duplicate keys. Two ids that end in the same ordinal have the same key.
        let distinct: HashSet<&Key> = keys.iter().collect();
        let mut wanted: Vec<Item> = distinct.into_iter().map(Key::attributes).collect();
        let (mut round, mut is_rest) = (self.backoff(), false);
        while !wanted.is_empty() {
            let rest = if is_rest { wanted.clone() } else { Vec::new() };
            let request = KeysAndAttributes::builder()
                .set_keys(Some(wanted))
                .consistent_read(consistent)
                .set_projection_expression(projection.map(str::to_owned))
                .build()
                .map_err(broken)?;
            let call = self.client.batch_get_item().request_items(&*self.table_name, request);
            let under_way = self.calls.begin(&self.meter).await;
            let result = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
            let consumed =
                result.as_ref().ok().and_then(|output| output.consumed_capacity.as_deref()).unwrap_or_default();
            under_way.end(Unit::Read, consumed.iter().map(|one| units(Some(one))).sum());
            let output = match result.map_err(|error| failure(&error)) {
                // DynamoDB refuses the whole batch if it can process no part of it. The rest of a batch is then
                // unprocessed as before: it must not make the answered part worthless.
                Err(TableError::Unavailable(_)) if is_rest && round.wait().await => {
                    wanted = rest;
                    continue;
                }
                result => result?,
            };
            is_rest = true;
            let mut items = output.responses.unwrap_or_default().remove(&*self.table_name).unwrap_or_default();
            // An answer that reached the largest size is no reason to wait.
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

    /// Puts at most [`BATCH_WRITE_LIMIT`] items; replaces existing ones.
    ///
    /// # Errors
    /// [`TableError`]: some of the items may have been put.
    pub(crate) async fn put_batch(&self, items: Vec<Item>) -> Result<(), TableError> {
        let put = |item| PutRequest::builder().set_item(Some(item)).build().map_err(broken);
        let put = |item| Ok(WriteRequest::builder().put_request(put(item)?).build());
        self.write_batch(items.into_iter().map(put).collect::<Result<_, TableError>>()?).await
    }

    /// Removes the items of `keys` that exist.
    ///
    /// # Errors
    /// [`TableError`]: some of the items may have been removed.
    pub(crate) async fn delete_all(&self, keys: &[Key]) -> Result<(), TableError> {
        let delete = |key: &Key| DeleteRequest::builder().set_key(Some(key.attributes())).build().map_err(broken);
        let delete = |key: &Key| Ok(WriteRequest::builder().delete_request(delete(key)?).build());
        let batches = keys.chunks(BATCH_WRITE_LIMIT).map(|keys| keys.iter().map(delete).collect());
        let batches = batches.collect::<Result<Vec<Vec<_>>, TableError>>()?;
        try_join_all(batches.into_iter().map(|batch| self.write_batch(batch))).await.map(drop)
    }

    async fn write_batch(&self, mut wanted: Vec<WriteRequest>) -> Result<(), TableError> {
        let (mut round, mut is_rest) = (self.backoff(), false);
        while !wanted.is_empty() {
            let rest = if is_rest { wanted.clone() } else { Vec::new() };
            let call = self.client.batch_write_item().request_items(&*self.table_name, wanted);
            let under_way = self.calls.begin(&self.meter).await;
            let result = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
            let consumed =
                result.as_ref().ok().and_then(|output| output.consumed_capacity.as_deref()).unwrap_or_default();
            under_way.end(Unit::Write, consumed.iter().map(|one| units(Some(one))).sum());
            let output = match result.map_err(|error| failure(&error)) {
                // The same as for the rest of a batch that is read.
                Err(TableError::Unavailable(_)) if is_rest && round.wait().await => {
                    wanted = rest;
                    continue;
                }
                result => result?,
            };
            is_rest = true;
            wanted = output.unprocessed_items.unwrap_or_default().remove(&*self.table_name).unwrap_or_default();
            if !wanted.is_empty() && !round.wait().await {
                return Err(TableError::Unavailable("items were left unprocessed".into()));
            }
        }
        Ok(())
    }
}

pub(super) fn units(consumed: Option<&ConsumedCapacity>) -> f64 {
    consumed.and_then(|consumed| consumed.capacity_units).unwrap_or_default()
}
