//! Functions on the table's stream: a change as they see it, and the answer that says which change a batch failed at.

use std::pin::Pin;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_dynamo::{AttributeValue, Item};

use crate::request::error::{Error, Result};
use crate::runtime::schedule::EventContext;
use crate::table::keys::{Key, PK, RECORD, SK};
use crate::values::time::Timestamp;

/// A function that handles changes of the table. A change may come more than once, so handling it again must change nothing.
pub trait StreamConsumer: 'static {
    /// Kebab-case name: package, binary, folder.
    const NAME: &'static str;
    /// Seconds for which an invocation tries again while the database is unavailable, before it uses up one of the attempts of the event source. They end
    /// well before the timeout of the function.
    const PATIENCE: i64 = 0;

    /// The handler. The changes are in the order of the stream.
    fn handle(cx: &EventContext<'_>, batch: &[Change]) -> impl Future<Output = Handled> + Send;

    /// The handler of the tick, where the template gives it a schedule too.
    fn tick(_: &EventContext<'_>) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Seconds until an invocation tries again, at first and later.
const FIRST_PAUSE: i64 = 1;
const LONGEST_PAUSE: i64 = 30;

/// Whether a batch was handled as a whole.
pub type Handled = Result<(), Unhandled>;

/// The change at which a batch failed. The stream repeats this change and all after it.
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

/// A change of an item.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// `INSERT`, `MODIFY` or `REMOVE`.
    event_name: String,
    dynamodb: Images,
    user_identity: Option<UserIdentity>,
}

/// Who made a change, where that was DynamoDB itself.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserIdentity {
    principal_id: String,
}

/// The principal of the changes that DynamoDB itself makes: it removes items whose TTL has passed.
pub const DYNAMODB: &str = "dynamodb.amazonaws.com";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Images {
    keys: Item,
    old_image: Option<Item>,
    new_image: Option<Item>,
    sequence_number: String,
    /// Seconds since 1970.
    #[serde(default)]
    approximate_creation_date_time: f64,
}

impl Change {
    /// Whether the item was removed.
    pub fn is_removal(&self) -> bool {
        self.event_name == "REMOVE"
    }

    /// Whether DynamoDB has removed the item, because its TTL had passed.
    pub fn is_expiry(&self) -> bool {
        self.is_removal() && self.user_identity.as_ref().is_some_and(|by| by.principal_id == DYNAMODB)
    }

    /// Whether the item was made.
    pub fn is_creation(&self) -> bool {
        self.event_name == "INSERT"
    }

    /// Its place in the stream, which tells it from all others.
    pub fn sequence_number(&self) -> &str {
        &self.dynamodb.sequence_number
    }

    /// Milliseconds since the item was changed.
    pub fn age(&self, now: Timestamp) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "a point in time has few digits")]
        let at = (self.dynamodb.approximate_creation_date_time * 1000.0) as i64;
        now.unix_millis() - at
    }

    /// The item's key.
    pub fn key(&self) -> Key {
        let text = |name: &str| text(&self.dynamodb.keys, name).unwrap_or_default().to_owned();
        Key { pk: text(PK), sk: text(SK) }
    }

    /// The record in the item after the change; `None` where it was removed.
    ///
    /// # Errors
    /// [`Error::Internal`] where the item is another record.
    pub fn record<R: DeserializeOwned>(&self) -> Result<Option<R>> {
        read(self.dynamodb.new_image.as_ref())
    }

    /// The record in the item before the change; `None` where it is new.
    ///
    /// # Errors
    /// [`Error::Internal`] where the item was another record.
    pub fn record_before<R: DeserializeOwned>(&self) -> Result<Option<R>> {
        read(self.dynamodb.old_image.as_ref())
    }

    /// The name of the record in the item, before or after the change. Only rows of lists have it.
    pub fn record_name(&self) -> Option<&str> {
        self.text(RECORD).or_else(|| self.text_before(RECORD))
    }

    /// The text of an attribute after the change.
    pub fn text(&self, name: &str) -> Option<&str> {
        text(self.dynamodb.new_image.as_ref()?, name)
    }

    /// The text of an attribute before the change.
    pub fn text_before(&self, name: &str) -> Option<&str> {
        text(self.dynamodb.old_image.as_ref()?, name)
    }
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    match item.get(name) {
        Some(AttributeValue::S(text)) => Some(text),
        _ => None,
    }
}

fn read<R: DeserializeOwned>(image: Option<&Item>) -> Result<Option<R>> {
    let record = image.cloned().map(serde_dynamo::from_item).transpose();
    // The error itself would quote what the item holds, and it is logged.
    record.map_err(|_| Error::Internal(format!("an image is no {}", std::any::type_name::<R>())))
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

    /// Handles a batch and says what to repeat. An answer that asks for a repeat uses up one of a few attempts, which are for changes that cannot be
    /// handled: while the database is unavailable, the invocation itself tries again.
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
