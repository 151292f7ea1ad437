//! One function per access pattern. A [`Table`] is one organisation's part of the table: there is no way to name another's.

use std::collections::HashSet;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::model::agency::{Agency, StoredPaymentWebhook};
use crate::model::campaign::{Campaign, CampaignContact, RunMarker};
use crate::model::contact::Contact;
use crate::model::id::{AgencyId, ContactId, TagId, WidgetId};
use crate::model::tag::Link;
use crate::model::time::Timestamp;
use crate::model::widget::Widget;
use crate::table::TableError;
use crate::table::entities::{Entity, Fingerprint, Key, TTL, tag_link};
use crate::table::list::REMOVE_LIMIT;
use crate::table::store::{
    BATCH_GET_LIMIT, BATCH_WRITE_LIMIT, Cancelled, Item, Store, Write, from_item, key_of, to_item,
};
use crate::tenant::Tenant;

/// Batches under way at once: enough to hide their latency, few enough for a small function's memory.
const CONCURRENT_BATCHES: usize = 8;

/// Seconds within which a repeated request to run a campaign is a retry, and not another run.
const SAME_REQUEST: i64 = 600;

/// One organisation's part of the table.
#[derive(Debug, Clone)]
pub struct Table {
    pub(super) store: Store,
    pub(super) tenant: Tenant,
}

/// What must be known before a campaign runs.
#[derive(Debug)]
pub struct CampaignPreconditions {
    /// The widget it runs through.
    pub widget: Widget,
    /// What the same request has made already.
    pub earlier: Option<RunMarker>,
    /// The contacts that are not there.
    pub missing: HashSet<ContactId>,
}

/// What a pointer points to, and its own key.
fn pointer(item: &Item) -> Option<(Uuid, Key)> {
    Some((item.get("id")?.as_s().ok()?.parse().ok()?, key_of(item)?))
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

    /// The record `id`, where there is one.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn find<R: Entity>(&self, id: R::Id) -> Result<Option<R>, TableError> {
        self.store.get(&self.key::<R>(id)).await?.map(from_item).transpose()
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
        let writes = [Write::Check(self.key::<Parent>(parent)), Write::Put(self.item(id, record)?)];
        Ok(self.store.transact(&writes).await?)
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
            let (ids, keys): (Vec<Uuid>, Vec<Key>) = pointers.iter().filter_map(pointer).unzip();
            if ids.is_empty() {
                return Ok(());
            }
            match self.remove_rows::<Link>(&ids, &keys).await {
                Err(TableError::Missing) => {}
                result => {
                    result?;
                    continue;
                }
            }
            // One of them has gone by other hands: each goes by itself, and of that one what still points to it.
            for (id, key) in ids.iter().zip(&keys) {
                match self.remove_rows::<Link>(&[*id], std::slice::from_ref(key)).await {
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

    /// All that must be known before a campaign runs, in one round trip.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such widget.
    pub async fn campaign_preconditions(
        &self,
        widget: WidgetId,
        fingerprint: Fingerprint,
        contacts: &[ContactId],
        now: Timestamp,
    ) -> Result<CampaignPreconditions, TableError> {
        // Not `try_join!`: what a request costs must not depend on which of them fails first.
        let (widget, marker, missing) = futures_util::join!(
            self.get::<Widget>(widget),
            self.find::<RunMarker>(fingerprint),
            self.missing_contacts(contacts),
        );
        let widget = widget?;
        let earlier = marker?.filter(|marker| now.unix_seconds() < marker.ttl);
        Ok(CampaignPreconditions { widget, earlier, missing: missing? })
    }

    /// The contacts of `wanted` that are not there.
    async fn missing_contacts(&self, wanted: &[ContactId]) -> Result<HashSet<ContactId>, TableError> {
        let missing = self.absent(wanted, false).await?;
        // A read at half the price may miss what was written a moment ago. Only what it missed is asked for again.
        self.absent(&missing, true).await.map(HashSet::from_iter)
    }

    async fn absent(&self, wanted: &[ContactId], consistent: bool) -> Result<Vec<ContactId>, TableError> {
        // Collected first: a stream over a lazy iterator of borrowing futures is not `Send` in the compiler's eyes.
        let batches: Vec<_> =
            wanted.chunks(BATCH_GET_LIMIT).map(|batch| self.absent_in_batch(batch, consistent)).collect();
        let absent: Vec<Vec<_>> = stream::iter(batches).buffered(CONCURRENT_BATCHES).try_collect().await?;
        Ok(absent.concat())
    }

    async fn absent_in_batch(&self, batch: &[ContactId], consistent: bool) -> Result<Vec<ContactId>, TableError> {
        let keys: Vec<Key> = batch.iter().map(|id| self.key::<Contact>(*id)).collect();
        let found: HashSet<Key> = self.store.existing(&keys, consistent).await?.into_iter().collect();
        let absent = batch.iter().zip(&keys).filter(|(_, key)| !found.contains(*key)).map(|(id, _)| *id);
        Ok(absent.collect())
    }

    /// Writes the contacts of a campaign that nothing refers to yet.
    ///
    /// # Errors
    /// [`TableError`]: some may have been written. Without [`Table::commit_campaign`] they are never sent.
    pub async fn stage_contacts(&self, contacts: &[CampaignContact]) -> Result<(), TableError> {
        let batches: Vec<_> = contacts.chunks(BATCH_WRITE_LIMIT).map(|batch| self.stage_batch(batch)).collect();
        stream::iter(batches).buffer_unordered(CONCURRENT_BATCHES).try_collect().await
    }

    async fn stage_batch(&self, batch: &[CampaignContact]) -> Result<(), TableError> {
        let items = batch.iter().map(|contact| self.item(contact.id, contact)).collect::<Result<Vec<_>, _>>()?;
        self.store.put_batch(items).await
    }

    /// Makes a staged campaign exist, unless the same request has made one in the meantime: then that one is the answer.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn commit_campaign(
        &self,
        campaign: &Campaign,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<RunMarker, TableError> {
        let ttl = now.plus_seconds(SAME_REQUEST).unix_seconds();
        let marker = RunMarker { campaign_id: campaign.id, contacts: campaign.counts.queued, ttl };
        let values = [
            (":campaign_id", AttributeValue::S(marker.campaign_id.to_string())),
            (":contacts", AttributeValue::N(marker.contacts.to_string())),
            (":ttl", AttributeValue::N(marker.ttl.to_string())),
            (":now", AttributeValue::N(now.unix_seconds().to_string())),
        ];
        let writes = [
            Write::Update {
                key: self.key::<RunMarker>(fingerprint),
                expression: "SET campaign_id = :campaign_id, contacts = :contacts, #ttl = :ttl".into(),
                condition: Some("attribute_not_exists(pk) OR #ttl <= :now"),
                names: [("#ttl".to_owned(), TTL.to_owned())].into(),
                values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            },
            Write::Put(self.item(campaign.id, campaign)?),
        ];
        match self.store.transact(&writes).await {
            Ok(()) => Ok(marker),
            Err(Cancelled::Condition(0, Some(earlier))) => from_item(earlier),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    pub(super) fn key<R: Entity>(&self, id: R::Id) -> Key {
        R::key(&self.tenant, id)
    }

    /// `record` as the item that [`Table::put`] puts.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be one.
    pub fn item<R: Entity>(&self, id: R::Id, record: &R) -> Result<Item, TableError> {
        to_item(&self.key::<R>(id), record)
    }
}
