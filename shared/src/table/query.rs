//! Queries: items of a partition, or of an index, in their order.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::table::call::UnderWay;
use crate::table::error::TableError;
use crate::table::item::{Item, key_of, text};
use crate::table::keys::{DUE_INDEX, Key};
use crate::table::meter::Unit;
use crate::table::retry::failure;
use crate::table::store::{Store, units};
use crate::table::wire::{QueryOutput, Record, Rows};

/// The result of a query of records.
#[derive(Debug)]
pub struct Found<R> {
    /// The records of the items that this version can deserialize.
    pub records: Vec<R>,
    /// The number of items that the query returned: an unreadable one counts too, so that no other row takes its place
    /// on a page.
    pub read: usize,
}

impl Store {
    /// The items of a partition from the sort key `from` on, in order, at most `limit`.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn query<'a>(
        &'a self,
        pk: &'a str,
        from: &'a str,
        limit: Option<usize>,
    ) -> BoxFuture<'a, Result<Vec<Item>, TableError>> {
        // Boxed: otherwise each function that waits for the future would compile it again.
        Box::pin(self.items(pk, from, limit))
    }

    async fn items(&self, pk: &str, from: &str, limit: Option<usize>) -> Result<Vec<Item>, TableError> {
        let mut items = Vec::new();
        let mut start = None;
        loop {
            let call = self.range(pk, from, start.take(), limit.map(|limit| limit - items.len()));
            let under_way = self.calls.begin(&self.meter).await;
            let result = call.send().await;
            let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
            under_way.end(Unit::Read, units(consumed));
            let output = result.map_err(|error| failure(&error))?;
            items.extend(output.items.unwrap_or_default());
            start = output.last_evaluated_key.filter(|_| limit.is_none_or(|limit| items.len() < limit));
            if start.is_none() {
                return Ok(items);
            }
        }
    }

    /// The last item of a partition, or the last one before the sort key `before`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn last(&self, pk: &str, before: Option<&str>) -> Result<Option<Item>, TableError> {
        let condition = if before.is_some() { "pk = :pk AND sk < :before" } else { "pk = :pk" };
        let call = self.client.query().table_name(&*self.table_name).consistent_read(true).limit(1);
        let call = call.scan_index_forward(false).key_condition_expression(condition);
        let values = [(":pk", Some(pk)), (":before", before)];
        let values = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), text(value?)))).collect();
        let call = call.set_expression_attribute_values(Some(values));
        let under_way = self.calls.begin(&self.meter).await;
        let result = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
        let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
        under_way.end(Unit::Read, units(consumed));
        Ok(result.map_err(|error| failure(&error))?.items.unwrap_or_default().pop())
    }

    /// The first items of a partition, at most `limit` and 1 MB, and whether there are more. With a `projection`, each
    /// item has only its attributes.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn some_of(
        &self,
        pk: &str,
        projection: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Item>, bool), TableError> {
        // Every sort key of a partition comes after this one.
        let call = self.range(pk, "!", None, Some(limit)).set_projection_expression(projection.map(str::to_owned));
        let under_way = self.calls.begin(&self.meter).await;
        let result = call.send().await;
        let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
        under_way.end(Unit::Read, units(consumed));
        let output = result.map_err(|error| failure(&error))?;
        Ok((output.items.unwrap_or_default(), output.last_evaluated_key.is_some()))
    }

    /// The records in the items of a partition from one sort key on, or up to another one, in order, at most `limit`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn query_records<R: DeserializeOwned>(
        &self,
        pk: &str,
        (from, to): (&str, Option<&str>),
        limit: Option<usize>,
    ) -> Result<Found<R>, TableError> {
        self.records(pk, (from, to), limit, true).await
    }

    /// The records in the items of a partition between two sort keys, both of them included, at most `limit`: the first
    /// ones if `forward`, else the last ones, the last one first.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn records_between<R: DeserializeOwned>(
        &self,
        pk: &str,
        [from, to]: [&str; 2],
        limit: usize,
        forward: bool,
    ) -> Result<Found<R>, TableError> {
        self.records(pk, (from, Some(to)), Some(limit), forward).await
    }

    async fn records<R: DeserializeOwned>(
        &self,
        pk: &str,
        range: (&str, Option<&str>),
        limit: Option<usize>,
        forward: bool,
    ) -> Result<Found<R>, TableError> {
        let mut found = Found { records: Vec::new(), read: 0 };
        let mut start = None;
        loop {
            let call = self.between(pk, range, start.take(), limit.map(|limit| limit - found.read));
            let call = call.set_scan_index_forward((!forward).then_some(false));
            let (under_way, body) = self.body(call).await;
            let answer = body.and_then(|body| QueryOutput::<R>::read(&body));
            let consumed = answer.as_ref().ok().and_then(|answer| answer.consumed_capacity.as_ref());
            under_way.end(Unit::Read, consumed.map_or(0.0, |consumed| consumed.capacity_units));
            let answer = answer?;
            found.read += answer.read;
            found.records.extend(answer.items);
            let next = answer.last_evaluated_key.filter(|_| limit.is_none_or(|limit| found.read < limit));
            start = next.map(|Record(key)| key.attributes());
            if start.is_none() {
                return Ok(found);
            }
        }
    }

    /// The first records in the items of a partition between two sort keys, both of them included: at most `limit`, and at
    /// most a megabyte of items. With them comes the sort key of the last item that was read, if there are more.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn some_records<R: DeserializeOwned>(
        &self,
        pk: &str,
        [from, to]: [&str; 2],
        limit: Option<usize>,
    ) -> Result<(Vec<R>, Option<String>), TableError> {
        let (under_way, body) = self.body(self.between(pk, (from, Some(to)), None, limit)).await;
        let answer = body.and_then(|body| QueryOutput::<R>::read(&body));
        let consumed = answer.as_ref().ok().and_then(|answer| answer.consumed_capacity.as_ref());
        under_way.end(Unit::Read, consumed.map_or(0.0, |consumed| consumed.capacity_units));
        let answer = answer?;
        Ok((answer.items, answer.last_evaluated_key.map(|Record(key)| key.sk)))
    }

    /// The body of the answer to `call`. Boxed, for the same reason as in [`Store::query`].
    fn body(&self, call: QueryFluentBuilder) -> BoxFuture<'_, (UnderWay<'_>, Result<String, TableError>)> {
        Box::pin(async move {
            let rows = Rows::default();
            let under_way = self.calls.begin(&self.meter).await;
            let result = call.customize().interceptor(rows.clone()).send().await;
            let body = result.map(|_| rows.take()).map_err(|error| failure(&error));
            let text = |body| String::from_utf8(body).map_err(|error| TableError::Broken(error.to_string()));
            (under_way, body.and_then(text))
        })
    }

    /// The call that reads a partition from the sort key `from` on, or after `start`.
    fn range(&self, pk: &str, from: &str, start: Option<Item>, limit: Option<usize>) -> QueryFluentBuilder {
        self.between(pk, (from, None), start, limit)
    }

    /// The same, up to the sort key `to`.
    fn between(
        &self,
        pk: &str,
        (from, to): (&str, Option<&str>),
        start: Option<Item>,
        limit: Option<usize>,
    ) -> QueryFluentBuilder {
        let limit = limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX));
        let condition = if to.is_some() { "pk = :pk AND sk BETWEEN :from AND :to" } else { "pk = :pk AND sk >= :from" };
        let call = self.client.query().table_name(&*self.table_name).consistent_read(true).set_limit(limit);
        let values = [(":pk", Some(pk)), (":from", Some(from)), (":to", to)];
        let values = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), text(value?)))).collect();
        let call = call.key_condition_expression(condition).set_expression_attribute_values(Some(values));
        call.set_exclusive_start_key(start).return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// The keys of a secondary index's items whose sort key is at most `until`, the lowest first, at most `limit`. An
    /// index is updated a moment after its table.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn query_due(&self, partition: &str, until: &str, limit: i32) -> Result<Vec<Key>, TableError> {
        Ok(self.due_page(partition, until, limit, None).await?.0)
    }

    /// A page of these keys, which begins after `start`, and where the next one begins; `None` after the last one.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn due_page(
        &self,
        partition: &str,
        until: &str,
        limit: i32,
        start: Option<Item>,
    ) -> Result<(Vec<Key>, Option<Item>), TableError> {
        let call = self.client.query().table_name(&*self.table_name).index_name(DUE_INDEX).limit(limit);
        let call = call.set_exclusive_start_key(start);
        let call = call.key_condition_expression("due_pk = :due_pk AND due_at <= :until");
        let call = call.expression_attribute_values(":due_pk", text(partition));
        let call = call.expression_attribute_values(":until", text(until));
        let under_way = self.calls.begin(&self.meter).await;
        let result = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
        let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
        under_way.end(Unit::Read, units(consumed));
        let output = result.map_err(|error| failure(&error))?;
        let keys = output.items.unwrap_or_default().iter().filter_map(key_of).collect();
        Ok((keys, output.last_evaluated_key))
    }
}
