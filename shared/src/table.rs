//! The single table. It names no record: what is particular to one is in [`records`](crate::records).
//!
//! - [`stored`] says where a record stands: alone, or in a list. [`keys`] has every form of key.
//! - [`list`] reads pages of lists with exact totals, [`filters`] selects rows from them.
//! - [`reservation`] takes ordinals at the end of a list, [`rows`] inserts, changes and removes rows together with what leads to them, `once`
//!   inserts rows of which there is one for the same thing, [`cascade`] removes what belongs to a removed record.
//! - `tokens` takes tokens from a bucket that many processes share.
//! - [`transaction`] is several writes, all or none.
//! - [`item`] makes items of records. [`store`] and `query` make the calls themselves, `retry` says which failures are worth another attempt,
//!   [`wire`] reads pages without the SDK, `recent` is what a process remembers.

use std::collections::{BTreeSet, HashSet};

use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::table::keys::{Key, RECORD};
use crate::table::store::{Item, Store, from_item, hide, key_of, made_id, text, to_item};
use crate::table::stored::{Single, Stored};
use crate::values::tenant::Tenant;

mod call;
pub mod cascade;
pub mod change;
pub mod dates;
pub mod declaration;
mod expiry;
pub mod filters;
pub mod item;
pub mod keys;
pub mod list;
pub mod meter;
mod once;
pub mod page;
mod query;
mod recent;
pub mod reservation;
pub mod retry;
pub mod rows;
pub mod store;
pub mod stored;
pub(crate) mod tokens;
pub mod transaction;
pub mod unique;
pub mod wire;

pub use keys::Fingerprint;

/// Why the table did not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The record that the call is about is not there.
    #[error("no such record")]
    Missing,
    /// A field of the record names another one that is not there.
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
    /// The database did not answer in time, throttled, or its answer was lost, after all retries.
    #[error("{0}")]
    Unavailable(String),
    /// A defect of ours: the database refused the request, or an item cannot be read.
    #[error("{0}")]
    Broken(String),
}

/// One organisation's part of the table: there is no way to name another's.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) store: Store,
    pub(crate) tenant: Tenant,
}

impl Table {
    /// `tenant`'s part of the table.
    pub const fn new(store: Store, tenant: Tenant) -> Self {
        Self { store, tenant }
    }

    /// The record `id`.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn get<R: Stored>(&self, id: R::Id) -> Result<R, TableError> {
        self.find(id).await?.ok_or(TableError::Missing)
    }

    /// The record `id`, where there is one.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn find<R: Stored>(&self, id: R::Id) -> Result<Option<R>, TableError> {
        self.find_item::<R>(id).await?.map(from_item).transpose()
    }

    /// The records of `ids`, in no order; those that are not there are left out.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_each<R: Stored<Id: Ord>>(&self, ids: &BTreeSet<R::Id>) -> Result<Vec<R>, TableError> {
        let wanted: HashSet<(Key, Option<Uuid>)> = ids.iter().map(|id| (self.key::<R>(*id), R::proof(*id))).collect();
        let keys: HashSet<Key> = wanted.iter().map(|(key, _)| key.clone()).collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        let proven = |item: &Item| {
            let Some(key) = key_of(item) else { return false };
            wanted.contains(&(key.clone(), None)) || wanted.contains(&(key, made_id(item).ok()))
        };
        Ok(readable(self.store.get_all(&keys).await?.into_iter().filter(proven)))
    }

    /// Puts a record that stands alone, whatever was there before.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_single<R: Single>(&self, id: R::Id, record: &R) -> Result<(), TableError> {
        self.store.put(self.item(id, record)?).await
    }

    /// Removes a record that stands alone, and returns what it was, in one conditional write.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn remove_single<R: Single>(&self, id: R::Id) -> Result<R, TableError> {
        from_item(self.store.delete(&self.key::<R>(id)).await?)
    }

    pub(crate) async fn find_item<R: Stored>(&self, id: R::Id) -> Result<Option<Item>, TableError> {
        Ok(self.store.get(&self.key::<R>(id)).await?.filter(|item| is_proven::<R>(item, id)))
    }

    /// The key of the record `id`.
    pub fn key<R: Stored>(&self, id: R::Id) -> Key {
        R::key(&self.tenant, id)
    }

    /// `record` as an item.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be one.
    pub(crate) fn item<R: Stored>(&self, id: R::Id, record: &R) -> Result<Item, TableError> {
        let mut item = to_item(&self.key::<R>(id), record)?;
        record.hide(&mut item)?;
        item.extend(R::RECORD.map(|name| (RECORD.to_owned(), text(name))));
        if let Some(due_pk) = record.due_partition(id) {
            hide(&mut item, "due_pk", &due_pk)?;
        }
        Ok(item)
    }
}

/// Whether `item` is the record `id`, and not another row that once had or now has its ordinal.
pub(crate) fn is_proven<R: Stored>(item: &Item, id: R::Id) -> bool {
    has_id(item, R::proof(id))
}

/// Whether `item` has this id, where one is asked for.
pub(crate) fn has_id(item: &Item, id: Option<Uuid>) -> bool {
    id.is_none_or(|id| item.get("id") == Some(&text(id)))
}

/// The records that `items` hold. One that cannot be read is left out and logged: it must not take its whole page along. An alarm
/// counts these lines.
pub(crate) fn readable<R: DeserializeOwned>(items: impl IntoIterator<Item = Item>) -> Vec<R> {
    let read = |item: Item| {
        let key = key_of(&item);
        from_item(item).inspect_err(|error| unreadable(key.as_ref(), error)).ok()
    };
    items.into_iter().filter_map(read).collect()
}

/// Logs that the item at `key` cannot be read.
pub(crate) fn unreadable(key: Option<&Key>, cause: &dyn std::fmt::Display) {
    let (pk, sk) = key.map(|key| (key.pk.as_str(), key.sk.as_str())).unwrap_or_default();
    tracing::error!(pk, sk, %cause, "unreadable item");
}
