//! Functions on a schedule, which run every minute.

use std::pin::Pin;

use crate::request::error::Result;
use crate::request::event::EventContext;

/// A function that runs every minute. Two invocations may overlap, and one may crash in the middle; each effect must
/// still happen once.
pub trait ScheduledTask: 'static {
    /// Kebab-case name: package, binary, folder.
    const NAME: &'static str;

    /// The handler.
    fn tick(cx: &EventContext<'_>) -> impl Future<Output = Result<()>> + Send;
}

/// A scheduled task without its type.
#[derive(Debug, Clone, Copy)]
pub struct Scheduled {
    /// Kebab-case name.
    pub name: &'static str,
    tick: Tick,
}

/// The handler, every minute.
pub(crate) type Tick = for<'a> fn(&'a EventContext<'a>) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl Scheduled {
    /// `T`, without its type.
    pub const fn of<T: ScheduledTask>() -> Self {
        Self { name: T::NAME, tick: |cx| Box::pin(T::tick(cx)) }
    }

    /// Runs the handler of the tick.
    ///
    /// # Errors
    /// The failure of the handler. Work that is still due stays due in the next minute.
    pub async fn tick(&self, cx: &EventContext<'_>) -> Result<()> {
        log(self.name, (self.tick)(cx).await)
    }
}

pub(crate) fn log(name: &str, result: Result<()>) -> Result<()> {
    tracing::info!(function = name, cause = result.as_ref().err().map(ToString::to_string), "tick");
    result
}
