//! The context of a function without a caller, and the result of a batch of changes.

use crate::request::context::Service;
use crate::request::error::{Error, Result};
use crate::table::Table;
use crate::values::tenant::Tenant;

/// The context of a function without a caller.
#[derive(Debug)]
pub struct EventContext<'a> {
    /// The service of this process.
    pub service: &'a Service,
}

impl EventContext<'_> {
    /// The table of the organisation whose item has changed or is due.
    pub fn table(&self, tenant: Tenant) -> Table {
        Table::new(self.service.store.clone(), tenant)
    }
}

/// The result of a batch: handled completely, or the change at which it failed.
pub type Handled = Result<(), Unhandled>;

/// The change at which a batch failed. The stream repeats this change and all later ones.
#[derive(Debug)]
pub struct Unhandled {
    /// Its place in the batch.
    pub at: usize,
    /// Why.
    pub cause: Error,
}

impl Unhandled {
    /// The batch failed at the change `at`.
    pub fn at(at: usize, cause: impl Into<Error>) -> Self {
        Self { at, cause: cause.into() }
    }

    /// The first of several failures: the stream repeats everything from there.
    ///
    /// # Errors
    /// [`Unhandled`] where there is one.
    pub fn first(stopped: impl IntoIterator<Item = Self>) -> Handled {
        stopped.into_iter().min_by_key(|unhandled| unhandled.at).map_or(Ok(()), Err)
    }
}
