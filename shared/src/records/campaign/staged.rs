//! Adds contacts to a campaign. One transaction adds a few of them; more are staged at places of their own and then
//! committed together.
//!
//! A marker hides the new places until all contacts are stored. While the marker exists, no other request adds
//! contacts, so that each contact is in the campaign once. A crashed request leaves its marker: its places stay hidden,
//! and once the marker has expired, the next request adds its contacts after them.

use std::collections::HashSet;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::contact_partitions::contact_partitions;
use super::contact_pointers::{CONCURRENT_PARTITIONS, StagedContacts, contact_pointer, contacts_among, pointer_item};
use super::storage::{CampaignExtras, answered, missing_contacts, stage_contacts, staged_contacts, with_items};
use super::{Campaign, CampaignContact, CampaignStatus, ContactIds, MAX_PLACES};
use crate::input::settle;
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::table::error::was_done;
use crate::table::expression::Condition;
use crate::table::item::{Item, number, readable, text, values};
use crate::table::transaction::{Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignId, ContactId};
use crate::values::time::Timestamp;

/// Seconds after which a marker expires: every request ends sooner.
const EXPIRES: i64 = 35;
/// The most contacts that one transaction adds.
const TOGETHER: usize = 16;

crate::input! {
    /// The input of add-campaign-contacts.
    pub struct MoreContacts {
        /// Contacts to add. A contact that is already in the campaign stays as it is.
        pub contact_ids: ContactIds,
    }
}

crate::object! {
    /// The answer of add-campaign-contacts.
    pub struct AddedContacts {
        /// The campaign.
        pub campaign_id: CampaignId,
        /// Status of the campaign.
        pub status: CampaignStatus,
        /// How many distinct contacts the request named. All of them are in the campaign now.
        pub contacts: u64,
        /// Time at which the campaign is sent next; null if it is not sent again.
        pub next_run_at: Option<Timestamp>,
    }
}

/// How a campaign gets the contacts that a request names.
pub(super) enum Addition {
    /// There is nothing to add: the campaign has them all.
    None,
    /// Wait: another request is adding contacts.
    Waits,
    /// These contacts get places after the others.
    Contacts(PlacedContacts),
}

/// Contacts that a campaign does not have yet, with their places.
pub(super) struct PlacedContacts {
    contacts: Vec<CampaignContact>,
    staged: StagedContacts,
    /// Whether they have pointers to their places.
    have_pointers: bool,
}

impl PlacedContacts {
    /// The number of contacts.
    pub fn count(&self) -> u64 {
        self.contacts.len() as u64
    }

    /// Whether one transaction adds them all.
    fn are_few(&self) -> bool {
        self.contacts.len() <= TOGETHER
    }

    /// Whether `items`, which are stored with the campaign, contain the marker that hides these contacts.
    pub fn are_hidden(&self, items: &[Item]) -> bool {
        CampaignExtras::of(items).staged.contains(&self.staged)
    }
}

/// Adds contacts to a campaign with a schedule.
///
/// # Errors
/// [`Error::NotFound`](crate::request::error::Error::NotFound) where there is no such campaign,
/// [`Error::Conflict`](crate::request::error::Error::Conflict) where it sends nothing more,
/// [`Error::Invalid`](crate::request::error::Error::Invalid) at unknown contacts.
pub async fn add_contacts(cx: &Context<'_>, id: CampaignId, more: MoreContacts) -> Result<AddedContacts> {
    let wanted = more.contact_ids.distinct();
    // Not `try_join!`: the cost of a request must not depend on whether the campaign exists.
    let (read, missing) = futures_util::join!(with_items(&cx.table, id), missing_contacts(&cx.table, &wanted));
    let read = read.on_missing("campaign_id")?;
    read.0.require_open()?;
    settle(Some(()), more.contact_ids.unknown(&missing?))?;
    let campaign = add(cx, read, &wanted).await?;
    Ok(AddedContacts {
        campaign_id: id,
        status: campaign.status,
        contacts: wanted.len() as u64,
        next_run_at: campaign.next_run_at,
    })
}

impl Campaign {
    /// Refuses to add contacts that would never be sent.
    pub(super) fn require_open(&self) -> Result<()> {
        match self.status {
            _ if self.start_time.is_none() => {
                Err(Self::conflict("campaign_without_schedule", "The campaign has no schedule"))
            }
            CampaignStatus::Cancelled | CampaignStatus::Completed => Err(self.nothing_to_send().into()),
            _ if self.is_dispatched() => Err(self.nothing_to_send().into()),
            _ => Ok(()),
        }
    }
}

/// Adds the contacts of `wanted` that a campaign does not have yet. Returns the campaign as a caller saw it before.
///
/// # Errors
/// [`Error::NotFound`](crate::request::error::Error::NotFound) where there is no such campaign,
/// [`Error::Conflict`](crate::request::error::Error::Conflict) where it sends nothing more, or has too many contacts.
pub(super) async fn add(
    cx: &Context<'_>,
    (mut campaign, mut items): (Campaign, Vec<Item>),
    wanted: &[ContactId],
) -> Result<Campaign> {
    let (table, id) = (&cx.table, campaign.id);
    let mut round = table.store.backoff();
    loop {
        campaign.require_open()?;
        match addition(cx, &campaign, &items, wanted).await? {
            Addition::None => return Ok(answered(&campaign, &items)),
            // Another request adds contacts.
            Addition::Waits => {}
            Addition::Contacts(new) => {
                if give_places(table, &campaign, &new, cx.now()).await?
                    // Or the answer to an earlier attempt was lost.
                    || new.are_hidden(&with_items(table, id).await.on_missing("campaign_id")?.1)
                {
                    show_contacts(cx, id, &new).await?;
                    return Ok(answered(&campaign, &items));
                }
            }
        }
        round.again("the campaign").await?;
        (campaign, items) = with_items(table, id).await.on_missing("campaign_id")?;
    }
}

/// How a campaign with these `items` gets the `wanted` contacts.
///
/// # Errors
/// [`Error::Conflict`](crate::request::error::Error::Conflict) where it would have too many contacts.
pub(super) async fn addition(
    cx: &Context<'_>,
    campaign: &Campaign,
    items: &[Item],
    wanted: &[ContactId],
) -> Result<Addition> {
    if wanted.is_empty() {
        return Ok(Addition::None);
    }
    let (first, staged, now) = (campaign.places(), CampaignExtras::of(items).staged, cx.service.clock.now());
    if staged.iter().any(|staged| staged.expires_at > now) {
        return Ok(Addition::Waits);
    }
    let known = if campaign.has_pointers {
        contacts_among(&cx.table, wanted, campaign.id.run(), &staged).await?
    } else {
        contacts_of(&cx.table, campaign, &staged).await?
    };
    let new: Vec<ContactId> = wanted.iter().copied().filter(|contact| !known.contains(contact)).collect();
    let end = first.saturating_add(u32::try_from(new.len()).unwrap_or(u32::MAX));
    match end {
        _ if new.is_empty() => Ok(Addition::None),
        _ if end > MAX_PLACES => Err(Campaign::conflict("campaign_full", "The campaign has room for 100000 contacts")),
        _ => Ok(Addition::Contacts(PlacedContacts {
            contacts: CampaignContact::queued_from(first, campaign, &new, cx.now()),
            staged: StagedContacts { first, end, expires_at: now.plus_seconds(EXPIRES), by: cx.new_attempt() },
            have_pointers: campaign.has_pointers,
        })),
    }
}

/// The contacts that are in a campaign without pointers.
async fn contacts_of(
    table: &Table,
    campaign: &Campaign,
    staged: &[StagedContacts],
) -> Result<HashSet<ContactId>, TableError> {
    let read = async |partition: String| {
        let contacts: Vec<CampaignContact> = readable(table.store.query(&partition, "!", None).await?);
        let counted = contacts.iter().filter(|contact| !staged.iter().any(|staged| staged.has(contact.id)));
        Ok::<_, TableError>(counted.map(|contact| contact.contact_id).collect::<Vec<_>>())
    };
    let parts: Vec<_> = contact_partitions(&table.tenant, campaign.id.run()).map(read).collect();
    let parts: Vec<Vec<ContactId>> = stream::iter(parts).buffer_unordered(CONCURRENT_PARTITIONS).try_collect().await?;
    Ok(parts.into_iter().flatten().collect())
}

/// The writes for the new places of a campaign: its new contacts, or the marker that hides the places until the
/// contacts are stored.
///
/// # Errors
/// [`TableError`] where a contact cannot be stored.
pub(super) fn with_places(table: &Table, id: CampaignId, new: &PlacedContacts) -> Result<Vec<Write>, TableError> {
    if new.are_few() {
        let contacts = new.contacts.iter().map(|contact| Ok(Write::create(table.item(contact.id, contact)?)));
        let pointed = if new.have_pointers { &new.contacts[..] } else { &[] };
        let pointers = pointed.iter().map(|contact| Ok(Write::put(pointer_item(&table.tenant, contact))));
        return contacts.chain(pointers).collect();
    }
    let staged = &new.staged;
    let mut marker = staged_contacts(&table.tenant, id.run(), staged.first).attributes();
    marker.extend(values([
        ("first", number(staged.first)),
        ("end", number(staged.end)),
        ("expires_at", text(staged.expires_at)),
        ("by", text(staged.by)),
    ]));
    Ok(vec![Write::create(marker)])
}

/// Gives a campaign more places, together with their contacts or their marker. Returns false if the campaign has
/// changed since it was read.
async fn give_places(
    table: &Table,
    campaign: &Campaign,
    new: &PlacedContacts,
    now: Timestamp,
) -> Result<bool, TableError> {
    let mut more = campaign.clone();
    more.grow(new.staged.end, now);
    let mut transaction = Transaction::new(table);
    transaction.replace(campaign.id, campaign, more, None)?;
    transaction.write_all(with_places(table, campaign.id, new)?);
    was_done(transaction.commit().await)
}

/// Stores contacts whose places are hidden, and then shows them. Contacts that one transaction added are visible
/// already.
///
/// # Errors
/// [`Error::NotFound`](crate::request::error::Error::NotFound) where the campaign was deleted in the meantime.
pub(super) async fn show_contacts(cx: &Context<'_>, id: CampaignId, new: &PlacedContacts) -> Result<()> {
    if new.are_few() {
        return Ok(());
    }
    stage_contacts(&cx.table, &new.contacts, new.have_pointers).await?;
    commit_staged(&cx.table, id, new, cx.service.clock.now()).await.on_missing("campaign_id")
}

/// Shows staged contacts. If their campaign was deleted in the meantime, they are deleted too.
async fn commit_staged(table: &Table, id: CampaignId, new: &PlacedContacts, now: Timestamp) -> Result<(), TableError> {
    let (run, staged) = (id.run(), &new.staged);
    if now >= staged.expires_at {
        return Err(TableError::Unavailable("it took too long".into()));
    }
    let same = Condition::of("expires_at = :expires", [(":expires", text(staged.expires_at))]);
    let committed = Write::delete(staged_contacts(&table.tenant, run, staged.first)).when(same);
    // Or the answer to an earlier attempt was lost: only this step and the end of the campaign remove a marker.
    if was_done(table.store.transact(&[committed]).await)? || table.find::<Campaign>(id).await?.is_some() {
        return Ok(());
    }
    let mut keys: Vec<_> = new.contacts.iter().map(|contact| table.key::<CampaignContact>(contact.id)).collect();
    if new.have_pointers {
        let pointer = |contact: &CampaignContact| contact_pointer(&table.tenant, run, contact.contact_id);
        keys.extend(new.contacts.iter().map(pointer));
    }
    table.store.delete_all(&keys).await?;
    Err(TableError::Missing)
}
