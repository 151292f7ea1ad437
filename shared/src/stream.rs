//! Functions on the table's stream: what one sees of a change, and the answer that says how far a batch has come.

use std::collections::HashMap;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

use crate::context::Service;
use crate::error::Result;
use crate::table::Table;
use crate::table::entities::Key;
use crate::tenant::Tenant;

/// A function that handles changes of the table one by one. A change may come more than once: handling it again changes nothing.
pub trait StreamConsumer: 'static {
    /// Kebab-case name: package, binary, folder.
    const NAME: &'static str;

    /// What is particular to it. An error has the change, and all that follow it in the batch, come again.
    fn handle(cx: &StreamContext<'_>, change: &Change) -> impl Future<Output = Result<()>> + Send;
}

/// What a consumer may touch.
#[derive(Debug)]
pub struct StreamContext<'a> {
    /// The process's own.
    pub service: &'a Service,
}

impl StreamContext<'_> {
    /// The part of the table of the organisation whose item changed.
    pub fn table(&self, tenant: Tenant) -> Table {
        Table::new(self.service.store.clone(), tenant)
    }
}

/// A batch, as Lambda hands it over.
#[derive(Debug, Deserialize)]
pub struct StreamEvent {
    /// In the order of the stream.
    #[serde(rename = "Records")]
    pub records: Vec<Change>,
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
    keys: HashMap<String, StringAttribute>,
    sequence_number: String,
}

/// The keys of this table are text.
#[derive(Debug, Deserialize)]
struct StringAttribute {
    #[serde(rename = "S")]
    s: String,
}

impl Change {
    /// Whether the item is gone.
    pub fn is_removal(&self) -> bool {
        self.event_name == "REMOVE"
    }

    /// The item's key.
    pub fn key(&self) -> Key {
        let text =
            |name| self.dynamodb.keys.get(name).map(|value: &StringAttribute| value.s.clone()).unwrap_or_default();
        Key { pk: text("pk"), sk: text("sk") }
    }
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
}

type Handle = for<'a> fn(&'a StreamContext<'a>, &'a Change) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl Consumer {
    /// `C`, without its type.
    pub const fn of<C: StreamConsumer>() -> Self {
        Self { name: C::NAME, handle: |cx, change| Box::pin(C::handle(cx, change)) }
    }

    /// Handles a batch in its order, as far as it goes.
    pub async fn handle(&self, service: &Service, event: &StreamEvent) -> BatchOutcome {
        let cx = StreamContext { service };
        for change in &event.records {
            if let Err(error) = (self.handle)(&cx, change).await {
                tracing::error!(consumer = self.name, sequence_number = change.dynamodb.sequence_number, %error, "change");
                let item_identifier = change.dynamodb.sequence_number.clone();
                return BatchOutcome { batch_item_failures: vec![ItemFailure { item_identifier }] };
            }
        }
        tracing::info!(consumer = self.name, changes = event.records.len(), "batch");
        BatchOutcome::default()
    }
}
