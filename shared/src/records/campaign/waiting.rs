//! The contacts of a campaign that wait for another attempt, in the order of their times: a pass reads only those whose
//! time has come.
//!
//! An item says where to look, and the contact says whether it still waits. So nothing that ends the wait has to remove
//! the item: the pass at its time does. The transaction that begins the wait puts the item, under a key that is never
//! put again. A pass removes the items that it has read, after the contacts were dispatched.

use std::collections::HashSet;

use serde::Deserialize;

use super::contact_partitions::waiting_partition;
use super::storage::contacts_at;
use super::{Campaign, CampaignContact};
use crate::table::item::{readable, text};
use crate::table::keys::Key;
use crate::table::transaction::Write;
use crate::table::{Table, TableError};
use crate::values::id::CampaignContactId;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// The key of the item of a contact that waits until `at` since the change that gave it this `version`.
fn key(tenant: &Tenant, id: CampaignContactId, at: Timestamp, version: u64) -> Key {
    Key { pk: waiting_partition(tenant, id.run()), sk: format!("{at}#{id}#{version:010}") }
}

/// The write that puts the item of the contact `was`, whose change in the same transaction makes it wait until `at`.
pub(super) fn noting(table: &Table, was: &CampaignContact, at: Timestamp) -> Write {
    let mut item = key(&table.tenant, was.id, at, was.version + 1).attributes();
    item.extend([("id".to_owned(), text(was.id)), ("at".to_owned(), text(at))]);
    Write::put(item)
}

/// The item of a contact that waits.
#[derive(Debug, Deserialize)]
pub(super) struct WaitingItem {
    #[serde(flatten)]
    key: Key,
    id: CampaignContactId,
    at: Timestamp,
}

/// The first items of a campaign.
#[derive(Debug)]
pub(super) struct FirstWaiting {
    /// Those whose time has come.
    pub items: Vec<WaitingItem>,
    /// Their contacts, as far as they still wait.
    pub contacts: Vec<CampaignContact>,
    /// The time of the first of the others.
    pub again: Option<Timestamp>,
}

/// Reads the first items of a campaign, at most `count`, and the contacts whose time has come.
///
/// # Errors
/// [`TableError`].
pub(super) async fn first(
    table: &Table,
    campaign: &Campaign,
    count: u32,
    now: Timestamp,
) -> Result<FirstWaiting, TableError> {
    let partition = waiting_partition(&table.tenant, campaign.id.run());
    let (found, _) = table.store.some_of(&partition, None, count as usize).await?;
    let (items, later): (Vec<_>, Vec<_>) = readable::<WaitingItem>(found).into_iter().partition(|item| item.at <= now);
    let again = later.first().map(|item| item.at);
    // A contact may have items of earlier attempts.
    let places: HashSet<u32> = items.iter().filter_map(|item| item.id.place()).collect();
    let mut contacts = contacts_at(table, campaign, places).await?;
    contacts.retain(|contact| contact.is_waiting_in(campaign) && contact.next_attempt_at.is_some_and(|at| at <= now));
    Ok(FirstWaiting { items, contacts, again })
}

/// Removes items, except those of contacts that were `left` out.
///
/// # Errors
/// [`TableError`]: some may be removed.
pub(super) async fn remove(table: &Table, items: Vec<WaitingItem>, left: &[CampaignContact]) -> Result<(), TableError> {
    let left: HashSet<CampaignContactId> = left.iter().map(|contact| contact.id).collect();
    let keys: Vec<Key> = items.into_iter().filter(|item| !left.contains(&item.id)).map(|item| item.key).collect();
    table.store.delete_all(&keys).await
}
