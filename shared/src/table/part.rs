//! One organisation's part of the table.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use crate::table::error::TableError;
use crate::table::item::{Item, from_item, hide, key_of, readable, target_id, text, to_item};
use crate::table::keys::{Key, RECORD};
use crate::table::store::Store;
use crate::table::stored::{Single, Stored, is_proven};
use crate::values::tenant::Tenant;

/// One organisation's part of the table: it cannot address the part of another organisation.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) store: Store,
    pub(crate) tenant: Tenant,
    /// The stamp of the rows that it writes, for a request with a key.
    pub(super) stamp: Option<Arc<str>>,
}

impl Table {
    /// `tenant`'s part of the table.
    pub const fn new(store: Store, tenant: Tenant) -> Self {
        Self { store, tenant, stamp: None }
    }

    /// The record `id`.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn get<R: Stored>(&self, id: R::Id) -> Result<R, TableError> {
        self.find(id).await?.ok_or(TableError::Missing)
    }

    /// The record `id`, if there is one.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn find<R: Stored>(&self, id: R::Id) -> Result<Option<R>, TableError> {
        self.find_item::<R>(id).await?.map(from_item).transpose()
    }

    /// The records of `ids`, in no order; missing ones are left out.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_each<R: Stored<Id: Ord>>(&self, ids: &BTreeSet<R::Id>) -> Result<Vec<R>, TableError> {
        Ok(readable(self.items_of::<R>(ids).await?))
    }

    /// Their items.
    pub(super) async fn items_of<R: Stored<Id: Ord>>(&self, ids: &BTreeSet<R::Id>) -> Result<Vec<Item>, TableError> {
        let wanted: HashSet<(Key, Option<Uuid>)> = ids.iter().map(|id| (self.key::<R>(*id), R::proof(*id))).collect();
        let keys: HashSet<Key> = wanted.iter().map(|(key, _)| key.clone()).collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        let proven = |item: &Item| {
            let Some(key) = key_of(item) else { return false };
            wanted.contains(&(key.clone(), None)) || wanted.contains(&(key, target_id(item).ok()))
        };
        Ok(self.store.get_all(&keys).await?.into_iter().filter(proven).collect())
    }

    /// Puts a record outside any list; replaces an existing one.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_single<R: Single + Clone>(&self, id: R::Id, record: &R) -> Result<(), TableError> {
        let mut sealed = Cow::Borrowed(record);
        if R::HAS_SECRETS {
            self.seal(sealed.to_mut()).await?;
        }
        self.store.put(self.item(id, &*sealed)?).await
    }

    /// Removes a record outside any list, and returns it as it was, in one conditional write.
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
    /// [`TableError::Broken`] where the record cannot be one.
    pub(crate) fn item<R: Stored>(&self, id: R::Id, record: &R) -> Result<Item, TableError> {
        let mut item = to_item(&self.key::<R>(id), record)?;
        record.hide(&mut item)?;
        if let Some(name) = R::RECORD {
            item.insert(RECORD.to_owned(), text(name));
            self.stamp(&mut item);
        }
        if let Some(due_pk) = record.due_partition(id) {
            hide(&mut item, "due_pk", &due_pk)?;
        }
        Ok(item)
    }
}
