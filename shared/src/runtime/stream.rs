//! Functions on the table's stream: what one sees of a change, and the answer that says how far a batch has come.

use std::pin::Pin;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_dynamo::{AttributeValue, Item};

use crate::request::error::{Error, Result, chain};
use crate::runtime::schedule::EventContext;
use crate::table::keys::{Key, PK, RECORD, SK};

/// A function that handles changes of the table. A change may come more than once: handling it again changes nothing.
pub trait StreamConsumer: 'static {
    /// Kebab-case name: package, binary, folder.
    const NAME: &'static str;

    /// What is particular to it. The changes stand in the order of the stream.
    fn handle(cx: &EventContext<'_>, batch: &[Change]) -> impl Future<Output = Handled> + Send;

    /// What it does every minute, where the template gives it a schedule as well.
    fn tick(_: &EventContext<'_>) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Whether all of a batch was handled.
pub type Handled = Result<(), Unhandled>;

/// Where a batch stopped: this change, and all behind it, come again.
#[derive(Debug)]
pub struct Unhandled {
    /// Its place in the batch.
    pub at: usize,
    /// Why.
    pub cause: Error,
}

impl Unhandled {
    /// The batch stopped at the change `at`.
    pub fn at(at: usize, cause: impl Into<Error>) -> Self {
        Self { at, cause: cause.into() }
    }

    /// The first place at which a batch stopped, of several: everything from there on comes again.
    ///
    /// # Errors
    /// [`Unhandled`] where there is one.
    pub fn first(stopped: impl IntoIterator<Item = Self>) -> Handled {
        stopped.into_iter().min_by_key(|unhandled| unhandled.at).map_or(Ok(()), Err)
    }
}

/// A batch, as Lambda hands it over.
#[derive(Debug, Deserialize)]
pub struct StreamEvent {
    /// In the order of the stream.
    #[serde(rename = "Records")]
    pub records: Vec<Change>,
}

/// What a function on the stream is invoked with: a batch, or the tick of its schedule, which has no records.
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
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Images {
    keys: Item,
    old_image: Option<Item>,
    new_image: Option<Item>,
    sequence_number: String,
}

impl Change {
    /// Whether the item is gone.
    pub fn is_removal(&self) -> bool {
        self.event_name == "REMOVE"
    }

    /// The item's key.
    pub fn key(&self) -> Key {
        let text = |name: &str| text(&self.dynamodb.keys, name).unwrap_or_default().to_owned();
        Key { pk: text(PK), sk: text(SK) }
    }

    /// The record that the item now holds; none where it is gone.
    ///
    /// # Errors
    /// [`Error::Internal`] where the item holds something else.
    pub fn record<R: DeserializeOwned>(&self) -> Result<Option<R>> {
        read(self.dynamodb.new_image.as_ref())
    }

    /// The record that the item held before the change; none where it is new.
    ///
    /// # Errors
    /// [`Error::Internal`] where the item held something else.
    pub fn record_before<R: DeserializeOwned>(&self) -> Result<Option<R>> {
        read(self.dynamodb.old_image.as_ref())
    }

    /// The name of the record that the item holds, or held: those of lists say it.
    pub fn record_name(&self) -> Option<&str> {
        self.text(RECORD).or_else(|| self.text_before(RECORD))
    }

    /// The text of an attribute, as it is now.
    pub fn text(&self, name: &str) -> Option<&str> {
        text(self.dynamodb.new_image.as_ref()?, name)
    }

    /// The text of an attribute, as it was before the change.
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
    record.map_err(|error| Error::Internal(chain(&error)))
}

/// What is answered of a batch: the first change that has to come again, if any.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchOutcome {
    /// At most one: Lambda sends everything from the lowest one on again.
    pub batch_item_failures: Vec<ItemFailure>,
}

/// A change that has to come again.
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
    handle: Handle,
    tick: crate::runtime::schedule::Tick,
}

type Handle = for<'a> fn(&'a EventContext<'a>, &'a [Change]) -> Pin<Box<dyn Future<Output = Handled> + Send + 'a>>;

impl Consumer {
    /// `C`, without its type.
    pub const fn of<C: StreamConsumer>() -> Self {
        Self { name: C::NAME, handle: |cx, batch| Box::pin(C::handle(cx, batch)), tick: |cx| Box::pin(C::tick(cx)) }
    }

    /// Handles a batch, as far as it goes.
    pub async fn handle(&self, cx: &EventContext<'_>, event: &StreamEvent) -> BatchOutcome {
        let Err(Unhandled { at, cause }) = (self.handle)(cx, &event.records).await else {
            tracing::info!(consumer = self.name, changes = event.records.len(), "batch");
            return BatchOutcome::default();
        };
        let first = event.records.get(at).or(event.records.first());
        let item_identifier = first.map(|change| change.dynamodb.sequence_number.clone()).unwrap_or_default();
        tracing::error!(consumer = self.name, sequence_number = item_identifier, %cause, "change");
        BatchOutcome { batch_item_failures: vec![ItemFailure { item_identifier }] }
    }

    /// Does what it does every minute.
    ///
    /// # Errors
    /// Whatever kept it from it.
    pub async fn tick(&self, cx: &EventContext<'_>) -> Result<()> {
        crate::runtime::schedule::log(self.name, (self.tick)(cx).await)
    }
}
