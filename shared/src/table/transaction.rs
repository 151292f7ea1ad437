//! Transactions: several writes, all or none.

use std::borrow::Cow;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, ConditionCheck, Delete, Put, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use uuid::Uuid;

use crate::runtime::meter::Unit;
use crate::table::TableError;
use crate::table::keys::Key;
use crate::table::retry::{Backoff, failure, is_conflict};
use crate::table::store::{EXISTS, Item, Store, broken, names, some, text, units};

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

    /// Removes the item of `key`, if there is one.
    pub fn delete(key: &Key) -> Self {
        Self::Delete { key: key.clone(), condition: None, values: Item::new() }
    }

    /// Requires that the item of `key` is there, and has this id where one is given.
    pub fn check(key: Key, id: Option<Uuid>) -> Self {
        let values = id.map(|id| (":id".to_owned(), text(id))).into_iter().collect();
        Self::Check { key, condition: if id.is_some() { "id = :id" } else { EXISTS }, values }
    }
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
    /// Does all of `writes`, at most [`TRANSACTION_LIMIT`], or none. Meeting another transaction, it tries again.
    ///
    /// # Errors
    /// [`Cancelled`] says whose condition failed.
    pub(crate) async fn transact(&self, writes: &[Write]) -> Result<(), Cancelled> {
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
            match cancelled(&error) {
                // What the SDK has not tried again by itself.
                Cancelled::Failed(TableError::Unavailable(_))
                    if (reasons(&error).is_some() || is_conflict(&error)) && round.wait().await => {}
                cancelled => return Err(cancelled),
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
}

/// The reasons for which DynamoDB cancels a transaction that may succeed a moment later. The SDK does not try again by itself.
const PASSING: [&str; 4] =
    ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "InternalServerError"];

/// Why a transaction was cancelled. A condition that does not hold is told first: nothing else matters then.
fn cancelled<R: std::fmt::Debug + 'static>(error: &SdkError<TransactWriteItemsError, R>) -> Cancelled {
    let Some(reasons) = reasons(error) else { return Cancelled::Failed(failure(error)) };
    let failed = reasons.iter().position(|reason| reason.code() == Some("ConditionalCheckFailed"));
    if let Some(index) = failed {
        return Cancelled::Condition(index, reasons.get(index).and_then(|reason| reason.item.clone()));
    }
    let mut codes = reasons.iter().filter_map(CancellationReason::code).filter(|code| *code != "None");
    let told = codes.clone().collect::<Vec<_>>().join(", ");
    let passes = codes.all(|code| PASSING.contains(&code));
    Cancelled::Failed(if passes { TableError::Unavailable(told) } else { TableError::Broken(told) })
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
