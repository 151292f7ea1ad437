//! How campaigns and their contacts are stored.
//!
//! The key of a contact follows from its run and its place, so a page of contacts is read without an index. Only the
//! deleted places are stored, with the run. The transactions that change a contact also update the counts.

use std::collections::{BTreeSet, HashSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use super::contact_partitions::{partition, waiting_partition};
use super::contact_pointers::StagedContacts;
use super::contact_pointers::{contact_pointer, pointer_item, pointer_partitions};
use super::counts::{ContactResults, Tally};
use super::state::ContactTotals;
use super::text;
use super::text::{CampaignText, present_text};
use super::{Campaign, CampaignContact, CampaignStatus, ContactStatus, RunId, RunMarker};
use crate::records::campaign::run_pointer;
use crate::records::contact::Contact;
use crate::records::delivery::Delivery;
use crate::records::widget::Widget;
use crate::request::context::Recognition;
use crate::table::cascade::Partitions;
use crate::table::error::Cancelled;
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::null;
use crate::table::item::{Item, from_item, number, readable, target_id, text};
use crate::table::keys::{Key, row_of};
use crate::table::page::{ListQuery, Page, PageQuery};
use crate::table::quota::Quota;
use crate::table::reservation::Reservation;
use crate::table::retry::LostAnswer;
use crate::table::store::{BATCH_GET_LIMIT, BATCH_WRITE_LIMIT};
use crate::table::stored::Listed as _;
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignContactId, CampaignId, ContactId, WidgetId, with_ordinal};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Batches in flight at the same time: enough to hide their latency, few enough for a small function's memory.
const CONCURRENT_BATCHES: usize = 8;

/// The condition that a contact has not changed since it was read. Until it was dispatched or has failed, it has no
/// round. A contact that has not changed since contacts have a version has none.
pub(super) fn as_read(contact: &CampaignContact) -> Condition {
    let values = [
        (":status", text(contact.status.as_str())),
        (":conversation", contact.conversation_id.map_or_else(null, text)),
        (":round", number(contact.round)),
        (":version", number(contact.version)),
    ];
    let same = "#status = :status AND conversation_id = :conversation \
        AND (attribute_not_exists(#round) OR #round = :round) \
        AND (attribute_not_exists(version) OR version = :version)";
    Condition::of(same, values)
}

/// The key of the marker of contacts that are being added, from the place `first` on. This key and the one below have
/// the partition key of the run's pointer.
pub(super) fn staged_contacts(tenant: &Tenant, run: RunId, first: u32) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), format_args!("OUTCOMES_STAGED#{first:06}"))
}

/// The key of the deleted places in the contact partition with this number.
fn deleted_contacts(tenant: &Tenant, run: RunId, number: u32) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), format_args!("OUTCOMES_DELETED#{number:02}"))
}

// The contacts are removed before the counts: a count changes only together with a contact.
impl Partitions for Campaign {
    fn partitions(tenant: &Tenant, id: Uuid) -> Vec<String> {
        let run = CampaignId(id).run();
        pointer_partitions(tenant, run).chain([waiting_partition(tenant, run), run_pointer(tenant, run).pk]).collect()
    }
}

/// The organisation of the campaign whose key this is.
pub fn campaign_of(key: &Key) -> Option<Tenant> {
    row_of(key).filter(|(_, list, _)| *list == Campaign::list(())).map(|(tenant, ..)| tenant)
}

/// The campaign that the same request has made before.
#[derive(Debug)]
pub enum Earlier {
    /// There is none, or it is too old.
    None,
    /// The request is a repeat of this one.
    Counts(RunMarker),
    /// It was cancelled, so that the request is a new one.
    Cancelled(CampaignId),
}

/// Items that are stored with a campaign.
#[derive(Debug)]
pub(super) struct CampaignExtras {
    /// The text of the campaign.
    pub text: Option<CampaignText>,
    /// The contacts that are being added to it, or whose request crashed.
    pub staged: Vec<StagedContacts>,
}

impl CampaignExtras {
    /// Reads these items.
    pub fn of(items: &[Item]) -> Self {
        let staged = items.iter().filter(|item| item.contains_key("expires_at"));
        Self { text: CampaignText::among(items), staged: readable(staged.cloned()) }
    }
}

/// Everything that is read before a campaign runs.
#[derive(Debug)]
pub struct CampaignPreconditions {
    /// The widget of the campaign.
    pub widget: Widget,
    /// The campaign that the same request has made before.
    pub earlier: Earlier,
    /// The contacts that do not exist.
    pub missing: HashSet<ContactId>,
    /// Whether the organisation may have one more running campaign.
    pub room: Result<(), TableError>,
}

/// Reads what a campaign needs before it runs, in one round trip.
///
/// # Errors
/// [`TableError::Missing`] where there is no such widget.
pub async fn preconditions(
    table: &Table,
    widget: WidgetId,
    same: Recognition,
    contacts: &[ContactId],
    now: Timestamp,
) -> Result<CampaignPreconditions, TableError> {
    // Not `try_join!`: the cost of a request must not depend on which call fails first.
    let (widget, marker, missing, room) = futures_util::join!(
        table.get::<Widget>(widget),
        table.find::<RunMarker>(same.fingerprint),
        missing_contacts(table, contacts),
        table.require_room(Quota::RunningCampaigns),
    );
    let widget = widget?;
    let (earlier, missing) = (marker?.filter(|marker| now.unix_seconds() < marker.ttl), missing?);
    let earlier = match earlier {
        None => Earlier::None,
        // A key identifies one request, even if its campaign was cancelled.
        Some(marker) if same.keyed || !is_cancelled(table, marker.campaign_id).await? => Earlier::Counts(marker),
        Some(marker) => Earlier::Cancelled(marker.campaign_id),
    };
    Ok(CampaignPreconditions { widget, earlier, missing, room })
}

async fn is_cancelled(table: &Table, id: CampaignId) -> Result<bool, TableError> {
    // A deleted campaign counts as cancelled: its marker was committed in the same transaction.
    Ok(table.find::<Campaign>(id).await?.is_none_or(|campaign| campaign.status == CampaignStatus::Cancelled))
}

/// The contacts of `wanted` that do not exist.
pub(super) async fn missing_contacts(table: &Table, wanted: &[ContactId]) -> Result<HashSet<ContactId>, TableError> {
    let missing = absent(table, wanted, false).await?;
    // An eventually consistent read costs half as much and may miss a recent write. Only the missing contacts are read
    // again.
    absent(table, &missing, true).await.map(HashSet::from_iter)
}

async fn absent(table: &Table, wanted: &[ContactId], consistent: bool) -> Result<Vec<ContactId>, TableError> {
    // Collected first: the compiler does not accept a stream over a lazy iterator of borrowing futures as `Send`.
    let batches: Vec<_> =
        wanted.chunks(BATCH_GET_LIMIT).map(|batch| absent_in_batch(table, batch, consistent)).collect();
    let absent: Vec<Vec<_>> = stream::iter(batches).buffered(CONCURRENT_BATCHES).try_collect().await?;
    Ok(absent.concat())
}

async fn absent_in_batch(table: &Table, batch: &[ContactId], consistent: bool) -> Result<Vec<ContactId>, TableError> {
    let keys: Vec<Key> = batch.iter().map(|id| table.key::<Contact>(*id)).collect();
    let found: HashSet<Uuid> = table.store.existing(&keys, consistent).await?.into_iter().collect();
    Ok(batch.iter().filter(|id| !found.contains(&id.0)).copied().collect())
}

/// Stages the message and the contacts of a campaign, to which nothing refers yet, and reserves its place in the list
/// at the same time.
///
/// # Errors
/// [`TableError`]: some may have been written. Without [`commit`] they are never sent.
pub async fn stage(
    table: &Table,
    campaign: &Campaign,
    contacts: &[CampaignContact],
) -> Result<Reservation, TableError> {
    let (reserve, say) = (table.reserve::<Campaign>((), 1), text::stage_message(table, campaign));
    let (staged, reserved, said) =
        futures_util::join!(stage_contacts(table, contacts, campaign.has_pointers), reserve, say);
    let reserved = reserved?;
    if let Err(error) = said.and(staged) {
        table.give_back([reserved]).await;
        return Err(error);
    }
    Ok(reserved)
}

/// The items that are stored with a campaign while it is sent.
///
/// # Errors
/// [`TableError`].
pub(super) async fn read_extras(table: &Table, run: RunId) -> Result<CampaignExtras, TableError> {
    let first = present_text(&table.tenant, run);
    Ok(CampaignExtras::of(&table.store.query(&first.pk, &first.sk, None).await?))
}

/// The campaign `id` as a caller sees it, with its message and the counts of its contacts.
///
/// # Errors
/// [`TableError::Missing`] where there is no such campaign.
pub async fn read(table: &Table, id: CampaignId) -> Result<Campaign, TableError> {
    let (campaign, items) = with_items(table, id).await?;
    Ok(answered(&campaign, &items))
}

/// A campaign as it is stored, and the items stored with it.
pub(super) async fn with_items(table: &Table, id: CampaignId) -> Result<(Campaign, Vec<Item>), TableError> {
    let first = present_text(&table.tenant, id.run());
    // Not `try_join!`: the cost of a request must not depend on whether the campaign exists.
    let (campaign, items) =
        futures_util::join!(table.get::<Campaign>(id), table.store.query(&first.pk, &first.sk, None));
    Ok((campaign?, items?))
}

/// A page of the campaigns as a caller sees them.
///
/// # Errors
/// [`TableError`].
pub async fn list(table: &Table, query: &ListQuery<Campaign>) -> Result<Page<Campaign>, TableError> {
    let page = table.list((), query).await?;
    let mut campaigns = all_answered(table, page.items).await?;
    // The stored status may differ from the status that follows from the counts.
    campaigns.retain(|campaign| query.matches(campaign));
    Ok(query.page.of(campaigns, page.total))
}

/// Stored campaigns as a caller sees them.
///
/// # Errors
/// [`TableError`].
pub async fn all_answered(table: &Table, campaigns: Vec<Campaign>) -> Result<Vec<Campaign>, TableError> {
    let answer = async |campaign: Campaign| {
        let first = present_text(&table.tenant, campaign.id.run());
        let items = table.store.query(&first.pk, &first.sk, None).await?;
        Ok::<_, TableError>(answered(&campaign, &items))
    };
    let campaigns: Vec<_> = campaigns.into_iter().map(answer).collect();
    stream::iter(campaigns).buffered(CONCURRENT_BATCHES).try_collect().await
}

/// The contacts of a campaign from a place on, as a caller sees them: at most `most`, with the place at which they go on
/// if there are more. A campaign that is deleted has none.
///
/// # Errors
/// [`TableError`].
pub async fn contacts_from(
    table: &Table,
    id: CampaignId,
    from: u32,
    most: u32,
) -> Result<(Vec<CampaignContact>, Option<u32>), TableError> {
    let (campaign, hidden) = match with_deleted(table, id).await {
        Err(TableError::Missing) => return Ok((Vec::new(), None)),
        found => found?,
    };
    let end = campaign.places().min(from.saturating_add(most));
    let contacts = contacts_at(table, &campaign, (from..end).filter(|place| !hidden.contains(place))).await?;
    let contacts = contacts.into_iter().map(|contact| contact.as_answered_in(&campaign)).collect();
    Ok((contacts, (end < campaign.places()).then_some(end)))
}

/// Stores the contacts of a campaign before anything refers to them, with pointers to them if it `has_pointers`.
///
/// # Errors
/// [`TableError`]: some may have been written.
pub async fn stage_contacts(table: &Table, contacts: &[CampaignContact], has_pointers: bool) -> Result<(), TableError> {
    let batch = if has_pointers { BATCH_WRITE_LIMIT / 2 } else { BATCH_WRITE_LIMIT };
    let batches: Vec<_> = contacts.chunks(batch).map(|batch| stage_batch(table, batch, has_pointers)).collect();
    stream::iter(batches).buffer_unordered(CONCURRENT_BATCHES).try_collect().await
}

async fn stage_batch(table: &Table, batch: &[CampaignContact], has_pointers: bool) -> Result<(), TableError> {
    let mut items = batch.iter().map(|contact| table.item(contact.id, contact)).collect::<Result<Vec<_>, _>>()?;
    if has_pointers {
        items.extend(batch.iter().map(|contact| pointer_item(&table.tenant, contact)));
    }
    table.store.put_batch(items).await
}

/// Commits a staged campaign at its reserved place. If the same request has already committed a campaign that counts,
/// returns that one. `earlier` is the campaign that the request had made before.
///
/// # Errors
/// [`TableError`].
pub async fn commit(
    table: &Table,
    (campaign, place): (&Campaign, Reservation),
    same: Recognition,
    earlier: &Earlier,
    now: Timestamp,
) -> Result<RunMarker, TableError> {
    let ttl = now.plus_seconds(same.seconds).unix_seconds();
    let cancelled = if let Earlier::Cancelled(id) = earlier { *id } else { CampaignId(Uuid::nil()) };
    let id = CampaignId(with_ordinal(campaign.id.0, place.first()));
    let marker = RunMarker { campaign_id: id, contacts: campaign.counts.queued, ttl };
    let item = table.item(same.fingerprint, &marker)?;
    let mut transaction = Transaction::of_request(table);
    let unused = "attribute_not_exists(pk) OR #ttl <= :now OR campaign_id = :cancelled";
    let unused = Condition::of(unused, [(":now", number(now.unix_seconds())), (":cancelled", text(cancelled))]);
    transaction.write(Write::put(item).when(unused)).or(Unmet::Repeated);
    transaction.insert(id, &Campaign { id, message: None, ..campaign.clone() })?;
    match transaction.commit_reserved([place]).await {
        Err(Cancelled::Condition(Unmet::Repeated, Some(earlier))) => from_item(earlier),
        result => Ok(result.map(|()| marker)?),
    }
}

/// The campaign of a delivery, if it exists.
///
/// # Errors
/// [`TableError`].
pub async fn of_delivery(table: &Table, delivery: &Delivery) -> Result<Option<Campaign>, TableError> {
    match delivery.campaign_id {
        Some(id) => table.find(id).await,
        None => Ok(None),
    }
}

/// A page of a campaign's contacts.
///
/// # Errors
/// [`TableError::Missing`] where there is no such campaign.
pub async fn list_contacts(
    table: &Table,
    id: CampaignId,
    query: &PageQuery,
) -> Result<Page<CampaignContact>, TableError> {
    let (campaign, deleted) = with_deleted(table, id).await?;
    let places = campaign.places();
    let total = u64::from(places) - deleted.len() as u64;
    let left = (0..places).filter(|place| !deleted.contains(place));
    let (before, count) = query.within(total);
    let skip = usize::try_from(before).unwrap_or(usize::MAX);
    let page = left.skip(skip).take(usize::try_from(count).unwrap_or(usize::MAX));
    let contacts = contacts_at(table, &campaign, page).await?;
    let contacts = contacts.into_iter().map(|contact| contact.as_answered_in(&campaign)).collect();
    Ok(query.of(query.order.of(contacts), total))
}

/// A contact, and the pointer that leads to its campaign.
async fn with_pointer(table: &Table, id: CampaignContactId) -> Result<Option<(CampaignContact, Item)>, TableError> {
    // Both at the same time, so that a request takes as long for an unknown contact of a known campaign as for any other
    // contact.
    let pointer = run_pointer(&table.tenant, id.run());
    let (contact, pointer) = futures_util::join!(table.find::<CampaignContact>(id), table.store.get(&pointer));
    Ok(contact?.zip(pointer?))
}

/// A contact with its campaign, if both exist.
///
/// # Errors
/// [`TableError`].
pub(crate) async fn with_campaign(
    table: &Table,
    id: CampaignContactId,
) -> Result<Option<(CampaignContact, Campaign)>, TableError> {
    let Some((contact, pointer)) = with_pointer(table, id).await? else { return Ok(None) };
    let campaign = table.find::<Campaign>(CampaignId(target_id(&pointer)?)).await?;
    Ok(campaign.map(|campaign| (contact, campaign)))
}

/// Removes a contact from its campaign. If it is still queued, it is never sent.
///
/// # Errors
/// [`TableError::Missing`] where there is none.
pub async fn remove_contact(table: &Table, id: CampaignContactId) -> Result<CampaignContact, TableError> {
    let lost = LostAnswer::default();
    let mut round = table.store.backoff();
    loop {
        let (contact, pointer) = with_pointer(table, id).await?.ok_or_else(|| lost.missing())?;
        let campaign = table.get::<Campaign>(CampaignId(target_id(&pointer)?));
        let (campaign, kept) =
            futures_util::join!(campaign, text::copy_text_into_messages(table, id.run(), contact.message_positions()));
        let campaign = kept.and(campaign)?;
        match removing(table, &contact, &campaign).commit_noting(&lost).await {
            Ok(()) => return Ok(contact.as_answered_in(&campaign)),
            Err(Cancelled::Condition(RemovalRefused::NeverAdded, _)) => return Err(lost.missing()),
            Err(Cancelled::Condition(RemovalRefused::Changed, _)) => round.again("the campaign").await?,
            Err(cancelled) => return Err(cancelled.into()),
        }
    }
}

/// Why a contact was kept in its campaign.
enum RemovalRefused {
    /// The contact or the campaign has changed since it was read.
    Changed,
    /// A request that crashed had staged the contact; the campaign never had it.
    NeverAdded,
}

/// Removes a contact from its campaign and from the counts.
fn removing<'a>(table: &'a Table, contact: &CampaignContact, campaign: &Campaign) -> Transaction<'a, RemovalRefused> {
    let (id, run, tenant) = (contact.id, contact.id.run(), &table.tenant);
    let mut removal = Transaction::new(table).otherwise(RemovalRefused::Changed);
    removal.write(Write::delete(table.key::<CampaignContact>(id)).when(as_read(contact)));
    let place = UpdateExpression::new().add("places", numbers([id.place().unwrap_or_default()]));
    let place = table.noting_removal(place, CampaignContact::NAME, [id.0]);
    removal.write(Write::update(deleted_contacts(tenant, run, partition(id)), place));
    if campaign.has_pointers {
        let same = Condition::of("id = :id", [(":id", text(id))]);
        let pointer = Write::delete(contact_pointer(tenant, run, contact.contact_id)).when(same);
        removal.write(pointer).or(RemovalRefused::NeverAdded);
    }
    // This contact may have the last delivery under way. The stream completes the campaign when it sees a change of the
    // campaign.
    if contact.is_dispatched_in(campaign) {
        let changed =
            Write::update(table.key::<Campaign>(campaign.id), UpdateExpression::new().add("version", number(1)));
        removal.write(changed.when(Condition::exists()));
    }
    // A failure of an earlier round is no longer counted.
    let is_counted = contact.status != ContactStatus::Failed || contact.round == campaign.round;
    let tally =
        if is_counted { Tally::default().status((contact.status, contact.round), -1) } else { Tally::default() };
    let outcome = contact.result.as_ref().map(|result| result.outcome);
    removal.write_all(tally.outcome(outcome, -1).write(table, id));
    removal
}

/// The contacts of a campaign at these places, without the deleted ones.
///
/// # Errors
/// [`TableError`].
pub async fn contacts_at(
    table: &Table,
    campaign: &Campaign,
    places: impl IntoIterator<Item = u32>,
) -> Result<Vec<CampaignContact>, TableError> {
    let keys: Vec<Key> =
        places.into_iter().map(|place| table.key::<CampaignContact>(campaign.contact(place))).collect();
    let items = table.store.get_all(&keys).await?;
    let mut contacts: Vec<CampaignContact> = readable(items);
    contacts.sort_by_key(|contact| contact.id);
    Ok(contacts)
}

/// A campaign, and the places that were deleted from it.
async fn with_deleted(table: &Table, id: CampaignId) -> Result<(Campaign, BTreeSet<u32>), TableError> {
    let first = deleted_contacts(&table.tenant, id.run(), 0);
    // Not `try_join!`: the cost of a request must not depend on whether the campaign exists.
    let (campaign, deleted) =
        futures_util::join!(table.get::<Campaign>(id), table.store.query(&first.pk, &first.sk, None));
    Ok((campaign?, deleted?.iter().flat_map(places).collect()))
}

/// A campaign as a caller sees it, with its message and the counts of its contacts, both from `items`.
pub(super) fn answered(campaign: &Campaign, items: &[Item]) -> Campaign {
    let results = ContactResults::of(items, campaign.round);
    let message = CampaignText::among(items).and_then(|present| present.text);
    Campaign { message, ..campaign.clone() }.with_results(results).as_answered()
}

/// The results of a campaign's contacts, from `items`.
pub(super) fn contact_totals(campaign: &Campaign, items: &[Item]) -> ContactTotals {
    let (counts, next) = (answered(campaign, items).counts, campaign.next_place);
    let deleted = items.iter().flat_map(places).filter(|place| *place < next).count() as u64;
    let dispatched = u64::from(next).saturating_sub(deleted + counts.ended());
    ContactTotals { counts, dispatched }
}

/// The places in an item that have no visible contact: the contact is deleted, or is not added yet.
pub(super) fn places(item: &Item) -> Vec<u32> {
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
