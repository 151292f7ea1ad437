//! How campaigns and their contacts are stored.
//!
//! The key of a contact follows from its run and its place, so a page of contacts is read without an index. Only the deleted places are
//! stored, with the run. The transactions that change a contact also count what became of it.

use std::collections::{BTreeSet, HashSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use super::contact_partitions::partition;
use super::contact_pointers::{contact_pointer, pointer_item, pointer_partitions};
use super::staged::{StagedContacts, kept_changing};
use super::text::{CampaignText, present_text};
use super::{Campaign, CampaignContact, CampaignStatus, ContactStatus, Outcomes, RunId, RunMarker, Standing};
use crate::records::campaign::run_pointer;
use crate::records::contact::Contact;
use crate::records::delivery::Delivery;
use crate::records::widget::Widget;
use crate::request::context::Recognition;
use crate::table::cascade::Partitions;
use crate::table::error::Cancelled;
use crate::table::item::null;
use crate::table::item::{Item, from_item, made_id, number, readable, text, values};
use crate::table::keys::{Key, row_of};
use crate::table::page::{ListQuery, Page, PageQuery};
use crate::table::reservation::Reservation;
use crate::table::retry::LostAnswer;
use crate::table::store::{BATCH_GET_LIMIT, BATCH_WRITE_LIMIT};
use crate::table::stored::Listed as _;
use crate::table::transaction::{Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignContactId, CampaignId, ContactId, WidgetId, with_ordinal};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Batches in flight at the same time: enough to hide their latency, few enough for a small function's memory.
const CONCURRENT_BATCHES: usize = 8;

/// A contact has not changed since it was read. Until it was dispatched or has failed, it has no round.
pub(super) const AS_READ: &str =
    "#status = :was AND conversation_id = :had AND (attribute_not_exists(#round) OR #round = :in_round)";

/// The values of [`AS_READ`].
pub(super) fn as_read(contact: &CampaignContact) -> Item {
    values([
        (":was", text(contact.status.as_str())),
        (":had", contact.conversation_id.map_or_else(null, text)),
        (":in_round", number(contact.round)),
    ])
}

/// The key of a count of what became of a campaign's contacts. It has the partition key of the run's pointer, as all of the following have.
pub(super) fn outcomes(tenant: &Tenant, run: RunId, shard: u32) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), format_args!("OUTCOMES#{shard:02}"))
}

/// The attribute that counts sent contacts.
pub(super) const SENT: &str = "sent";

/// The attribute that counts the contacts that failed in `round`.
pub(super) fn failed_in(round: u32) -> String {
    if round == 0 { "failed".to_owned() } else { format!("failed_{round}") }
}

/// The key of contacts that are being added, from the place `first` on.
pub(super) fn staged_contacts(tenant: &Tenant, run: RunId, first: u32) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), format_args!("OUTCOMES_STAGED#{first:06}"))
}

/// The key of the deleted places of the partition of contacts with this number.
fn deleted_contacts(tenant: &Tenant, run: RunId, number: u32) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), format_args!("OUTCOMES_DELETED#{number:02}"))
}

// The contacts are removed before them: what became of them is counted only together with a change of one.
impl Partitions for Campaign {
    fn partitions(tenant: &Tenant, id: Uuid) -> Vec<String> {
        let run = CampaignId(id).run();
        pointer_partitions(tenant, run).chain([run_pointer(tenant, run).pk]).collect()
    }
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

/// What is stored beside a campaign.
#[derive(Debug)]
pub(super) struct Beside {
    /// What it says.
    pub text: Option<CampaignText>,
    /// The contacts that are being added to it, or whose request has died.
    pub staged: Vec<StagedContacts>,
}

impl Beside {
    /// What is in these items.
    pub fn of(items: &[Item]) -> Self {
        let staged = items.iter().filter(|item| item.contains_key("expires_at"));
        Self { text: CampaignText::among(items), staged: readable(staged.cloned()) }
    }
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
        let (widget, marker, missing) = futures_util::join!(
            self.get::<Widget>(widget),
            self.find::<RunMarker>(same.fingerprint),
            self.missing_contacts(contacts),
        );
        let widget = widget?;
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
        // One that is deleted was as good as cancelled: its marker was committed together with it.
        Ok(self.find::<Campaign>(id).await?.is_none_or(|campaign| campaign.status == CampaignStatus::Cancelled))
    }

    /// The contacts of `wanted` that do not exist.
    pub(super) async fn missing_contacts(&self, wanted: &[ContactId]) -> Result<HashSet<ContactId>, TableError> {
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

    /// Stages the message and the contacts of a campaign, to which nothing refers yet, and reserves its place in the list at the same time.
    ///
    /// # Errors
    /// [`TableError`]: some may have been written. Without [`Table::commit_campaign`] they are never sent.
    pub async fn stage_campaign(
        &self,
        campaign: &Campaign,
        contacts: &[CampaignContact],
    ) -> Result<Reservation, TableError> {
        let (reserve, say) = (self.reserve::<Campaign>((), 1), self.stage_message(campaign));
        let (staged, reserved, said) =
            futures_util::join!(self.stage_contacts(contacts, campaign.has_pointers), reserve, say);
        let reserved = reserved?;
        if let Err(error) = said.and(staged) {
            self.give_back([reserved]).await;
            return Err(error);
        }
        Ok(reserved)
    }

    /// What is stored beside a campaign that is being sent.
    ///
    /// # Errors
    /// [`TableError`].
    pub(super) async fn beside_campaign(&self, run: RunId) -> Result<Beside, TableError> {
        let first = present_text(&self.tenant, run);
        Ok(Beside::of(&self.store.query(&first.pk, &first.sk, None).await?))
    }

    /// The campaign `id` as it is answered, with its message and what became of its contacts.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such campaign.
    pub async fn campaign(&self, id: CampaignId) -> Result<Campaign, TableError> {
        let (campaign, items) = self.with_items(id).await?;
        Ok(complete(&campaign, &items))
    }

    /// A campaign as it is stored, and the items beside it.
    pub(super) async fn with_items(&self, id: CampaignId) -> Result<(Campaign, Vec<Item>), TableError> {
        let (item, items) = self.item_with_items(id).await?;
        Ok((from_item(item)?, items))
    }

    /// The item of a campaign that is to be changed, and the items beside it.
    pub(super) async fn item_with_items(&self, id: CampaignId) -> Result<(Item, Vec<Item>), TableError> {
        let first = present_text(&self.tenant, id.run());
        // Not `try_join!`: the cost of a request must not depend on whether the campaign exists.
        let (item, items) =
            futures_util::join!(self.find_item::<Campaign>(id), self.store.query(&first.pk, &first.sk, None));
        Ok((item?.ok_or(TableError::Missing)?, items?))
    }

    /// A page of the campaigns as they are answered.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn campaigns(&self, query: &ListQuery<Campaign>) -> Result<Page<Campaign>, TableError> {
        let page = self.list((), query).await?;
        let complete = async |campaign: Campaign| {
            let first = present_text(&self.tenant, campaign.id.run());
            let items = self.store.query(&first.pk, &first.sk, None).await?;
            Ok::<_, TableError>(complete(&campaign, &items))
        };
        let campaigns: Vec<_> = page.items.into_iter().map(complete).collect();
        let mut campaigns: Vec<Campaign> = stream::iter(campaigns).buffered(CONCURRENT_BATCHES).try_collect().await?;
        // What is stored may say another status than what became of the contacts.
        campaigns.retain(|campaign| query.matches(campaign));
        Ok(query.page.of(campaigns, page.total))
    }

    /// Puts the contacts of a campaign, to which nothing refers yet, with the pointers to them where it `has_pointers`.
    ///
    /// # Errors
    /// [`TableError`]: some may have been written.
    pub async fn stage_contacts(&self, contacts: &[CampaignContact], has_pointers: bool) -> Result<(), TableError> {
        let batch = if has_pointers { BATCH_WRITE_LIMIT / 2 } else { BATCH_WRITE_LIMIT };
        let batches: Vec<_> = contacts.chunks(batch).map(|batch| self.stage_batch(batch, has_pointers)).collect();
        stream::iter(batches).buffer_unordered(CONCURRENT_BATCHES).try_collect().await
    }

    async fn stage_batch(&self, batch: &[CampaignContact], has_pointers: bool) -> Result<(), TableError> {
        let mut items = batch.iter().map(|contact| self.item(contact.id, contact)).collect::<Result<Vec<_>, _>>()?;
        if has_pointers {
            items.extend(batch.iter().map(|contact| pointer_item(&self.tenant, contact)));
        }
        self.store.put_batch(items).await
    }

    /// Commits a staged campaign at its reserved place, unless the same request has committed one that counts: then that one is
    /// returned. `earlier` is what it had made before.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn commit_campaign(
        &self,
        (campaign, place): (&Campaign, Reservation),
        same: Recognition,
        earlier: &Earlier,
        now: Timestamp,
    ) -> Result<RunMarker, TableError> {
        let ttl = now.plus_seconds(same.seconds).unix_seconds();
        let cancelled = if let Earlier::Cancelled(id) = earlier { *id } else { CampaignId(Uuid::nil()) };
        let id = CampaignId(with_ordinal(campaign.id.0, place.first()));
        let marker = RunMarker { campaign_id: id, contacts: campaign.counts.queued, ttl };
        let mut transaction = Transaction::new(self);
        transaction.write(Write::Update {
            key: self.key::<RunMarker>(same.fingerprint),
            expression: "SET campaign_id = :campaign_id, contacts = :contacts, #ttl = :ttl".into(),
            condition: Some("attribute_not_exists(pk) OR #ttl <= :now OR campaign_id = :cancelled".into()),
            values: values([
                (":campaign_id", text(marker.campaign_id)),
                (":contacts", number(marker.contacts)),
                (":ttl", number(marker.ttl)),
                (":now", number(now.unix_seconds())),
                (":cancelled", text(cancelled)),
            ]),
        });
        transaction.insert(id, &Campaign { id, message: None, ..campaign.clone() })?;
        match self.commit(transaction, [place]).await {
            Err(Cancelled::Condition(0, Some(earlier))) => from_item(earlier),
            result => Ok(result.map(|()| marker)?),
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
        let places = places_of(&campaign);
        let total = u64::from(places) - deleted.len() as u64;
        let left = (0..places).filter(|place| !deleted.contains(place));
        let skip = usize::try_from(query.offset()).unwrap_or(usize::MAX);
        let page = left.skip(skip).take(usize::try_from(query.size()).unwrap_or(usize::MAX));
        let contacts = self.contacts_at(&campaign, page).await?;
        Ok(query.of(contacts.into_iter().map(|contact| contact.seen_in(&campaign)).collect(), total))
    }

    /// Removes a contact from its campaign. If it is still queued, it is never sent.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn remove_campaign_contact(&self, id: CampaignContactId) -> Result<CampaignContact, TableError> {
        /// The place of the action that removes the pointer.
        const POINTER: usize = 2;
        let (mut round, lost) = (self.store.backoff(), LostAnswer::default());
        loop {
            // Both at the same time, so that an unknown contact of a known campaign takes as long as any other.
            let pointer = run_pointer(&self.tenant, id.run());
            let (contact, pointer) = futures_util::join!(self.find::<CampaignContact>(id), self.store.get(&pointer));
            let (contact, pointer) = contact?.zip(pointer?).ok_or_else(|| lost.missing())?;
            let campaign = self.get::<Campaign>(CampaignId(made_id(&pointer)?));
            let (campaign, kept) = futures_util::join!(campaign, self.keep_said(id.run(), contact.said_at()));
            let campaign = kept.and(campaign)?;
            let place = id.place().unwrap_or_default();
            let mut writes = vec![
                Write::Delete {
                    key: self.key::<CampaignContact>(id),
                    condition: Some(AS_READ),
                    values: as_read(&contact),
                },
                Write::Update {
                    key: deleted_contacts(&self.tenant, id.run(), partition(id)),
                    expression: "ADD places :places".into(),
                    condition: None,
                    values: values([(":places", numbers([place]))]),
                },
            ];
            if campaign.has_pointers {
                writes.push(Write::Delete {
                    key: contact_pointer(&self.tenant, id.run(), contact.contact_id),
                    condition: Some("id = :id"),
                    values: values([(":id", text(id))]),
                });
            }
            // It may be the last contact with a delivery under way. The stream completes the campaign when it sees a change of it.
            if contact.is_dispatched_in(&campaign) {
                writes.push(Write::Update {
                    key: self.key::<Campaign>(campaign.id),
                    expression: "ADD version :one".into(),
                    condition: Some("attribute_exists(pk)".into()),
                    values: values([(":one", number(1))]),
                });
            }
            // What failed in an earlier round is no longer counted.
            if contact.status != ContactStatus::Failed || contact.round == campaign.round {
                writes.extend(self.tally(id, (contact.status, contact.round), -1));
            }
            match self.store.transact_noting(&writes, &lost).await {
                Ok(()) => return Ok(contact.seen_in(&campaign)),
                // It was staged by a request that died, and was never in the campaign.
                Err(Cancelled::Condition(POINTER, _)) if campaign.has_pointers => return Err(lost.missing()),
                Err(Cancelled::Condition(..)) if round.wait().await => {}
                Err(Cancelled::Condition(..)) => return Err(kept_changing()),
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
    }

    /// The contacts of a campaign at these places, without the deleted ones.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn contacts_at(
        &self,
        campaign: &Campaign,
        places: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<CampaignContact>, TableError> {
        let keys: Vec<Key> =
            places.into_iter().map(|place| self.key::<CampaignContact>(campaign.contact(place))).collect();
        let items = self.store.get_all(&keys).await?;
        let mut contacts: Vec<CampaignContact> = readable(items);
        contacts.sort_by_key(|contact| contact.id);
        Ok(contacts)
    }

    /// A campaign, and the places that were deleted from it.
    async fn with_deleted(&self, id: CampaignId) -> Result<(Campaign, BTreeSet<u32>), TableError> {
        let first = deleted_contacts(&self.tenant, id.run(), 0);
        // Not `try_join!`: the cost of a request must not depend on whether the campaign exists.
        let (campaign, deleted) =
            futures_util::join!(self.get::<Campaign>(id), self.store.query(&first.pk, &first.sk, None));
        Ok((campaign?, deleted?.iter().flat_map(places).collect()))
    }
}

/// The number of places in a campaign as it is stored, including deleted ones.
pub(super) fn places_of(campaign: &Campaign) -> u32 {
    u32::try_from(campaign.counts.queued).unwrap_or(u32::MAX)
}

/// A campaign as it is answered, with its message and what became of its contacts, which `items` hold.
pub(super) fn complete(campaign: &Campaign, items: &[Item]) -> Campaign {
    let outcomes = outcomes_in(items, campaign.round);
    let message = CampaignText::among(items).and_then(|present| present.text);
    Campaign { message, ..campaign.clone() }.counted(outcomes).seen()
}

/// What has become of a campaign's contacts, which `items` hold.
pub(super) fn standing(campaign: &Campaign, items: &[Item]) -> Standing {
    let (counts, next) = (complete(campaign, items).counts, campaign.next_place);
    let deleted = items.iter().flat_map(places).filter(|place| *place < next).count() as u64;
    let dispatched = u64::from(next).saturating_sub(deleted + counts.sent + counts.failed);
    Standing { counts, dispatched }
}

/// What became of a campaign's contacts in this `round`, in the items that count it.
fn outcomes_in(items: &[Item], round: u32) -> Outcomes {
    let count = |item: &Item, name: &str| -> i64 {
        item.get(name).and_then(|count| count.as_n().ok()?.parse().ok()).unwrap_or_default()
    };
    // A single item may count less than none: a contact may be counted in one of them, and no longer be in another.
    let all = |name: &str| items.iter().map(|item| count(item, name)).sum::<i64>().max(0).unsigned_abs();
    let deleted = items.iter().map(|item| places(item).len() as u64).sum();
    Outcomes { sent: all(SENT), failed: all(&failed_in(round)), deleted }
}

/// The places in an item that do not count: those of deleted contacts, or of contacts that are not added yet.
fn places(item: &Item) -> Vec<u32> {
    let place = |name: &str| item.get(name).and_then(|place| place.as_n().ok()?.parse::<u32>().ok());
    if let Some((first, end)) = place("first").zip(place("end")) {
        return (first..end).collect();
    }
    let set = item.get("places").and_then(|value| value.as_ns().ok()).map(Vec::as_slice).unwrap_or_default();
    set.iter().filter_map(|place| place.parse().ok()).collect()
}

fn numbers<const N: usize>(of: [u32; N]) -> aws_sdk_dynamodb::types::AttributeValue {
    aws_sdk_dynamodb::types::AttributeValue::Ns(of.iter().map(ToString::to_string).collect())
}
