//! One function per access pattern. A [`Table`] is one organisation's part of the table: there is no way to name another's.

use std::collections::{BTreeSet, HashSet};

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::records::agency::{Agency, StoredPaymentWebhook};
use crate::records::claim::Claim;
use crate::records::tag::Link;
use crate::records::webhook::StoredWebhook;
use crate::request::tenant::Tenant;
use crate::table::keys::{Entity, Fingerprint, Key, tag_link};
use crate::table::list::{REMOVE_LIMIT, made_id};
use crate::table::store::{Cancelled, Item, Store, Write, from_item, key_of, number, text, to_item, values};
use crate::table::{ATTEMPTS, TableError};
use crate::values::bytes::Bytes;
use crate::values::id::{AgencyId, LinkId, TagId, WebhookId};
use crate::values::time::Timestamp;

/// One organisation's part of the table.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) store: Store,
    pub(crate) tenant: Tenant,
}

/// What a pointer points to, and its own key.
fn pointer(item: &Item) -> Option<(LinkId, Key)> {
    Some((LinkId(made_id(item).ok()?), key_of(item)?))
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
    pub async fn get<R: Entity>(&self, id: R::Id) -> Result<R, TableError> {
        self.find(id).await?.ok_or(TableError::Missing)
    }

    /// The records of `ids`, in no order; those that are not there are left out.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_each<R: Entity<Id: Ord>>(&self, ids: &BTreeSet<R::Id>) -> Result<Vec<R>, TableError> {
        let wanted: HashSet<(Key, Option<Uuid>)> = ids.iter().map(|id| (self.key::<R>(*id), R::proof(*id))).collect();
        let keys: HashSet<Key> = wanted.iter().map(|(key, _)| key.clone()).collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        let proven = |item: &Item| {
            let Some(key) = key_of(item) else { return false };
            wanted.contains(&(key.clone(), None)) || wanted.contains(&(key, made_id(item).ok()))
        };
        self.store.get_all(&keys).await?.into_iter().filter(proven).map(from_item).collect()
    }

    /// The record `id`, where there is one.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn find<R: Entity>(&self, id: R::Id) -> Result<Option<R>, TableError> {
        let item = self.store.get(&self.key::<R>(id)).await?;
        let proven = |item: &Item| R::proof(id).is_none_or(|id| item.get("id") == Some(&text(id)));
        item.filter(proven).map(from_item).transpose()
    }

    /// Puts `record` under `id`. A fresh id makes it a creation, which may be repeated without a second effect.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put<R: Entity>(&self, id: R::Id, record: &R) -> Result<(), TableError> {
        self.store.put(self.item(id, record)?).await
    }

    /// Puts `record` under `id` on condition that the `Parent` is there, in one call.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the parent is not there.
    pub async fn put_under<Parent: Entity, R: Entity>(
        &self,
        parent: Parent::Id,
        id: R::Id,
        record: &R,
    ) -> Result<(), TableError> {
        let writes = [self.require::<Parent>(parent), Write::put(self.item(id, record)?)];
        Ok(self.store.transact(&writes).await?)
    }

    /// The part of a transaction that requires the record `id` to be there.
    pub(crate) fn require<R: Entity>(&self, id: R::Id) -> Write {
        Write::check(self.key::<R>(id), R::proof(id))
    }

    /// Removes the record `id` and returns what it was, in one conditional write.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn remove<R: Entity>(&self, id: R::Id) -> Result<R, TableError> {
        from_item(self.store.delete(&self.key::<R>(id)).await?)
    }

    /// Removes all links of a tag from the link list, some at a time. Done again, it does nothing.
    ///
    /// # Errors
    /// [`TableError`]: some may be left, and the next time goes on with them.
    pub async fn remove_links_of(&self, tag: TagId) -> Result<(), TableError> {
        loop {
            let first = tag_link(&self.tenant, tag, 0);
            let pointers = self.store.query(&first.pk, &first.sk, Some(REMOVE_LIMIT)).await?;
            let (ids, keys): (Vec<LinkId>, Vec<Key>) = pointers.iter().filter_map(pointer).unzip();
            if ids.is_empty() {
                return Ok(());
            }
            match self.remove_rows::<Link>((), &ids, &keys).await {
                Err(TableError::Missing) => {}
                result => {
                    result?;
                    continue;
                }
            }
            // One of them has gone by other hands: each goes by itself, and of that one what still points to it.
            for (id, key) in ids.iter().zip(&keys) {
                match self.remove_rows::<Link>((), &[*id], std::slice::from_ref(key)).await {
                    Err(TableError::Missing) => match self.store.delete(key).await {
                        Ok(_) | Err(TableError::Missing) => {}
                        Err(error) => return Err(error),
                    },
                    result => result?,
                }
            }
        }
    }

    /// The agency `id`, and its webhook at the payment provider where there is one: they share a partition.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such agency.
    pub async fn agency_with_payment_webhook(
        &self,
        id: AgencyId,
    ) -> Result<(Agency, Option<StoredPaymentWebhook>), TableError> {
        let key = self.key::<Agency>(id);
        let mut items = self.store.query(&key.pk, &key.sk, None).await?.into_iter();
        let agency = from_item(items.next().ok_or(TableError::Missing)?)?;
        Ok((agency, items.next().map(from_item).transpose()?))
    }

    /// Changes a webhook by `change`, again where somebody else changed it meanwhile. Of one request the change is made once.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn change_webhook(
        &self,
        id: WebhookId,
        by: Uuid,
        change: impl Fn(StoredWebhook) -> StoredWebhook + Sync,
    ) -> Result<StoredWebhook, TableError> {
        let mut known: StoredWebhook = self.get(id).await?;
        for _ in 0..ATTEMPTS {
            if known.changed_by == Some(by) {
                return Ok(known);
            }
            let seen = known.version;
            let changed = StoredWebhook { version: seen + 1, changed_by: Some(by), ..change(known) };
            let values = values([(":id", text(id)), (":seen", number(seen))]);
            match self.store.put_if(&self.item(id, &changed)?, "id = :id AND version = :seen", &values).await {
                Ok(()) => return Ok(changed),
                Err(Cancelled::Condition(_, stands)) => known = from_item(stands.ok_or(TableError::Missing)?)?,
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
        Err(TableError::Unavailable("others kept changing the webhook".into()))
    }

    /// Puts `claim` at `key` where none is, or one that has had its time; returns the one that is in the way.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn claim(&self, key: Fingerprint, claim: &Claim, now: Timestamp) -> Result<Option<Claim>, TableError> {
        let (condition, values) =
            ("attribute_not_exists(pk) OR #ttl <= :now", values([(":now", number(now.unix_seconds()))]));
        match self.store.put_if(&self.item(key, claim)?, condition, &values).await {
            Ok(()) => Ok(None),
            Err(Cancelled::Condition(_, Some(other))) => from_item(other).map(Some),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Puts `claim` in the place of one that `holder` holds; false where that one is no longer there.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn replace_claim(&self, key: Fingerprint, claim: &Claim, holder: &Bytes) -> Result<bool, TableError> {
        let values = values([(":holder", AttributeValue::B(holder.expose().into()))]);
        match self.store.put_if(&self.item(key, claim)?, "holder = :holder", &values).await {
            Ok(()) => Ok(true),
            // Where an attempt's answer was lost, what is in the way may be this very claim.
            Err(Cancelled::Condition(_, stood)) => {
                Ok(stood.map(from_item::<Claim>).transpose()?.as_ref() == Some(claim))
            }
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    pub(crate) fn key<R: Entity>(&self, id: R::Id) -> Key {
        R::key(&self.tenant, id)
    }

    /// `record` as the item that [`Table::put`] puts.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be one.
    pub fn item<R: Entity>(&self, id: R::Id, record: &R) -> Result<Item, TableError> {
        let mut item = to_item(&self.key::<R>(id), record)?;
        item.extend(record.due_partition(id).map(|due_pk| ("due_pk".to_owned(), text(due_pk))));
        Ok(item)
    }
}
