//! The lease of a campaign: one function at a time sends it, and another one continues after the lease has expired.

use super::state::CampaignStep;
use super::{Campaign, CampaignStatus, storage};
use crate::table::error::NotChanged;
use crate::table::item::from_item;
use crate::table::keys::Key;
use crate::table::{Table, TableError};
use crate::values::id::CampaignId;
use crate::values::time::Timestamp;

/// Seconds after which a lease expires. A function renews it after every few contacts.
const LEASE: i64 = 90;

/// A campaign that this function sends, until the lease expires.
#[derive(Debug)]
pub struct Lease {
    /// The campaign as it was when the lease began, with its message.
    pub campaign: Campaign,
    /// The place of the next contact to dispatch.
    pub next: u32,
    /// The campaign as it is stored now.
    stored: Campaign,
}

impl Lease {
    /// Takes a lease on the due campaign at `key`; `None` if another function has one, or nothing is left to do.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn take(table: &Table, key: &Key, now: Timestamp) -> Result<Option<Self>, TableError> {
        let Some(item) = table.store.get(key).await? else { return Ok(None) };
        let leased = step(table, from_item(item)?, CampaignStep::Lease { until: now.plus_seconds(LEASE) }, now).await?;
        Ok(leased.map(|stored| Self { campaign: stored.clone(), next: stored.next_place, stored }))
    }

    /// The place after the last contact of the execution.
    pub fn until(&self) -> u32 {
        self.campaign.until_place.unwrap_or_default()
    }

    /// Renews the lease, and saves the next place and when a contact before it is due again. Returns false where the
    /// lease is lost.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn renew(
        &mut self,
        table: &Table,
        (next, again): (u32, Option<Timestamp>),
        now: Timestamp,
    ) -> Result<bool, TableError> {
        let renew = CampaignStep::Renew { lease: self.expires_at(), next, until: now.plus_seconds(LEASE), again };
        let Some(stored) = step(table, self.stored.clone(), renew, now).await? else { return Ok(false) };
        (self.next, self.stored) = (next, stored);
        Ok(true)
    }

    /// Ends the lease before it expires: the campaign is due at once.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn release(self, table: &Table, now: Timestamp) -> Result<(), TableError> {
        let release = CampaignStep::Release { lease: self.expires_at() };
        step(table, self.stored, release, now).await.map(drop)
    }

    /// Ends the lease of a campaign whose window is closed: the rest of its contacts wait until it `opens`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn interrupt(self, table: &Table, opens: Timestamp, now: Timestamp) -> Result<(), TableError> {
        let interrupt = CampaignStep::Interrupt { lease: self.expires_at(), opens };
        step(table, self.stored, interrupt, now).await.map(drop)
    }

    /// Ends the lease of a campaign whose organisation may send nothing more today: the rest of its contacts wait until
    /// `at`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn defer(self, table: &Table, at: Timestamp, now: Timestamp) -> Result<(), TableError> {
        let defer = CampaignStep::Defer { lease: self.expires_at(), at };
        step(table, self.stored, defer, now).await.map(drop)
    }

    /// Ends the lease of a campaign whose contacts were all dispatched: it is due again at its next execution, if there
    /// is one, or when a contact that waits is tried `again`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn finish(self, table: &Table, again: Option<Timestamp>, now: Timestamp) -> Result<(), TableError> {
        let finish = CampaignStep::Finish { lease: self.expires_at(), again };
        step(table, self.stored, finish, now).await.map(drop)
    }

    fn expires_at(&self) -> Timestamp {
        self.stored.due_at.unwrap_or(Timestamp::MAX)
    }
}

/// Makes a step of a campaign that was read; `None` if its phase does not allow the step, or the campaign is deleted.
async fn step(
    table: &Table,
    read: Campaign,
    step: CampaignStep,
    now: Timestamp,
) -> Result<Option<Campaign>, TableError> {
    let id = read.id;
    let change = |campaign: &mut Campaign| {
        *campaign = campaign.clone().after(step, now).ok_or(())?;
        Ok(())
    };
    match table.change_read(read, id, (None, false), change, |_, _| None).await {
        Ok(campaign) => Ok(Some(campaign)),
        Err(NotChanged::Refused(()) | NotChanged::Failed(TableError::Missing)) => Ok(None),
        Err(NotChanged::Failed(error)) => Err(error),
    }
}

/// Stores that a campaign is completed if all its contacts were dispatched and none is queued any more: lists are
/// filtered by the stored status. This check runs after the end of the dispatch and after the end of each delivery, so
/// that the last one finds all contacts finished.
///
/// # Errors
/// [`TableError`].
pub(crate) async fn complete(table: &Table, id: CampaignId, now: Timestamp) -> Result<(), TableError> {
    let Some(stored) = table.find::<Campaign>(id).await?.filter(Campaign::is_dispatched) else { return Ok(()) };
    let round = stored.round;
    if storage::read(table, id).await?.status == CampaignStatus::Completed {
        step(table, stored, CampaignStep::Complete { round }, now).await?;
    }
    Ok(())
}
