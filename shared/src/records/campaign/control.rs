//! What a caller does with a campaign that runs: pauses, resumes or cancels it, or has its failed contacts sent again. Each is one write of the
//! campaign alone, however many contacts it has; the dispatch and the deliveries look at the campaign before they send.

use uuid::Uuid;

use super::storage::complete;
use super::{Campaign, CampaignStatus, Counts};
use crate::records::declaration::Declared as _;
use crate::request::error::{Error, Location, Result};
use crate::table::{Table, TableError};
use crate::values::id::CampaignId;
use crate::values::time::Timestamp;

/// Why a campaign is not changed.
enum Unchanged {
    /// It is as it is asked to be.
    Already(Box<Campaign>),
    /// Its status forbids it.
    Refused(Error),
}

impl Campaign {
    /// Stops it: what is queued is never sent.
    ///
    /// # Errors
    /// [`Error::Conflict`] where nothing is left to send.
    pub fn cancel(&mut self, counts: Counts, now: Timestamp) -> Result<()> {
        if self.is_over(counts) {
            return Err(self.has_nothing_to_send());
        }
        self.stop(CampaignStatus::Cancelled, now);
        Ok(())
    }

    /// Stops it until it is resumed.
    ///
    /// # Errors
    /// [`Error::Conflict`] where nothing is left to send.
    pub fn pause(&mut self, counts: Counts, now: Timestamp) -> Result<()> {
        if self.status == CampaignStatus::Paused {
            return Ok(());
        }
        if self.is_over(counts) {
            return Err(self.has_nothing_to_send());
        }
        self.stop(CampaignStatus::Paused, now);
        Ok(())
    }

    /// Continues it after a pause.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is not paused and nothing is left to send.
    pub fn resume(&mut self, counts: Counts, now: Timestamp) -> Result<()> {
        if self.status == CampaignStatus::Paused {
            if self.start_time.is_some() && self.until_place.is_none() && self.next_place == 0 {
                // Nothing was sent yet.
                self.plan(now);
            } else {
                self.queue(now);
            }
        } else if self.is_over(counts) {
            return Err(self.has_nothing_to_send());
        }
        Ok(())
    }

    /// Queues the failed contacts again.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is cancelled, or being sent.
    pub fn retry(&mut self, counts: Counts, now: Timestamp) -> Result<()> {
        match self.status {
            CampaignStatus::Cancelled => return Err(self.has_nothing_to_send()),
            CampaignStatus::Paused => return Err(Self::is_in_progress()),
            // What was added since the last execution waits for the next one.
            _ if counts.queued > 0 && !self.waits() => return Err(Self::is_in_progress()),
            _ if counts.failed == 0 => {}
            _ => {
                self.round += 1;
                self.queue(now);
            }
        }
        Ok(())
    }

    /// Whether nothing is left to send, and nothing ever will be without a retry.
    fn is_over(&self, counts: Counts) -> bool {
        let is_left = counts.queued > 0 || self.recurs() || self.waits();
        matches!(self.status, CampaignStatus::Cancelled | CampaignStatus::Completed) || !is_left
    }

    /// Whether it waits for its time, or for somebody who enables or resumes it.
    pub(super) fn waits(&self) -> bool {
        let waiting = [CampaignStatus::NotStarted, CampaignStatus::ToBeRun, CampaignStatus::Paused];
        self.start_time.is_some() && waiting.contains(&self.status)
    }

    /// Due as soon as its window is open, from its first contact on: those before the last one dispatched may have a delivery that was parked. What was
    /// added since the last execution waits for the next one.
    fn queue(&mut self, now: Timestamp) {
        let opens = self.schedule().and_then(|schedule| {
            self.until_place = self.until_place.or(Some(self.next_place));
            schedule.opens(now)
        });
        let at = opens.unwrap_or(now);
        self.status = if at == now { CampaignStatus::Queued } else { CampaignStatus::ToBeRun };
        (self.due_at, self.next_place) = (Some(at), 0);
        self.touch(now);
    }

    /// Sets what a campaign with a schedule does next: it is completed, not started, or due at a time.
    pub(super) fn plan(&mut self, now: Timestamp) {
        let Some(schedule) = self.schedule() else { return };
        let has_run = self.last_run_at.is_some_and(|last| schedule.start <= last);
        let next = match self.until_place {
            Some(_) => schedule.opens(now),
            None if has_run => schedule.next(now),
            None => schedule.first(now),
        };
        (self.status, self.due_at) = match next {
            None => (CampaignStatus::Completed, None),
            Some(_) if !self.enabled => (CampaignStatus::NotStarted, None),
            Some(_) => (CampaignStatus::ToBeRun, next),
        };
        self.touch(now);
    }

    fn stop(&mut self, status: CampaignStatus, now: Timestamp) {
        (self.status, self.due_at) = (status, None);
        self.touch(now);
    }

    /// The answer to a request that waits for the end of a campaign.
    pub fn is_in_progress() -> Error {
        Self::conflict("campaign_in_progress", "The campaign is being sent")
    }

    /// The answer to a request that needs a campaign with something left to send.
    pub(super) fn has_nothing_to_send(&self) -> Error {
        match self.status {
            CampaignStatus::Cancelled => Self::conflict("campaign_cancelled", "The campaign is cancelled"),
            _ => Self::conflict("campaign_completed", "The campaign has nothing left to send"),
        }
    }

    pub(super) fn conflict(kind: &'static str, message: &'static str) -> Error {
        Error::Conflict { at: Location::path().name("campaign_id"), kind, message }
    }
}

impl Table {
    /// Changes a campaign by `control`, which also gets how many of its contacts are in each state. Of one request `by` the change is made
    /// once. Returns the campaign as it is answered.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such campaign. The inner error is that of `control`.
    pub async fn control_campaign(
        &self,
        id: CampaignId,
        control: fn(&mut Campaign, Counts, Timestamp) -> Result<()>,
        by: Uuid,
        now: Timestamp,
    ) -> Result<Result<Campaign>, TableError> {
        let (item, beside) = self.item_with_items(id).await?;
        let change = |campaign: &mut Campaign| {
            let was = campaign.clone();
            let counts = complete(&was, &beside).counts;
            control(campaign, counts, now).map_err(Unchanged::Refused)?;
            if *campaign == was { Err(Unchanged::Already(Box::new(was))) } else { Ok(()) }
        };
        let changed = match self.try_change_item(item, id, by, change).await? {
            Ok(changed) => changed,
            Err(Unchanged::Already(campaign)) => *campaign,
            Err(Unchanged::Refused(error)) => return Ok(Err(error)),
        };
        Ok(Ok(complete(&changed, &beside)))
    }

    /// Removes a campaign that is not being sent, and returns what it was. Its contacts go by the stream.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such campaign; inside, [`Error::Conflict`] while it is being sent.
    pub async fn remove_campaign(&self, id: CampaignId) -> Result<Result<Campaign>, TableError> {
        let seen = self.campaign(id).await?;
        let completed = seen.status == CampaignStatus::Completed;
        // What is stored may lag behind what became of the last contact, but not while there is more to dispatch.
        let check = |stored: &Campaign| match stored.status {
            CampaignStatus::Queued | CampaignStatus::Paused => Err(()),
            // Of another round is what somebody retried just now.
            CampaignStatus::InProgress if !(completed && stored.round == seen.round && stored.is_dispatched()) => {
                Err(())
            }
            _ => Ok(()),
        };
        let removed = self.remove_if(id, check).await?;
        Ok(removed.map(|_| seen).map_err(|()| Campaign::is_in_progress()))
    }
}
