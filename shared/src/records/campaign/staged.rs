//! Contacts that are added to a campaign: a few by one transaction; more are staged at places of their own, and then committed together.
//!
//! A marker hides the places until all contacts are stored. While it is there nobody else adds contacts, so that each contact is in the campaign once.
//! A request that died leaves its marker: its places stay hidden, and after the marker has expired the next request goes on behind them.

use std::collections::{BTreeSet, HashSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::storage::{Beside, complete, contact_partitions, message_text, places_of, staged_contacts};
use super::{Campaign, CampaignContact, CampaignStatus, ContactIds, MAX_PLACES};
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::request::input::settle;
use crate::table::item::{number, text, values};
use crate::table::store::Item;
use crate::table::transaction::{Cancelled, Write};
use crate::table::{Table, TableError, readable};
use crate::values::id::{CampaignContactId, CampaignId, ContactId};
use crate::values::time::Timestamp;

/// Seconds after which a marker expires: no request takes as long.
const EXPIRES: i64 = 35;
/// The most contacts that one transaction adds.
const TOGETHER: usize = 16;
/// Partitions of contacts that are read at the same time.
const CONCURRENT_PARTITIONS: usize = 8;

crate::input! {
    /// The input of add-campaign-contacts.
    pub struct MoreContacts {
        /// The contacts that are added. One that is in the campaign already stays as it is.
        pub contact_ids: ContactIds,
    }
}

crate::object! {
    /// The answer of add-campaign-contacts.
    pub struct AddedContacts {
        /// The campaign.
        pub campaign_id: CampaignId,
        /// Its status.
        pub status: CampaignStatus,
        /// How many distinct contacts the request names, all of which are in the campaign now.
        pub contacts: u64,
        /// When the campaign is sent next.
        pub next_run_at: Option<Timestamp>,
    }
}

/// Contacts that are being added: they have places, which do not count yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StagedContacts {
    /// The place of the first.
    pub first: u32,
    /// The place behind the last.
    pub end: u32,
    /// When others go on behind them.
    pub expires_at: Timestamp,
    /// The attempt to add them.
    pub by: Uuid,
}

impl StagedContacts {
    /// Whether a contact is one of them.
    pub fn has(&self, id: CampaignContactId) -> bool {
        id.place().is_some_and(|place| (self.first..self.end).contains(&place))
    }
}

impl MoreContacts {
    /// Adds the contacts to a campaign with a schedule.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::request::error::Error::NotFound) where there is no such campaign, [`Error::Conflict`](crate::request::error::Error::Conflict) where it sends nothing
    /// more, [`Error::Invalid`](crate::request::error::Error::Invalid) at unknown contacts.
    pub async fn add(self, cx: &Context<'_>, id: CampaignId) -> Result<AddedContacts> {
        let wanted = self.contact_ids.distinct();
        // Not `try_join!`: the cost of a request must not depend on whether the campaign exists.
        let (read, missing) = futures_util::join!(cx.table.with_items(id), cx.table.missing_contacts(&wanted));
        let read = read.on_missing("campaign_id")?;
        read.0.require_open()?;
        settle(Some(()), self.contact_ids.unknown(&missing?))?;
        let campaign = cx.table.add_contacts(read, &wanted, cx).await.on_missing("campaign_id")??;
        Ok(AddedContacts {
            campaign_id: id,
            status: campaign.status,
            contacts: wanted.len() as u64,
            next_run_at: campaign.next_run_at,
        })
    }
}

impl Campaign {
    /// Refuses to add contacts that would never be sent.
    fn require_open(&self) -> Result<()> {
        match self.status {
            _ if self.start_time.is_none() => {
                Err(Self::conflict("campaign_without_schedule", "The campaign has no schedule"))
            }
            CampaignStatus::Cancelled | CampaignStatus::Completed => Err(self.has_nothing_to_send()),
            _ if self.is_dispatched() => Err(self.has_nothing_to_send()),
            _ => Ok(()),
        }
    }
}

impl Table {
    /// Adds those of `wanted` to a campaign that are not in it. Returns the campaign as it was answered before.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such campaign; inside, a conflict where it sends nothing more, or has too many contacts.
    async fn add_contacts(
        &self,
        (mut campaign, mut items): (Campaign, Vec<Item>),
        wanted: &[ContactId],
        cx: &Context<'_>,
    ) -> Result<Result<Campaign>, TableError> {
        let (clock, by) = (&cx.service.clock, cx.new_attempt());
        let mut round = self.store.backoff();
        loop {
            if let Err(closed) = campaign.require_open() {
                return Ok(Err(closed));
            }
            let (places, staged, now) = (places_of(&campaign), Beside::of(&items).staged, clock.now());
            if !staged.iter().any(|staged| staged.expires_at > now) {
                let known = self.contacts_of(&campaign, places, &staged).await?;
                let new: Vec<ContactId> = wanted.iter().copied().filter(|contact| !known.contains(contact)).collect();
                let answered = complete(&campaign, &items);
                let added = u32::try_from(new.len()).unwrap_or(u32::MAX);
                let end = places.saturating_add(added);
                if added == 0 {
                    return Ok(Ok(answered));
                }
                if end > MAX_PLACES {
                    let full = Campaign::conflict("campaign_full", "The campaign has room for 100000 contacts");
                    return Ok(Err(full));
                }
                let contacts = CampaignContact::queued_from(places, campaign.id, &new, cx.now());
                let staged = StagedContacts { first: places, end, expires_at: now.plus_seconds(EXPIRES), by };
                if contacts.len() <= TOGETHER {
                    let writes = contacts.iter().map(|contact| Ok(Write::create(self.item(contact.id, contact)?)));
                    if self
                        .give_places(&campaign, &staged, cx.now(), writes.collect::<Result<_, TableError>>()?)
                        .await?
                    {
                        return Ok(Ok(answered));
                    }
                } else if self.give_places(&campaign, &staged, cx.now(), vec![self.marker(&campaign, &staged)]).await?
                    // Or the answer to a first attempt was lost.
                    || Beside::of(&self.with_items(campaign.id).await?.1).staged.contains(&staged)
                {
                    self.stage_contacts(&contacts).await?;
                    return self.commit_staged(&campaign, &staged, clock.now()).await.map(|()| Ok(answered));
                }
            }
            // Another request adds contacts, or the campaign has changed.
            if !round.wait().await {
                return Err(TableError::Unavailable("others kept changing the campaign".into()));
            }
            (campaign, items) = self.with_items(campaign.id).await?;
        }
    }

    /// A campaign, and the items beside it.
    async fn with_items(&self, id: CampaignId) -> Result<(Campaign, Vec<Item>), TableError> {
        let first = message_text(&self.tenant, id.run());
        // Not `try_join!`: the cost of a request must not depend on whether the campaign exists.
        let (campaign, items) =
            futures_util::join!(self.get::<Campaign>(id), self.store.query(&first.pk, &first.sk, None));
        Ok((campaign?, items?))
    }

    /// The contacts that are in a campaign.
    async fn contacts_of(
        &self,
        campaign: &Campaign,
        places: u32,
        staged: &[StagedContacts],
    ) -> Result<HashSet<ContactId>, TableError> {
        let partitions: BTreeSet<String> = contact_partitions(&self.tenant, campaign.id.run(), places).collect();
        let read = async |partition: String| {
            let contacts: Vec<CampaignContact> = readable(self.store.query(&partition, "!", None).await?);
            let counted = contacts.iter().filter(|contact| !staged.iter().any(|staged| staged.has(contact.id)));
            Ok::<_, TableError>(counted.map(|contact| contact.contact_id).collect::<Vec<_>>())
        };
        let parts: Vec<_> = partitions.into_iter().map(read).collect();
        let parts: Vec<Vec<ContactId>> =
            stream::iter(parts).buffer_unordered(CONCURRENT_PARTITIONS).try_collect().await?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// The write that hides the places of staged contacts.
    fn marker(&self, campaign: &Campaign, staged: &StagedContacts) -> Write {
        let mut marker = staged_contacts(&self.tenant, campaign.id.run(), staged.first).attributes();
        marker.extend(values([
            ("first", number(staged.first)),
            ("end", number(staged.end)),
            ("expires_at", text(staged.expires_at)),
            ("by", text(staged.by)),
        ]));
        Write::create(marker)
    }

    /// Gives a campaign more places, together with what is at them. Returns false where it has changed since it was read.
    async fn give_places(
        &self,
        campaign: &Campaign,
        staged: &StagedContacts,
        now: Timestamp,
        there: Vec<Write>,
    ) -> Result<bool, TableError> {
        let unfinished = "id = :id AND counts.queued = :first AND #status = :was";
        let due = format!("{unfinished} AND attribute_exists(due_at)");
        let is_sent = matches!(campaign.status, CampaignStatus::Queued | CampaignStatus::InProgress);
        let more = Write::Update {
            key: self.key::<Campaign>(campaign.id),
            expression: "SET counts.queued = :end, updated_at = :now ADD version :one".into(),
            condition: Some(if is_sent { due.into() } else { unfinished.into() }),
            values: values([
                (":id", text(campaign.id)),
                (":first", number(staged.first)),
                (":was", text(campaign.status.as_str())),
                (":end", number(staged.end)),
                (":now", text(now)),
                (":one", number(1)),
            ]),
        };
        let writes: Vec<Write> = std::iter::once(more).chain(there).collect();
        match self.store.transact(&writes).await {
            Ok(()) => Ok(true),
            Err(Cancelled::Condition(..)) => Ok(false),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Has staged contacts count. Where their campaign was deleted meanwhile, they go too.
    async fn commit_staged(
        &self,
        campaign: &Campaign,
        staged: &StagedContacts,
        now: Timestamp,
    ) -> Result<(), TableError> {
        let run = campaign.id.run();
        if now >= staged.expires_at {
            return Err(TableError::Unavailable("it took too long".into()));
        }
        let committed = Write::Delete {
            key: staged_contacts(&self.tenant, run, staged.first),
            condition: Some("expires_at = :expires"),
            values: values([(":expires", text(staged.expires_at))]),
        };
        match self.store.transact(&[committed]).await {
            Ok(()) => Ok(()),
            // The answer to a first attempt was lost: nothing but this and the end of the campaign removes a marker.
            Err(Cancelled::Condition(..)) if self.find::<Campaign>(campaign.id).await?.is_some() => Ok(()),
            Err(Cancelled::Condition(..)) => {
                let places = staged.first..staged.end;
                let keys: Vec<_> = places.map(|place| self.key::<CampaignContact>(run.contact(place))).collect();
                self.store.delete_all(&keys).await?;
                Err(TableError::Missing)
            }
            Err(cancelled) => Err(cancelled.into()),
        }
    }
}
