//! The reasons why a call of the table, or one of its writes, failed.

use std::convert::Infallible;

use crate::table::item::Item;
use crate::table::plan_limits::Exceeded;
use crate::table::quota::Reached;
use crate::values::cause::chain;

/// Why the table did not execute a call.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The record of the call does not exist.
    #[error("no such record")]
    Missing,
    /// A field of the record names another record that does not exist.
    #[error("{0} names no record")]
    Unknown(&'static str),
    /// Another record has the value of this field, which is unique.
    #[error("{field} is taken")]
    Taken {
        /// The field.
        field: &'static str,
        /// The kind of the 409.
        kind: &'static str,
    },
    /// A quota of the organisation leaves no room for the write.
    #[error("{0}")]
    QuotaReached(Reached),
    /// The plan of a user leaves no room for the write.
    #[error("{0}")]
    Exceeded(Exceeded),
    /// The database did not answer in time, throttled, or its answer was lost, after all retries.
    #[error("{0}")]
    Unavailable(String),
    /// A defect of the service: the database refused the request, or an item cannot be read.
    #[error("{0}")]
    Broken(String),
}

/// Why a write did nothing, according to the answer to its last attempt. `M` is the meaning of a failed condition.
#[derive(Debug)]
pub enum Cancelled<M = ()> {
    /// A condition failed: its meaning, and the item as it was, if there was one.
    Condition(M, Option<Item>),
    /// It conflicted with another write of the same item, or was throttled: a later attempt may succeed.
    Conflict(String),
    /// Anything else.
    Failed(TableError),
}

/// Why a row was neither changed nor removed.
#[derive(Debug)]
pub enum NotChanged<E> {
    /// The function that decides about the change refused it.
    Refused(E),
    /// The table failed.
    Failed(TableError),
}

impl<E> From<TableError> for NotChanged<E> {
    fn from(error: TableError) -> Self {
        Self::Failed(error)
    }
}

impl From<NotChanged<Infallible>> for TableError {
    fn from(error: NotChanged<Infallible>) -> Self {
        match error {
            NotChanged::Refused(never) => match never {},
            NotChanged::Failed(error) => error,
        }
    }
}

/// Whether a write was done; false if its condition failed.
///
/// # Errors
/// [`TableError`] where it failed for another reason.
pub(crate) fn was_done<T, M>(written: Result<T, Cancelled<M>>) -> Result<bool, TableError> {
    match written {
        Ok(_) => Ok(true),
        Err(Cancelled::Condition(..)) => Ok(false),
        Err(cancelled) => Err(cancelled.into()),
    }
}

impl<M> From<TableError> for Cancelled<M> {
    fn from(error: TableError) -> Self {
        Self::Failed(error)
    }
}

impl<M> From<Cancelled<M>> for TableError {
    fn from(cancelled: Cancelled<M>) -> Self {
        match cancelled {
            Cancelled::Condition(..) => Self::Missing,
            Cancelled::Conflict(text) => Self::Unavailable(text),
            Cancelled::Failed(error) => error,
        }
    }
}

pub(super) fn broken(error: impl std::error::Error) -> TableError {
    TableError::Broken(chain(&error))
}
