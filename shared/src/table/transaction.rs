//! Transactions: several writes, all or none.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, ConditionCheck, Delete, Put, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update as SdkUpdate,
};
use uuid::Uuid;

use crate::table::error::Cancelled;
use crate::table::error::{TableError, broken};
use crate::table::expression::{Condition, Expressions, Update};
use crate::table::item::{Item, number, text};
use crate::table::keys::{Key, TTL, made_by};
use crate::table::meter::Unit;
use crate::table::part::Table;
use crate::table::retry::{LostAnswer, failure};
use crate::table::store::{Store, units};
use crate::table::unique::UniqueValue;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Seconds for which it is remembered what made a record: longer than a change stays in the stream, or a keyed request may come again
/// ([`MARKED`](crate::request::claim::MARKED)).
const REMEMBERED: i64 = 3 * 86_400;

/// One write of a single item, on a condition where it has one.
#[derive(Debug, Clone)]
pub struct Write {
    action: Action,
    condition: Option<Condition>,
}

/// What a write does.
#[derive(Debug, Clone)]
enum Action {
    Put(Item),
    /// Only requires the condition.
    Check(Key),
    Update(Key, Update),
    Delete(Key),
}

impl Write {
    /// Puts `item`, whatever was there before.
    pub const fn put(item: Item) -> Self {
        Self { action: Action::Put(item), condition: None }
    }

    /// Puts `item` where there is none yet.
    pub fn create(item: Item) -> Self {
        Self::put(item).when(Condition::absent())
    }

    /// Changes attributes of the item of `key`, which it makes where there is none.
    pub const fn update(key: Key, update: Update) -> Self {
        Self { action: Action::Update(key, update), condition: None }
    }

    /// Requires `condition` of the item of `key`.
    pub const fn check(key: Key, condition: Condition) -> Self {
        Self { action: Action::Check(key), condition: Some(condition) }
    }

    /// Removes the item of `key`, if there is one.
    pub const fn delete(key: Key) -> Self {
        Self { action: Action::Delete(key), condition: None }
    }

    /// The same write, on `condition`.
    #[must_use]
    pub fn when(self, condition: Condition) -> Self {
        Self { condition: Some(condition), ..self }
    }
}

/// What it means that the condition of an action does not hold.
#[derive(Debug)]
enum Meaning<M> {
    /// Another row has the unique value that this action takes.
    Taken(UniqueValue),
    /// What the action says.
    Told(M),
}

/// Which condition of a request's writes did not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmet {
    /// That no earlier execution of the request has done them.
    Repeated,
    /// That nobody has changed what was read before.
    Changed,
}

/// A transaction in the making. Its actions may say what it means that their conditions do not hold; of the others it is `otherwise`.
#[derive(Debug)]
pub struct Transaction<'a, M = ()> {
    table: &'a Table,
    writes: Vec<Write>,
    /// By the places of the actions.
    meanings: BTreeMap<usize, Meaning<M>>,
    otherwise: M,
}

/// An action that was added to a transaction.
#[derive(Debug)]
pub struct Added<'t, M> {
    place: usize,
    meanings: &'t mut BTreeMap<usize, Meaning<M>>,
}

impl<M> Added<'_, M> {
    /// Says what it means that its condition does not hold.
    pub fn or(self, means: M) {
        self.meanings.insert(self.place, Meaning::Told(means));
    }
}

impl<'a> Transaction<'a> {
    /// A transaction without an action yet.
    pub(crate) const fn new(table: &'a Table) -> Self {
        Self { table, writes: Vec::new(), meanings: BTreeMap::new(), otherwise: () }
    }

    /// The same, of whose actions a condition that does not hold means `otherwise`, unless they say something else.
    pub(crate) fn otherwise<M>(self, otherwise: M) -> Transaction<'a, M> {
        Transaction { table: self.table, writes: self.writes, meanings: BTreeMap::new(), otherwise }
    }
}

impl<'a, M> Transaction<'a, M> {
    /// Whose part of the table it is about.
    pub const fn tenant(&self) -> &'a Tenant {
        &self.table.tenant
    }

    /// The table.
    pub(super) const fn table(&self) -> &'a Table {
        self.table
    }

    /// How many actions it has.
    pub(super) const fn len(&self) -> usize {
        self.writes.len()
    }

    /// Adds an action.
    pub fn write(&mut self, write: Write) -> Added<'_, M> {
        self.writes.push(write);
        Added { place: self.writes.len() - 1, meanings: &mut self.meanings }
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

    /// Notes that `origin` has made the record `id`, on condition that it has made none.
    pub fn made_by(&mut self, origin: Uuid, id: Uuid, now: Timestamp) -> Added<'_, M> {
        self.made_by_until(origin, id, now.plus_seconds(REMEMBERED))
    }

    /// The same, which is remembered until `until`.
    pub fn made_by_until(&mut self, origin: Uuid, id: Uuid, until: Timestamp) -> Added<'_, M> {
        let mut marker = made_by(self.tenant(), origin).attributes();
        marker.insert("id".to_owned(), text(id));
        marker.insert(TTL.to_owned(), number(until.unix_seconds()));
        self.write(Write::create(marker))
    }

    /// Commits all of it, or nothing. Meeting another transaction, it tries again. A single put is no transaction, which would cost twice as much.
    ///
    /// # Errors
    /// [`Cancelled`]; [`TableError::Taken`] where another row has a unique value.
    pub(crate) async fn commit(self) -> Result<(), Cancelled<M>> {
        self.commit_noting(&LostAnswer::default()).await
    }

    /// The same, and notes in `lost` whether an attempt got no answer: then it may be done where this fails, or may yet be.
    ///
    /// # Errors
    /// As of [`Transaction::commit`].
    pub(crate) async fn commit_noting(self, lost: &LostAnswer) -> Result<(), Cancelled<M>> {
        let store = &self.table.store;
        if let [Write { action: Action::Put(item), condition }] = &self.writes[..] {
            let put = store.put_where(item, condition.as_ref(), lost).await;
            return put.map_err(|cancelled| self.explained(cancelled, |()| 0));
        }
        let committed =
            store.attempts(&self.writes, lost, |cancelled| matches!(cancelled, Cancelled::Conflict(_))).await;
        committed.map_err(|cancelled| self.explained(cancelled, |place| place))
    }

    /// The same, without trying again where it meets another transaction: for conditions that are likely not to hold any more by then.
    ///
    /// # Errors
    /// As of [`Transaction::commit`].
    pub(crate) async fn commit_once(self, lost: &LostAnswer) -> Result<(), Cancelled<M>> {
        let committed = self.table.store.attempts(&self.writes, lost, |_| false).await;
        committed.map_err(|cancelled| self.explained(cancelled, |place| place))
    }

    /// Says what a failure means, where `place` gives that of the action.
    fn explained<P>(mut self, cancelled: Cancelled<P>, place: impl FnOnce(P) -> usize) -> Cancelled<M> {
        match cancelled {
            Cancelled::Condition(at, stands) => match self.meanings.remove(&place(at)) {
                Some(Meaning::Taken(UniqueValue { term, taken })) => {
                    Cancelled::Failed(TableError::Taken { field: term.field(), kind: taken })
                }
                Some(Meaning::Told(means)) => Cancelled::Condition(means, stands),
                None => Cancelled::Condition(self.otherwise, stands),
            },
            Cancelled::Conflict(told) => Cancelled::Conflict(told),
            Cancelled::Failed(error) => Cancelled::Failed(error),
        }
    }
}

impl<'a> Transaction<'a, Unmet> {
    /// The writes of a request, which may be executed more than once.
    pub(crate) fn of_request(table: &'a Table) -> Self {
        Transaction::new(table).otherwise(Unmet::Changed)
    }

    /// Notes that the request has made the record `id`, where it may be repeated; its repeat is known by `origin`.
    pub(crate) fn once(&mut self, origin: Option<Uuid>, id: Uuid, now: Timestamp) {
        if let Some(origin) = origin {
            self.made_by(origin, id, now).or(Unmet::Repeated);
        }
    }
}

impl Store {
    /// Does all of `writes`, at most a hundred, or none. Meeting another transaction, it tries again.
    ///
    /// # Errors
    /// [`Cancelled`], whosever condition failed.
    pub(crate) async fn transact(&self, writes: &[Write]) -> Result<(), Cancelled> {
        let again = |cancelled: &Cancelled<usize>| matches!(cancelled, Cancelled::Conflict(_));
        self.attempts(writes, &LostAnswer::default(), again).await.map_err(|cancelled| match cancelled {
            Cancelled::Condition(_, stands) => Cancelled::Condition((), stands),
            Cancelled::Conflict(told) => Cancelled::Conflict(told),
            Cancelled::Failed(error) => Cancelled::Failed(error),
        })
    }

    /// Attempts a transaction until it has an answer that is not to be tried `again`.
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
            // Of attempts with one token, those of the SDK among them, DynamoDB carries out one at most. Where every attempt was answered, nothing
            // was done: the next one is a new transaction.
            if !lost.happened() {
                token = request_token();
            }
        }
    }

    fn action(&self, Write { action, condition }: &Write) -> Result<TransactWriteItem, TableError> {
        let table = &*self.table_name;
        // Without a condition it must not be asked for.
        let old = condition.as_ref().map(|_| ReturnValuesOnConditionCheckFailure::AllOld);
        let update = if let Action::Update(_, update) = action { Some(update) } else { None };
        let Expressions { update, condition, names, values } = Expressions::of(update, condition.as_ref());
        let item = TransactWriteItem::builder();
        Ok(match action {
            Action::Put(put) => item.put(
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
            Action::Check(key) => item.condition_check(
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
            Action::Update(key, _) => item.update(
                SdkUpdate::builder()
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
            Action::Delete(key) => item.delete(
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

/// The reasons for which DynamoDB cancels a transaction that may succeed a moment later. The SDK does not try again by itself where a
/// transaction was cancelled; where it is in progress, it does.
const PASSING: [&str; 4] =
    ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "InternalServerError"];

/// Why a transaction was cancelled, with the place of the action whose condition failed. A condition that does not hold is told first: nothing else matters then.
fn cancelled<R: std::fmt::Debug + 'static>(error: &SdkError<TransactWriteItemsError, R>) -> Cancelled<usize> {
    let Some(reasons) = reasons(error) else { return Cancelled::Failed(failure(error)) };
    let failed = reasons.iter().position(|reason| reason.code() == Some("ConditionalCheckFailed"));
    if let Some(index) = failed {
        return Cancelled::Condition(index, reasons.get(index).and_then(|reason| reason.item.clone()));
    }
    let mut codes = reasons.iter().filter_map(CancellationReason::code).filter(|code| *code != "None");
    let told = codes.clone().collect::<Vec<_>>().join(", ");
    let passes = codes.all(|code| PASSING.contains(&code));
    if passes { Cancelled::Conflict(told) } else { Cancelled::Failed(TableError::Broken(told)) }
}

/// The reasons, one for each action, where it was cancelled.
fn reasons<R>(error: &SdkError<TransactWriteItemsError, R>) -> Option<&[CancellationReason]> {
    match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(exception)) => {
            Some(exception.cancellation_reasons())
        }
        _ => None,
    }
}
