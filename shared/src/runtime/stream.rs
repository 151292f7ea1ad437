//! Functions on the table's stream: the changes that they receive, and their answer, which names the change at which a
//! batch failed.

use std::pin::Pin;

use serde::{Deserialize, Serialize};

use crate::request::error::{Error, Result};
use crate::request::event::EventContext;
use crate::request::event::Handled;
use crate::request::event::Unhandled;
use crate::table::change::Change;

/// A function that handles changes of the table. A change may come more than once, and handling it again must change
/// nothing.
pub trait StreamConsumer: 'static {
    /// Kebab-case name: package, binary, folder.
    const NAME: &'static str;
    /// Seconds for which an invocation retries while the database is unavailable, before it uses up one of the attempts
    /// of the event source. They end well before the timeout of the function.
    const PATIENCE: i64 = 0;

    /// The handler. The changes are in the order of the stream.
    fn handle(cx: &EventContext<'_>, batch: &[Change]) -> impl Future<Output = Handled> + Send;

    /// The handler of the tick, if the template gives the function a schedule too.
    fn tick(_: &EventContext<'_>) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Seconds before the first retry of an invocation, and before later ones.
const FIRST_PAUSE: i64 = 1;
const LONGEST_PAUSE: i64 = 30;

/// A batch, as Lambda passes it.
#[derive(Debug, Deserialize)]
pub struct StreamEvent {
    /// In the order of the stream.
    #[serde(rename = "Records")]
    pub records: Vec<Change>,
}

/// The event of a function on the stream: a batch, or the tick of its schedule, which has no records.
#[derive(Debug, Deserialize)]
pub struct BatchOrTick {
    /// In the order of the stream.
    #[serde(rename = "Records")]
    pub records: Option<Vec<Change>>,
}

/// The answer to a batch: the first change to repeat, if any.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchOutcome {
    /// At most one: Lambda repeats everything from the lowest one.
    pub batch_item_failures: Vec<ItemFailure>,
}

/// A change to repeat.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemFailure {
    /// Its sequence number.
    pub item_identifier: String,
}

/// A consumer without its type.
#[derive(Debug, Clone, Copy)]
pub struct Consumer {
    /// Kebab-case name.
    pub name: &'static str,
    patience: i64,
    handle: Handle,
    tick: crate::runtime::schedule::Tick,
}

type Handle = for<'a> fn(&'a EventContext<'a>, &'a [Change]) -> Pin<Box<dyn Future<Output = Handled> + Send + 'a>>;

impl Consumer {
    /// `C`, without its type.
    pub const fn of<C: StreamConsumer>() -> Self {
        Self {
            name: C::NAME,
            patience: C::PATIENCE,
            handle: |cx, batch| Box::pin(C::handle(cx, batch)),
            tick: |cx| Box::pin(C::tick(cx)),
        }
    }

    /// Handles a batch and returns the change to repeat, if any. An answer that asks for a repeat uses up one of a few
    /// attempts, which are meant for changes that cannot be handled: while the database is unavailable, the invocation
    /// itself retries.
    pub async fn handle(&self, cx: &EventContext<'_>, event: &StreamEvent) -> BatchOutcome {
        let clock = &cx.service.clock;
        let (until, mut pause, mut handled) = (clock.now().plus_seconds(self.patience), FIRST_PAUSE, 0);
        let cause = loop {
            let left = event.records.get(handled..).unwrap_or_default();
            let Err(Unhandled { at, cause }) = (self.handle)(cx, left).await else {
                tracing::info!(consumer = self.name, changes = event.records.len(), "batch");
                return BatchOutcome::default();
            };
            handled += at;
            let again = clock.now().plus_seconds(pause);
            if !matches!(cause, Error::Unavailable(_)) || again > until {
                break cause;
            }
            tracing::info!(consumer = self.name, %cause, pause, "the database is unavailable");
            clock.sleep_until(again).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        };
        let first = event.records.get(handled).or(event.records.first());
        let item_identifier = first.map(|change| change.sequence_number().to_owned()).unwrap_or_default();
        tracing::error!(consumer = self.name, sequence_number = item_identifier, %cause, "change");
        BatchOutcome { batch_item_failures: vec![ItemFailure { item_identifier }] }
    }

    /// Runs the handler of the tick.
    ///
    /// # Errors
    /// The failure of the handler.
    pub async fn tick(&self, cx: &EventContext<'_>) -> Result<()> {
        crate::runtime::schedule::log(self.name, (self.tick)(cx).await)
    }
}
