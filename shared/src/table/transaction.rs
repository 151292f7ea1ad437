//! Transactions: several writes, all or none.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, ConditionCheck, Delete, Put, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use uuid::Uuid;

use crate::table::error::Cancelled;
use crate::table::error::{TableError, broken};
use crate::table::expression::{Condition, Expressions, UpdateExpression};
use crate::table::item::{Item, key_of, number, text};
use crate::table::keys::{Key, TTL, made_by};
use crate::table::meter::Unit;
use crate::table::part::Table;
use crate::table::quota::Amounts;
use crate::table::retry::{LostAnswer, failure};
use crate::table::store::{Store, units};
use crate::table::stored::Listed;
use crate::table::unique::UniqueValue;
use crate::table::uses::{Counting, MeterRoom, Needs, UseChange};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Seconds for which the marker of a created record is kept: longer than a change stays in the stream, or a keyed
/// request may be repeated ([`MARKED`](crate::request::claim::MARKED)).
const REMEMBERED: i64 = 3 * 86_400;

/// One write of a single item, on a condition where it has one.
#[derive(Debug, Clone)]
pub struct Write {
    action: WriteAction,
    condition: Option<Condition>,
}

/// What a write does.
#[derive(Debug, Clone)]
enum WriteAction {
    Put(Item),
    /// Only requires the condition.
    Check(Key),
    Update(Key, UpdateExpression),
    Delete(Key),
}

impl Write {
    /// Puts `item`; replaces an existing one.
    pub const fn put(item: Item) -> Self {
        Self { action: WriteAction::Put(item), condition: None }
    }

    /// Puts `item` if it does not exist yet.
    pub fn create(item: Item) -> Self {
        Self::put(item).when(Condition::absent())
    }

    /// Changes attributes of the item of `key`, which it makes where there is none.
    pub const fn update(key: Key, update: UpdateExpression) -> Self {
        Self { action: WriteAction::Update(key, update), condition: None }
    }

    /// Requires `condition` of the item of `key`.
    pub const fn check(key: Key, condition: Condition) -> Self {
        Self { action: WriteAction::Check(key), condition: Some(condition) }
    }

    /// Removes the item of `key`, if there is one.
    pub const fn delete(key: Key) -> Self {
        Self { action: WriteAction::Delete(key), condition: None }
    }

    /// The same write, on `condition`.
    #[must_use]
    pub fn when(self, condition: Condition) -> Self {
        Self { condition: Some(condition), ..self }
    }
}

/// The meaning of an action's failed condition.
#[derive(Debug)]
enum Meaning<M> {
    /// Another row has the unique value that this action takes.
    Taken(UniqueValue),
    /// The meaning that was given with the action.
    Given(M),
    /// A quota leaves no room for what the transaction needs.
    Full(Needs),
    /// The plan of a user leaves no room for it.
    Exceeded(MeterRoom),
}

/// The condition of a request's writes that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmet {
    /// No earlier attempt of the request may have made the writes.
    Repeated,
    /// The row must be as it was read.
    Changed,
    /// No other request may have done what can be done only once.
    Settled,
}

/// A transaction that is being built. Its actions may define the meaning of their failed conditions; for the others it
/// is `otherwise`.
#[derive(Debug)]
pub struct Transaction<'a, M = ()> {
    table: &'a Table,
    writes: Vec<Write>,
    /// By the positions of the actions.
    meanings: BTreeMap<usize, Meaning<M>>,
    otherwise: M,
    /// How it changes what the organisation uses.
    uses: UseChange,
    /// Whether the quotas limit the rows that it inserts.
    is_limited: bool,
}

/// An action that was added to a transaction.
#[derive(Debug)]
pub struct Added<'t, M> {
    place: usize,
    meanings: &'t mut BTreeMap<usize, Meaning<M>>,
}

impl<M> Added<'_, M> {
    /// Sets the meaning of its failed condition.
    pub fn or(self, means: M) {
        self.meanings.insert(self.place, Meaning::Given(means));
    }
}

impl<'a> Transaction<'a> {
    /// A transaction without actions.
    pub(crate) const fn new(table: &'a Table) -> Self {
        let uses = UseChange::new();
        Self { table, writes: Vec::new(), meanings: BTreeMap::new(), otherwise: (), uses, is_limited: false }
    }

    /// The same transaction; a failed condition means `otherwise` unless its action defines another meaning.
    pub(crate) fn otherwise<M>(self, otherwise: M) -> Transaction<'a, M> {
        let Self { table, writes, uses, is_limited, .. } = self;
        Transaction { table, writes, meanings: BTreeMap::new(), otherwise, uses, is_limited }
    }
}

impl<'a, M> Transaction<'a, M> {
    /// The organisation whose part of the table it changes.
    pub const fn tenant(&self) -> &'a Tenant {
        &self.table.tenant
    }

    /// The table.
    pub(crate) const fn table(&self) -> &'a Table {
        self.table
    }

    /// The number of its actions.
    pub(super) const fn len(&self) -> usize {
        self.writes.len()
    }

    /// Adds an action.
    pub fn write(&mut self, write: Write) -> Added<'_, M> {
        self.writes.push(write);
        Added { place: self.writes.len() - 1, meanings: &mut self.meanings }
    }

    /// Whether it puts the item of `key`. DynamoDB refuses a second action on the same item, so a pointer that moves from
    /// one row to another in one transaction is put once.
    pub(super) fn puts(&self, key: &Key) -> bool {
        let is_put =
            |write: &Write| matches!(&write.action, WriteAction::Put(item) if key_of(item).as_ref() == Some(key));
        self.writes.iter().any(is_put)
    }

    /// Adds actions.
    pub(crate) fn write_all(&mut self, writes: impl IntoIterator<Item = Write>) {
        self.writes.extend(writes);
    }

    /// Adds an action that takes a unique value, on condition that no other row has it.
    pub(super) fn take(&mut self, value: UniqueValue, write: Write) {
        self.meanings.insert(self.writes.len(), Meaning::Taken(value));
        self.writes.push(write);
    }

    /// Counts a row in place of `was`; a new row has none before. With `is_limited` its quotas must leave room for it.
    pub(super) fn count<R: Listed>(&mut self, was: Option<&R>, is: Option<&R>, is_limited: bool) {
        let uses = |row: Option<&R>| row.map(R::uses).unwrap_or_default();
        self.uses.subtract(&was.map(R::counted_uses).unwrap_or_default());
        self.uses.add(&uses(is));
        if is_limited {
            self.uses.require(&uses(was), &uses(is));
        }
    }

    /// The same for rows that are removed without being read as records.
    pub(super) fn uncount(&mut self, uses: &Amounts) {
        self.uses.subtract(uses);
    }

    /// Whether the quotas limit the rows that it inserts.
    pub(super) const fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Adds an action on condition that there is room for what it `needs`.
    pub(super) fn need(&mut self, write: Write, needs: Needs) {
        let condition = needs.condition(self.table.store.quotas);
        self.meanings.insert(self.writes.len(), Meaning::Full(needs));
        self.writes.push(Write { condition, ..write });
    }

    /// Adds an action on condition that a meter has `room`, if it needs any.
    pub(super) fn need_room(&mut self, write: Write, room: Option<MeterRoom>) {
        if let Some(room) = room {
            self.meanings.insert(self.writes.len(), Meaning::Exceeded(room));
        }
        self.writes.push(Write { condition: room.map(|room| room.condition()), ..write });
    }

    /// Adds the actions that change the counters, one for each: DynamoDB refuses two actions on an item.
    fn with_counters(mut self) -> Self {
        for Counting { key, update, needs } in std::mem::take(&mut self.uses).countings(self.tenant()) {
            self.need(Write::update(key, update), needs);
        }
        self
    }

    /// Stores the marker that `origin` has made the record `id`, on condition that there is no such marker.
    pub fn made_by(&mut self, origin: Uuid, id: Uuid, now: Timestamp) -> Added<'_, M> {
        self.made_by_until(origin, id, now.plus_seconds(REMEMBERED))
    }

    /// The same, with a marker that is kept until `until`.
    pub fn made_by_until(&mut self, origin: Uuid, id: Uuid, until: Timestamp) -> Added<'_, M> {
        let mut marker = made_by(self.tenant(), origin).attributes();
        marker.insert("id".to_owned(), text(id));
        marker.insert(TTL.to_owned(), number(until.unix_seconds()));
        self.write(Write::create(marker))
    }

    /// Commits all of it, or nothing. After a conflict with another transaction it retries. A single put is written
    /// without a transaction, which would cost twice as much.
    ///
    /// # Errors
    /// [`Cancelled`]; [`TableError::Taken`] where another row has a unique value.
    pub(crate) async fn commit(self) -> Result<(), Cancelled<M>> {
        self.commit_noting(&LostAnswer::default()).await
    }

    /// The same, and records in `lost` whether an attempt got no answer: even after an error, the transaction may then
    /// have been committed, or may still be.
    ///
    /// # Errors
    /// The same as for [`Transaction::commit`].
    pub(crate) async fn commit_noting(self, lost: &LostAnswer) -> Result<(), Cancelled<M>> {
        let transaction = self.with_counters();
        let store = &transaction.table.store;
        if let [Write { action: WriteAction::Put(item), condition }] = &transaction.writes[..] {
            let put = store.put_where(item, condition.as_ref(), lost).await;
            return put.map_err(|cancelled| transaction.explained(cancelled, |()| 0));
        }
        let committed =
            store.attempts(&transaction.writes, lost, |cancelled| matches!(cancelled, Cancelled::Conflict(_))).await;
        committed.map_err(|cancelled| transaction.explained(cancelled, |place| place))
    }

    /// The same, without a retry after a conflict with another transaction: for conditions that will probably fail by
    /// then.
    ///
    /// # Errors
    /// The same as for [`Transaction::commit`].
    pub(crate) async fn commit_once(self, lost: &LostAnswer) -> Result<(), Cancelled<M>> {
        let transaction = self.with_counters();
        let committed = transaction.table.store.attempts(&transaction.writes, lost, |_| false).await;
        committed.map_err(|cancelled| transaction.explained(cancelled, |place| place))
    }

    /// Gives a failure its meaning; `place` returns the position of the action.
    fn explained<P>(mut self, cancelled: Cancelled<P>, place: impl FnOnce(P) -> usize) -> Cancelled<M> {
        match cancelled {
            Cancelled::Condition(at, existing) => match self.meanings.remove(&place(at)) {
                Some(Meaning::Taken(UniqueValue { term, taken })) => {
                    Cancelled::Failed(TableError::Taken { field: term.field(), kind: taken })
                }
                Some(Meaning::Given(means)) => Cancelled::Condition(means, existing),
                Some(Meaning::Full(needs)) => match needs.reached(self.table.store.quotas, existing.as_ref()) {
                    Some(reached) => Cancelled::Failed(TableError::QuotaReached(reached)),
                    None => Cancelled::Condition(self.otherwise, existing),
                },
                Some(Meaning::Exceeded(room)) => {
                    Cancelled::Failed(TableError::Exceeded(room.exceeded(existing.as_ref())))
                }
                None => Cancelled::Condition(self.otherwise, existing),
            },
            Cancelled::Conflict(text) => Cancelled::Conflict(text),
            Cancelled::Failed(error) => Cancelled::Failed(error),
        }
    }
}

impl<'a> Transaction<'a, Unmet> {
    /// The writes of a request, which may be executed more than once.
    pub(crate) fn of_request(table: &'a Table) -> Self {
        Transaction { is_limited: true, ..Transaction::new(table).otherwise(Unmet::Changed) }
    }

    /// Stores the marker that the request has made the record `id`, if the request may be repeated; a repeat has the
    /// same `origin`.
    pub(crate) fn once(&mut self, origin: Option<Uuid>, id: Uuid, now: Timestamp) {
        if let Some(origin) = origin {
            self.made_by(origin, id, now).or(Unmet::Repeated);
        }
    }
}

impl Store {
    /// Makes all of `writes`, at most a hundred, or none. After a conflict with another transaction it retries.
    ///
    /// # Errors
    /// [`Cancelled`], for any of the conditions.
    pub(crate) async fn transact(&self, writes: &[Write]) -> Result<(), Cancelled> {
        let again = |cancelled: &Cancelled<usize>| matches!(cancelled, Cancelled::Conflict(_));
        self.attempts(writes, &LostAnswer::default(), again).await.map_err(|cancelled| match cancelled {
            Cancelled::Condition(_, existing) => Cancelled::Condition((), existing),
            Cancelled::Conflict(text) => Cancelled::Conflict(text),
            Cancelled::Failed(error) => Cancelled::Failed(error),
        })
    }

    /// Attempts a transaction until its answer needs no further attempt by `again`.
    async fn attempts(
        &self,
        writes: &[Write],
        lost: &LostAnswer,
        again: impl Fn(&Cancelled<usize>) -> bool + Send,
    ) -> Result<(), Cancelled<usize>> {
        let actions = writes.iter().map(|write| self.action(write)).collect::<Result<Vec<_>, _>>();
        let actions = actions.map_err(Cancelled::Failed)?;
        let (mut token, mut round) = (request_token(), self.backoff());
        loop {
            let call = self.client.transact_write_items().set_transact_items(Some(actions.clone()));
            let call = call.client_request_token(&token).return_consumed_capacity(ReturnConsumedCapacity::Total);
            let under_way = self.calls.begin(&self.meter).await;
            let result = call.customize().interceptor(lost.clone()).send().await;
            let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_deref());
            under_way.end(Unit::Write, consumed.unwrap_or_default().iter().map(|one| units(Some(one))).sum());
            let Err(error) = result else { return Ok(()) };
            let cancelled = cancelled(&error);
            if !((lost.is_in_progress() || again(&cancelled)) && round.wait().await) {
                return Err(cancelled);
            }
            // DynamoDB executes at most one of the attempts with the same token, including the SDK's own attempts. If
            // every attempt was answered, nothing was done: the next one is a new transaction.
            if !lost.happened() {
                token = request_token();
            }
        }
    }

    fn action(&self, Write { action, condition }: &Write) -> Result<TransactWriteItem, TableError> {
        let table = &*self.table_name;
        // DynamoDB refuses this setting without a condition.
        let old = condition.as_ref().map(|_| ReturnValuesOnConditionCheckFailure::AllOld);
        let update = if let WriteAction::Update(_, update) = action { Some(update) } else { None };
        let Expressions { update, condition, names, values } = Expressions::of(update, condition.as_ref());
        let item = TransactWriteItem::builder();
        Ok(match action {
            WriteAction::Put(put) => item.put(
                Put::builder()
                    .table_name(table)
                    .set_item(Some(put.clone()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(broken)?,
            ),
            WriteAction::Check(key) => item.condition_check(
                ConditionCheck::builder()
                    .table_name(table)
                    .set_key(Some(key.attributes()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(broken)?,
            ),
            WriteAction::Update(key, _) => item.update(
                Update::builder()
                    .table_name(table)
                    .set_key(Some(key.attributes()))
                    .set_update_expression(update)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(broken)?,
            ),
            WriteAction::Delete(key) => item.delete(
                Delete::builder()
                    .table_name(table)
                    .set_key(Some(key.attributes()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(broken)?,
            ),
        }
        .build())
    }
}

/// A `ClientRequestToken`.
fn request_token() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// The reasons for which DynamoDB cancels a transaction that may succeed a moment later. The SDK does not retry a
/// cancelled transaction by itself; it does retry one that is in progress.
const PASSING: [&str; 4] =
    ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "InternalServerError"];

/// Why a transaction was cancelled, with the position of the action whose condition failed. A failed condition is
/// reported first: then no other reason matters.
fn cancelled<R: std::fmt::Debug + 'static>(error: &SdkError<TransactWriteItemsError, R>) -> Cancelled<usize> {
    let Some(reasons) = reasons(error) else { return Cancelled::Failed(failure(error)) };
    let failed = reasons.iter().position(|reason| reason.code() == Some("ConditionalCheckFailed"));
    if let Some(index) = failed {
        return Cancelled::Condition(index, reasons.get(index).and_then(|reason| reason.item.clone()));
    }
    let mut codes = reasons.iter().filter_map(CancellationReason::code).filter(|code| *code != "None");
    let text = codes.clone().collect::<Vec<_>>().join(", ");
    let passes = codes.all(|code| PASSING.contains(&code));
    if passes { Cancelled::Conflict(text) } else { Cancelled::Failed(TableError::Broken(text)) }
}

/// The reasons, one for each action, if it was cancelled.
fn reasons<R>(error: &SdkError<TransactWriteItemsError, R>) -> Option<&[CancellationReason]> {
    match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(exception)) => {
            Some(exception.cancellation_reasons())
        }
        _ => None,
    }
}
