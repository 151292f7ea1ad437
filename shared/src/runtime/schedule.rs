//! Functions on a schedule: what becomes due is looked for every minute.

use std::pin::Pin;

use crate::request::context::Service;
use crate::request::error::Result;
use crate::request::tenant::Tenant;
use crate::table::Table;

/// A function that runs every minute. Two may run at once, and one may die half way: what is done is done once all the same.
pub trait ScheduledTask: 'static {
    /// Kebab-case name: package, binary, folder.
    const NAME: &'static str;

    /// What is particular to it.
    fn tick(cx: &EventContext<'_>) -> impl Future<Output = Result<()>> + Send;
}

/// What a function without a caller may touch.
#[derive(Debug)]
pub struct EventContext<'a> {
    /// The process's own.
    pub service: &'a Service,
}

impl EventContext<'_> {
    /// The part of the table of the organisation whose item changed, or became due.
    pub fn table(&self, tenant: Tenant) -> Table {
        Table::new(self.service.store.clone(), tenant)
    }
}

/// A scheduled task without its type.
#[derive(Debug, Clone, Copy)]
pub struct Scheduled {
    /// Kebab-case name.
    pub name: &'static str,
    tick: Tick,
}

/// What happens every minute.
pub(crate) type Tick = for<'a> fn(&'a EventContext<'a>) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl Scheduled {
    /// `T`, without its type.
    pub const fn of<T: ScheduledTask>() -> Self {
        Self { name: T::NAME, tick: |cx| Box::pin(T::tick(cx)) }
    }

    /// Does what it does every minute.
    ///
    /// # Errors
    /// Whatever kept it from it: what is still due is so in the next minute too.
    pub async fn tick(&self, cx: &EventContext<'_>) -> Result<()> {
        log(self.name, (self.tick)(cx).await)
    }
}

pub(crate) fn log(name: &str, result: Result<()>) -> Result<()> {
    tracing::info!(function = name, cause = result.as_ref().err().map(ToString::to_string), "tick");
    result
}
