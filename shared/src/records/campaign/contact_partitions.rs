//! The partitions of a campaign's contacts.
//!
//! Contacts are spread: a group of neighbours shares a partition, and the next group has another one, so that the
//! dispatch of a campaign writes to several at once. Older campaigns fill one partition after the other. The id of a
//! contact shows which layout it has.

use super::{CampaignContact, MAX_PLACES, NEIGHBOURS, RunId};
use crate::table::keys::Key;
use crate::table::stored::{Single, Stored};
use crate::values::id::{CampaignContactId, Id as _, has_flag};
use crate::values::tenant::Tenant;

/// The number of partitions over which contacts are spread: a partition takes a thousand write units per second, and a
/// request may write ten thousand contacts.
const SHARDS: u32 = 16;
/// Contacts in each of the first partitions of a campaign whose contacts are not spread.
const NARROW: u32 = 1000;
/// Contacts in each of the later partitions of such a campaign.
const WIDE: u32 = 10_000;
/// How many partitions a campaign may have.
const PARTITIONS: u32 = WIDE / NARROW + MAX_PLACES / WIDE - 1;
const _: () = assert!(SHARDS <= PARTITIONS);

impl Stored for CampaignContact {
    type Id = CampaignContactId;
    const PARAMETER: &'static str = CampaignContactId::PARAMETER;

    fn key(tenant: &Tenant, id: CampaignContactId) -> Key {
        Key { pk: contact_partition(tenant, id.run(), partition(id)), sk: id.to_string() }
    }
}

impl Single for CampaignContact {}

/// The partition of the items of a run's contacts that wait for another attempt.
pub(super) fn waiting_partition(tenant: &Tenant, run: RunId) -> String {
    Key::of(tenant, format_args!("CAMPAIGN_WAITING#{run}"), "").pk
}

/// The number of a contact's partition in its campaign.
pub(super) fn partition(id: CampaignContactId) -> u32 {
    match id.place().unwrap_or_default() {
        place if has_flag(id.0) => place / NEIGHBOURS % SHARDS,
        place @ ..WIDE => place / NARROW,
        place => WIDE / NARROW + place / WIDE - 1,
    }
}

fn contact_partition(tenant: &Tenant, run: RunId, number: u32) -> String {
    Key::of(tenant, format_args!("CAMPAIGN_CONTACT#{run}#{number:02}"), "").pk
}

/// All partitions in which a campaign may have contacts.
pub(super) fn contact_partitions(tenant: &Tenant, run: RunId) -> impl Iterator<Item = String> + use<'_> {
    (0..PARTITIONS).map(move |number| contact_partition(tenant, run, number))
}
