//! Pointers from the contacts of a campaign to their places, which show whether the campaign has a given contact.

use std::collections::HashSet;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{CampaignContact, RunId};
use crate::table::item::{Item, target_id, text};
use crate::table::keys::Key;
use crate::table::store::BATCH_GET_LIMIT;
use crate::table::{Table, TableError};
use crate::values::id::{CampaignContactId, ContactId, ordinal};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Partitions of contacts that are read at the same time.
pub(super) const CONCURRENT_PARTITIONS: usize = 8;
/// Partitions of the pointers of a run.
const PARTITIONS: u64 = 4;

/// Contacts that are being added: they have places, which are still hidden.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StagedContacts {
    /// The place of the first.
    pub first: u32,
    /// The place after the last.
    pub end: u32,
    /// When the marker expires, so that the next request adds contacts after these.
    pub expires_at: Timestamp,
    /// The id of the attempt to add them.
    pub by: Uuid,
}

impl StagedContacts {
    /// Whether a contact is one of them.
    pub fn has(&self, id: CampaignContactId) -> bool {
        id.place().is_some_and(|place| (self.first..self.end).contains(&place))
    }
}

/// The partition of a run's pointers with this number.
fn partition(run: RunId, number: u64) -> String {
    format!("CAMPAIGN_POINTERS#{run}#{number}")
}

/// The pointer that leads from a contact to its place in a run.
pub(super) fn contact_pointer(tenant: &Tenant, run: RunId, contact: ContactId) -> Key {
    Key::of(tenant, partition(run, ordinal(contact.0) % PARTITIONS), contact)
}

/// All partitions of a run's pointers.
pub(super) fn pointer_partitions(tenant: &Tenant, run: RunId) -> impl Iterator<Item = String> + use<'_> {
    (0..PARTITIONS).map(move |number| Key::of(tenant, partition(run, number), "").pk)
}

/// The item of the pointer to this contact of a campaign.
pub(super) fn pointer_item(tenant: &Tenant, contact: &CampaignContact) -> Item {
    let mut item = contact_pointer(tenant, contact.id.run(), contact.contact_id).attributes();
    item.insert("id".to_owned(), text(contact.id));
    item
}

/// The `wanted` contacts that are in a run, according to the pointers to their places.
pub(super) async fn contacts_among(
    table: &Table,
    wanted: &[ContactId],
    run: RunId,
    staged: &[StagedContacts],
) -> Result<HashSet<ContactId>, TableError> {
    let read = async |wanted: &[ContactId]| {
        let keys: Vec<Key> = wanted.iter().map(|contact| contact_pointer(&table.tenant, run, *contact)).collect();
        let found = table.store.get_attributes(&keys, "pk, sk, id").await?;
        let mut known = Vec::new();
        for (contact, key) in wanted.iter().zip(&keys) {
            if let Some(pointer) = found.get(key) {
                let place = CampaignContactId(target_id(pointer)?);
                // The request that staged it crashed.
                known.extend((!staged.iter().any(|staged| staged.has(place))).then_some(*contact));
            }
        }
        Ok::<_, TableError>(known)
    };
    let parts: Vec<_> = wanted.chunks(BATCH_GET_LIMIT).map(read).collect();
    let parts: Vec<Vec<ContactId>> = stream::iter(parts).buffer_unordered(CONCURRENT_PARTITIONS).try_collect().await?;
    Ok(parts.into_iter().flatten().collect())
}
