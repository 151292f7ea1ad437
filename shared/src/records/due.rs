//! The index `Due` of the table, which shows the items that become due.

use futures_util::future::try_join_all;
use uuid::Uuid;

use crate::table::TableError;
use crate::table::keys::{Key, due_partition, due_partitions};
use crate::table::store::Store;
use crate::values::time::Timestamp;

/// A kind of item that becomes due. Each kind has partitions of its own in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Due {
    /// Deliveries that wait for a retry, and ready ones that were not sent.
    Delivery,
    /// Endpoints with an open circuit, or with deferred deliveries.
    Endpoint,
    /// Campaigns that are being sent.
    Campaign,
    /// Webhooks at the payment provider whose agencies are deleted.
    RetiredWebhook,
}

impl Due {
    const fn name(self) -> &'static str {
        match self {
            Self::Delivery => "DELIVERY",
            Self::Endpoint => "ENDPOINT",
            Self::Campaign => "CAMPAIGN",
            Self::RetiredWebhook => "RETIRED_WEBHOOK",
        }
    }

    /// The partition of the index for `item`.
    pub fn partition(self, item: Uuid) -> String {
        due_partition(self.name(), item)
    }

    /// All partitions of this kind.
    pub fn partitions(self) -> impl Iterator<Item = String> {
        due_partitions(self.name())
    }
}

impl Store {
    /// The keys of all items that are due by `now`, in all organisations: the earliest `limit` of each partition.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn due(&self, kind: Due, now: Timestamp, limit: i32) -> Result<Vec<Key>, TableError> {
        let until = now.to_string();
        let partitions: Vec<String> = kind.partitions().collect();
        let queries = partitions.iter().map(|partition| self.query_due(partition, &until, limit));
        Ok(try_join_all(queries).await?.concat())
    }
}
