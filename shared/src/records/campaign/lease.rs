//! The lease of a campaign: one function at a time sends it, and another one continues after the lease has expired.

use aws_sdk_dynamodb::types::AttributeValue;

use super::{Campaign, CampaignStatus};
use crate::table::error::Cancelled;
use crate::table::item::{from_item, number, text, values};
use crate::table::keys::Key;
use crate::table::{Table, TableError};
use crate::values::id::CampaignId;
use crate::values::time::Timestamp;

/// Seconds after which a lease expires. A function renews it after every few contacts.
const LEASE: i64 = 90;

/// A campaign that this function sends, until the lease expires.
#[derive(Debug)]
pub struct Lease {
    /// The campaign, as it was when the lease began.
    pub campaign: Campaign,
    /// The place of the next contact to dispatch.
    pub next: u32,
    expires_at: Timestamp,
}

impl Lease {
    /// The place behind the last contact of the execution.
    pub fn until(&self) -> u32 {
        self.campaign.until_place.unwrap_or_default()
    }
}

impl Table {
    /// Takes a lease on the due campaign at `key`; `None` where another function has one, or nothing is left to do.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn lease_campaign(&self, key: &Key, now: Timestamp) -> Result<Option<Lease>, TableError> {
        let expires_at = now.plus_seconds(LEASE);
        let values = values([
            (":lease", text(expires_at)),
            (":now", text(now)),
            (":queued", text(CampaignStatus::Queued.as_str())),
            (":in_progress", text(CampaignStatus::InProgress.as_str())),
            (":to_be_run", text(CampaignStatus::ToBeRun.as_str())),
            (":one", number(1)),
        ]);
        // An execution ends with the contacts that there are when it begins.
        let expression = "SET due_at = :lease, #status = :in_progress, updated_at = :now, \
            until_place = if_not_exists(until_place, counts.queued) ADD version :one";
        let condition = "due_at <= :now AND #status IN (:queued, :in_progress, :to_be_run)";
        match self.store.update(key, expression, Some(condition), &values).await {
            Ok(item) => {
                let campaign: Campaign = from_item(item)?;
                Ok(Some(Lease { next: campaign.next_place, campaign, expires_at }))
            }
            Err(Cancelled::Condition(..)) => Ok(None),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Renews the lease and saves the next place. Returns false where the lease is lost.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn renew_lease(&self, lease: &mut Lease, next: u32, now: Timestamp) -> Result<bool, TableError> {
        let expires_at = now.plus_seconds(LEASE);
        let expression = "SET next_place = :next, due_at = :lease ADD version :one";
        let renewed =
            self.while_leased(lease, expression, &[(":next", number(next)), (":lease", text(expires_at))]).await?;
        (lease.next, lease.expires_at) = (next, expires_at);
        Ok(renewed)
    }

    /// Ends the lease before it expires: the campaign is due at once.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn release_lease(&self, lease: &Lease, now: Timestamp) -> Result<bool, TableError> {
        self.while_leased(lease, "SET due_at = :now ADD version :one", &[(":now", text(now))]).await
    }

    /// Ends the lease of a campaign without a contact left to dispatch: it is no longer due, or at its next execution.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn finish_campaign(&self, lease: &Lease, now: Timestamp) -> Result<bool, TableError> {
        let campaign = &lease.campaign;
        let Some(schedule) = campaign.schedule() else {
            let expression = "REMOVE due_pk, due_at, until_place, unscheduled ADD version :one";
            return self.while_leased(lease, expression, &[]).await;
        };
        let until = lease.until();
        let from = (":from", number(until));
        let ran = (":now", text(now));
        let next = match campaign.execution_at {
            Some(next) if campaign.unscheduled => Some(next),
            began => schedule.next(began.unwrap_or(now)),
        };
        if let Some(next) = next {
            // One that was missed meanwhile is made up for at once.
            let due = if next > now { next } else { schedule.opens(now).unwrap_or(now) };
            let status = if campaign.enabled { CampaignStatus::ToBeRun } else { CampaignStatus::NotStarted };
            let (set, remove) = if campaign.enabled { (", due_at = :due", "") } else { ("", ", due_pk, due_at") };
            let expression = format!(
                "SET #status = :status, next_place = :from, last_run_at = :now, execution_at = :next{set} \
                    REMOVE until_place, unscheduled{remove} ADD version :one"
            );
            let mut also = vec![(":status", text(status.as_str())), (":next", text(next.max(now))), from, ran];
            also.extend(campaign.enabled.then(|| (":due", text(due))));
            return self.while_leased(lease, &expression, &also).await;
        }
        // It is the last execution, which waits for what was added meanwhile.
        let expression = "SET last_run_at = :now \
            REMOVE due_pk, due_at, until_place, unscheduled, execution_at ADD version :one";
        let nothing_added = "due_at = :mine AND counts.queued = :until";
        let also = [(":until", number(until)), ran.clone()];
        if self.while_leased_and(lease, nothing_added, expression, &also).await? {
            return Ok(true);
        }
        let expression = "SET due_at = :now, next_place = :from REMOVE until_place, unscheduled ADD version :one";
        self.while_leased(lease, expression, &[from, ran]).await
    }

    /// Ends the lease of a campaign whose window is closed: the rest of its contacts wait until it `opens`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn interrupt_campaign(&self, lease: &Lease, opens: Timestamp) -> Result<bool, TableError> {
        let expression = "SET #status = :to_be_run, due_at = :opens ADD version :one";
        let also = [(":to_be_run", text(CampaignStatus::ToBeRun.as_str())), (":opens", text(opens))];
        self.while_leased(lease, expression, &also).await
    }

    /// Stores that a campaign is completed, where all its contacts were dispatched and none is queued any more: lists are filtered by the
    /// status that is stored. It is looked at after the end of the dispatch and after that of each delivery, so that one of them sees all.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn complete_campaign(&self, id: CampaignId) -> Result<(), TableError> {
        let dispatched = self.find::<Campaign>(id).await?.filter(Campaign::is_dispatched);
        let Some(Campaign { round, .. }) = dispatched else { return Ok(()) };
        if self.campaign(id).await?.status != CampaignStatus::Completed {
            return Ok(());
        }
        let values = values([
            (":round", number(round)),
            (":id", text(id)),
            (":completed", text(CampaignStatus::Completed.as_str())),
            (":in_progress", text(CampaignStatus::InProgress.as_str())),
            (":one", number(1)),
        ]);
        let condition = "id = :id AND #status = :in_progress AND attribute_not_exists(due_at) \
            AND (attribute_not_exists(#round) OR #round = :round)";
        let expression = "SET #status = :completed ADD version :one";
        match self.store.update(&self.key::<Campaign>(id), expression, Some(condition), &values).await {
            Ok(_) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Updates the campaign, unless another function has a lease on it by now. Returns whether it was updated.
    async fn while_leased(
        &self,
        lease: &Lease,
        expression: &str,
        also: &[(&'static str, AttributeValue)],
    ) -> Result<bool, TableError> {
        self.while_leased_and(lease, "due_at = :mine", expression, also).await
    }

    async fn while_leased_and(
        &self,
        lease: &Lease,
        condition: &str,
        expression: &str,
        also: &[(&'static str, AttributeValue)],
    ) -> Result<bool, TableError> {
        let mut values = values([(":mine", text(lease.expires_at)), (":one", number(1))]);
        values.extend(also.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let key = self.key::<Campaign>(lease.campaign.id);
        match self.store.update(&key, expression, Some(condition), &values).await {
            Ok(_) => Ok(true),
            Err(Cancelled::Condition(..)) => Ok(false),
            Err(cancelled) => Err(cancelled.into()),
        }
    }
}
