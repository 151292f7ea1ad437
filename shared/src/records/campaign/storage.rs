//! How campaigns and their contacts are stored.
//!
//! The key of a contact follows from its run and its place, so a page of contacts is read without an index. Only the deleted places are
//! stored, with the run. The transactions that change a contact also change the counts of its campaign.

use std::collections::{BTreeSet, HashSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use super::{Campaign, CampaignContact, CampaignStatus, RunId, RunMarker};
use crate::records::contact::Contact;
use crate::records::delivery::Delivery;
use crate::records::widget::Widget;
use crate::request::context::Recognition;
use crate::request::page::{Page, PageQuery};
use crate::request::tenant::Tenant;
use crate::table::commit::Transaction;
use crate::table::keys::{Key, row_of};
use crate::table::store::{BATCH_GET_LIMIT, BATCH_WRITE_LIMIT, Item, from_item, made_id, number, text, values};
use crate::table::stored::{Listed as _, Single, Stored};
use crate::table::transaction::{Cancelled, Write};
use crate::table::{ATTEMPTS, Table, TableError, is_proven, readable};
use crate::values::id::{CampaignContactId, CampaignId, ContactId, Id as _, WidgetId, with_ordinal};
use crate::values::time::Timestamp;

/// Batches in flight at the same time: enough to hide their latency, few enough for a small function's memory.
const CONCURRENT_BATCHES: usize = 8;
/// Contacts of one campaign in one partition: a partition allows a thousand writes a second, and a run may write ten thousand.
const CONTACTS_PER_PARTITION: u32 = 1000;

impl Stored for CampaignContact {
    type Id = CampaignContactId;
    const PARAMETER: &'static str = CampaignContactId::PARAMETER;

    fn key(tenant: &Tenant, id: CampaignContactId) -> Key {
        Key::of(tenant, format_args!("CAMPAIGN_CONTACT#{}#{:02}", id.run(), partition(id)), id)
    }
}

impl Single for CampaignContact {}

/// The number of a contact's partition in its campaign.
fn partition(id: CampaignContactId) -> u32 {
    id.place().unwrap_or_default() / CONTACTS_PER_PARTITION
}

/// The pointer that leads from a run to its campaign.
pub(super) fn run_pointer(tenant: &Tenant, run: RunId) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), "CAMPAIGN")
}

/// The key of the deleted places of a partition of contacts. It has the partition key of the run's pointer.
fn deleted_contacts(tenant: &Tenant, id: CampaignContactId) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{}", id.run()), format_args!("DELETED#{:02}", partition(id)))
}

/// The organisation of the campaign whose key this is.
pub fn campaign_of(key: &Key) -> Option<Tenant> {
    row_of(key).filter(|(_, list, _)| *list == Campaign::list(())).map(|(tenant, ..)| tenant)
}

/// The campaign that the same request has made before.
#[derive(Debug)]
pub enum Earlier {
    /// There is none, or it is too long ago.
    None,
    /// The request is a repeat of this one.
    Counts(RunMarker),
    /// It was cancelled, so that the request is a new one.
    Cancelled(CampaignId),
}

/// What is read before a campaign runs.
#[derive(Debug)]
pub struct CampaignPreconditions {
    /// The widget it runs through.
    pub widget: Widget,
    /// What the same request has made before.
    pub earlier: Earlier,
    /// The contacts that do not exist.
    pub missing: HashSet<ContactId>,
}

impl Table {
    /// Reads what a campaign needs before it runs, in one round trip.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such widget.
    pub async fn campaign_preconditions(
        &self,
        widget: WidgetId,
        same: Recognition,
        contacts: &[ContactId],
        now: Timestamp,
    ) -> Result<CampaignPreconditions, TableError> {
        // Not `try_join!`: the cost of a request must not depend on which call fails first.
        let (widget, marker, missing, head) = futures_util::join!(
            self.get::<Widget>(widget),
            self.find::<RunMarker>(same.fingerprint),
            self.missing_contacts(contacts),
            // Known by the time the campaign is committed.
            self.learn_head::<Campaign>(()),
        );
        let widget = widget?;
        head?;
        let (earlier, missing) = (marker?.filter(|marker| now.unix_seconds() < marker.ttl), missing?);
        let earlier = match earlier {
            None => Earlier::None,
            // A key names one request, whatever has become of its campaign.
            Some(marker) if same.keyed || !self.is_cancelled(marker.campaign_id).await? => Earlier::Counts(marker),
            Some(marker) => Earlier::Cancelled(marker.campaign_id),
        };
        Ok(CampaignPreconditions { widget, earlier, missing })
    }

    async fn is_cancelled(&self, id: CampaignId) -> Result<bool, TableError> {
        Ok(self.find::<Campaign>(id).await?.is_some_and(|campaign| campaign.status == CampaignStatus::Cancelled))
    }

    /// The contacts of `wanted` that do not exist.
    async fn missing_contacts(&self, wanted: &[ContactId]) -> Result<HashSet<ContactId>, TableError> {
        let missing = self.absent(wanted, false).await?;
        // An eventually consistent read has half the price and may miss a recent write. Only what it missed is read again.
        self.absent(&missing, true).await.map(HashSet::from_iter)
    }

    async fn absent(&self, wanted: &[ContactId], consistent: bool) -> Result<Vec<ContactId>, TableError> {
        // Collected first: the compiler does not accept a stream over a lazy iterator of borrowing futures as `Send`.
        let batches: Vec<_> =
            wanted.chunks(BATCH_GET_LIMIT).map(|batch| self.absent_in_batch(batch, consistent)).collect();
        let absent: Vec<Vec<_>> = stream::iter(batches).buffered(CONCURRENT_BATCHES).try_collect().await?;
        Ok(absent.concat())
    }

    async fn absent_in_batch(&self, batch: &[ContactId], consistent: bool) -> Result<Vec<ContactId>, TableError> {
        let keys: Vec<Key> = batch.iter().map(|id| self.key::<Contact>(*id)).collect();
        let found: HashSet<Uuid> = self.store.existing(&keys, consistent).await?.into_iter().collect();
        Ok(batch.iter().filter(|id| !found.contains(&id.0)).copied().collect())
    }

    /// Stages the contacts of a campaign: nothing refers to them yet.
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

    /// Commits a staged campaign, unless the same request has committed one that counts: then that one is returned. `earlier` is what it
    /// had made before.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn commit_campaign(
        &self,
        campaign: &Campaign,
        same: Recognition,
        earlier: &Earlier,
        now: Timestamp,
    ) -> Result<RunMarker, TableError> {
        let ttl = now.plus_seconds(same.seconds).unix_seconds();
        let cancelled = if let Earlier::Cancelled(id) = earlier { *id } else { CampaignId(Uuid::nil()) };
        let transaction = |transaction: &mut Transaction<'_>| {
            let id = CampaignId(with_ordinal(campaign.id.0, transaction.next::<Campaign>(())));
            let marker = RunMarker { campaign_id: id, contacts: campaign.counts.queued, ttl };
            transaction.write(Write::Update {
                key: self.key::<RunMarker>(same.fingerprint),
                expression: "SET campaign_id = :campaign_id, contacts = :contacts, #ttl = :ttl".into(),
                condition: Some("attribute_not_exists(pk) OR #ttl <= :now OR campaign_id = :cancelled"),
                values: values([
                    (":campaign_id", text(marker.campaign_id)),
                    (":contacts", number(marker.contacts)),
                    (":ttl", number(marker.ttl)),
                    (":now", number(now.unix_seconds())),
                    (":cancelled", text(cancelled)),
                ]),
            });
            transaction.insert((), id, &Campaign { id, ..campaign.clone() })?;
            Ok(marker)
        };
        match self.commit(transaction).await {
            Err(Cancelled::Condition(0, Some(earlier))) => from_item(earlier),
            result => Ok(result?),
        }
    }

    /// The campaign of a delivery, if it exists.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn campaign_of(&self, delivery: &Delivery) -> Result<Option<Campaign>, TableError> {
        match delivery.campaign_id {
            Some(id) => self.find(id).await,
            None => Ok(None),
        }
    }

    /// A page of a campaign's contacts.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such campaign.
    pub async fn campaign_contacts(
        &self,
        id: CampaignId,
        query: &PageQuery,
    ) -> Result<Page<CampaignContact>, TableError> {
        let (campaign, deleted) = self.with_deleted(id).await?;
        let total = campaign.counts.total();
        let places = places_of(&campaign, &deleted);
        let left = (0..places).filter(|place| !deleted.contains(place));
        let skip = usize::try_from(query.offset()).unwrap_or(usize::MAX);
        let page = left.skip(skip).take(usize::try_from(query.size()).unwrap_or(usize::MAX));
        let contacts = self.contacts_at(id.run(), page).await?;
        Ok(query.of(contacts.into_iter().map(|contact| contact.seen_in(&campaign)).collect(), total))
    }

    /// Removes a contact from its campaign. If it is still queued, it is never sent.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn remove_campaign_contact(&self, id: CampaignContactId) -> Result<CampaignContact, TableError> {
        for _ in 0..ATTEMPTS {
            // Both at the same time, so that an unknown contact of a known campaign takes as long as any other.
            let pointer = run_pointer(&self.tenant, id.run());
            let (contact, pointer) = futures_util::join!(self.find::<CampaignContact>(id), self.store.get(&pointer));
            let (contact, pointer) = contact?.zip(pointer?).ok_or(TableError::Missing)?;
            let campaign: Campaign = self.get(CampaignId(made_id(&pointer)?)).await?;
            let stored = contact.status;
            let seen = contact.seen_in(&campaign);
            let place = id.place().unwrap_or_default();
            let writes = [
                Write::Delete {
                    key: self.key::<CampaignContact>(id),
                    condition: Some("#status = :status"),
                    values: values([(":status", text(stored.as_str()))]),
                },
                self.count(&campaign, seen.status, None),
                Write::Update {
                    key: deleted_contacts(&self.tenant, id),
                    expression: "ADD places :places".into(),
                    condition: None,
                    values: values([(":places", numbers([place]))]),
                },
            ];
            match self.store.transact(&writes).await {
                Ok(()) => return Ok(seen),
                Err(Cancelled::Condition(..)) => {}
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
        Err(TableError::Unavailable("others kept changing the campaign".into()))
    }

    /// Cancels a campaign and its queued contacts, in one write.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such campaign. The inner error is the campaign, where nothing is left to cancel.
    pub async fn cancel_campaign(
        &self,
        id: CampaignId,
        by: Uuid,
        now: Timestamp,
    ) -> Result<Result<Campaign, Campaign>, TableError> {
        let values = values([
            (":id", text(id)),
            (":cancelled", text(CampaignStatus::Cancelled.as_str())),
            (":zero", number(0)),
            (":now", text(now)),
            (":by", text(by)),
            (":one", number(1)),
        ]);
        let expression = "SET #status = :cancelled, counts.#cancelled = counts.#cancelled + counts.#queued, \
                          counts.#queued = :zero, updated_at = :now, cancelled_by = :by REMOVE due_pk, due_at ADD version :one";
        let condition = "id = :id AND #status <> :cancelled AND counts.#queued > :zero";
        match self.store.update(&self.key::<Campaign>(id), expression, condition, &values).await {
            Ok(item) => Ok(Ok(from_item(item)?)),
            Err(Cancelled::Condition(_, stands)) => {
                let item = stands.filter(|item| is_proven::<Campaign>(item, id)).ok_or(TableError::Missing)?;
                let by_this = item.get("cancelled_by") == Some(&text(by));
                let campaign = from_item(item)?;
                Ok(if by_this { Ok(campaign) } else { Err(campaign) })
            }
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// The contacts of a campaign at these places, without the deleted ones.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn contacts_at(
        &self,
        run: RunId,
        places: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<CampaignContact>, TableError> {
        let keys: Vec<Key> = places.into_iter().map(|place| self.key::<CampaignContact>(run.contact(place))).collect();
        let items = self.store.get_all(&keys).await?;
        let mut contacts: Vec<CampaignContact> = readable(items);
        contacts.sort_by_key(|contact| contact.id);
        Ok(contacts)
    }

    /// A campaign, and the places that were deleted from it.
    async fn with_deleted(&self, id: CampaignId) -> Result<(Campaign, BTreeSet<u32>), TableError> {
        let first = deleted_contacts(&self.tenant, id.run().contact(0));
        // Not `try_join!`: the cost of a request must not depend on whether the campaign exists.
        let (campaign, deleted) =
            futures_util::join!(self.get::<Campaign>(id), self.store.query(&first.pk, &first.sk, None));
        Ok((campaign?, deleted?.iter().flat_map(places).collect()))
    }

    /// The number of places in a campaign, including those of deleted contacts.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn places(&self, id: CampaignId) -> Result<u32, TableError> {
        let (campaign, deleted) = self.with_deleted(id).await?;
        Ok(places_of(&campaign, &deleted))
    }
}

/// The number of places in a campaign, including deleted ones.
fn places_of(campaign: &Campaign, deleted: &BTreeSet<u32>) -> u32 {
    let left = u32::try_from(campaign.counts.total()).unwrap_or(u32::MAX);
    left.saturating_add(u32::try_from(deleted.len()).unwrap_or(u32::MAX))
}

/// The deleted places in an item.
fn places(item: &Item) -> Vec<u32> {
    let set = item.get("places").and_then(|value| value.as_ns().ok()).map(Vec::as_slice).unwrap_or_default();
    set.iter().filter_map(|place| place.parse().ok()).collect()
}

fn numbers<const N: usize>(of: [u32; N]) -> aws_sdk_dynamodb::types::AttributeValue {
    aws_sdk_dynamodb::types::AttributeValue::Ns(of.iter().map(ToString::to_string).collect())
}
