//! What a caller does with a campaign that runs: pauses, resumes or cancels it, or has its failed contacts sent again. Each is one write of the
//! campaign alone, however many contacts it has; the dispatch and the deliveries look at the campaign before they send.

use uuid::Uuid;

use super::storage::{complete, standing};
use super::{Campaign, CampaignStatus, Counts};
use crate::input::Location;
use crate::request::error::{Error, Result};
use crate::table::declaration::Declared as _;
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

/// What has become of a campaign's contacts, as far as a change of the campaign depends on it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standing {
    /// How many are in each state.
    pub counts: Counts,
    /// How many were dispatched and have a delivery that has not ended.
    pub dispatched: u64,
}

impl Campaign {
    /// Stops it: what is queued is never sent.
    ///
    /// # Errors
    /// [`Error::Conflict`] where nothing is left to send.
    pub fn cancel(&mut self, standing: Standing, now: Timestamp) -> Result<()> {
        if self.is_over(standing.counts) {
            return Err(self.has_nothing_to_send());
        }
        self.stop(CampaignStatus::Cancelled, now);
        Ok(())
    }

    /// Stops it until it is resumed.
    ///
    /// # Errors
    /// [`Error::Conflict`] where nothing is left to send.
    pub fn pause(&mut self, standing: Standing, now: Timestamp) -> Result<()> {
        if self.status == CampaignStatus::Paused {
            return Ok(());
        }
        if self.is_over(standing.counts) {
            return Err(self.has_nothing_to_send());
        }
        self.stop(CampaignStatus::Paused, now);
        Ok(())
    }

    /// Continues it after a pause.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is not paused and nothing is left to send.
    pub fn resume(&mut self, standing: Standing, now: Timestamp) -> Result<()> {
        if self.status != CampaignStatus::Paused {
            return if self.is_over(standing.counts) { Err(self.has_nothing_to_send()) } else { Ok(()) };
        }
        self.rewind();
        if self.start_time.is_none() {
            self.go_on(now, now);
            return Ok(());
        }
        if self.execution_at.is_none() && !self.is_under_way() {
            // It was paused before that time was stored.
            self.plan(now);
        }
        self.wait(now);
        Ok(())
    }

    /// Queues the failed contacts again.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is cancelled, or being sent.
    pub fn retry(&mut self, standing: Standing, now: Timestamp) -> Result<()> {
        match self.status {
            CampaignStatus::Cancelled => return Err(self.has_nothing_to_send()),
            CampaignStatus::Paused => return Err(Self::is_in_progress()),
            _ if standing.dispatched > 0 || self.is_under_way() => return Err(Self::is_in_progress()),
            // What was added since the last execution waits for the next one.
            _ if standing.counts.queued > 0 && !self.waits() => return Err(Self::is_in_progress()),
            _ if standing.counts.failed == 0 => {}
            _ => {
                self.round += 1;
                self.rewind();
                let schedule = self.schedule();
                self.go_on(schedule.and_then(|schedule| schedule.opens(now)).unwrap_or(now), now);
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

    /// Goes on with what is under way at `at`: at once, or when its window opens.
    fn go_on(&mut self, at: Timestamp, now: Timestamp) {
        self.status = if at == now { CampaignStatus::Queued } else { CampaignStatus::ToBeRun };
        self.due_at = Some(at);
        self.touch(now);
    }

    /// Begins again with its first contact: those before the last one dispatched may have a delivery that was parked, or have failed. What was
    /// added since the last execution waits for the next one.
    pub(super) fn rewind(&mut self) {
        if self.next_place == 0 && self.until_place.is_none() {
            return;
        }
        self.unscheduled |= self.until_place.is_none();
        self.until_place = self.until_place.or(Some(self.next_place));
        self.next_place = 0;
    }

    /// Sets the time of its next execution anew, where its schedule has changed.
    pub(super) fn plan(&mut self, now: Timestamp) {
        let Some(schedule) = self.schedule() else { return };
        let (under_way, has_run) = (self.is_under_way(), self.last_run_at.is_some_and(|last| schedule.start <= last));
        // What goes on is none of the new schedule's executions.
        self.unscheduled = under_way;
        let next = if under_way || has_run { schedule.next(now) } else { schedule.first(now) };
        // What was added for an execution that there is no more gets a last one.
        let is_left = has_run && self.waits() && u64::from(self.next_place) < self.counts.queued;
        let last = || schedule.opens(self.execution_at.unwrap_or(now).max(now)).filter(|_| is_left && !under_way);
        self.execution_at = next.or_else(last);
        if self.status != CampaignStatus::Paused {
            self.wait(now);
        }
    }

    /// Whether an execution has begun and has contacts left.
    fn is_under_way(&self) -> bool {
        self.until_place.is_some_and(|until| self.next_place < until)
    }

    /// Waits for what it does next: the rest of what is under way, or its next execution. One that was missed is made up for at once.
    fn wait(&mut self, now: Timestamp) {
        let Some(schedule) = self.schedule() else { return };
        let under_way = self.is_under_way();
        let next = if under_way {
            schedule.opens(now.max(schedule.start))
        } else {
            (self.until_place, self.unscheduled) = (None, false);
            self.execution_at.and_then(|at| if at > now { Some(at) } else { schedule.opens(now) })
        };
        match next {
            Some(_) if !self.enabled => self.stop(CampaignStatus::NotStarted, now),
            Some(at) if under_way => self.go_on(at, now),
            Some(at) => (self.status, self.due_at) = (CampaignStatus::ToBeRun, Some(at)),
            None => self.stop(CampaignStatus::Completed, now),
        }
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
    /// Changes a campaign by `control`, which also gets what has become of its contacts. Of one request `by` the change is made
    /// once. Returns the campaign as it is answered.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such campaign. The inner error is that of `control`.
    pub async fn control_campaign(
        &self,
        id: CampaignId,
        control: fn(&mut Campaign, Standing, Timestamp) -> Result<()>,
        by: Uuid,
        now: Timestamp,
    ) -> Result<Result<Campaign>, TableError> {
        let (item, beside) = self.item_with_items(id).await?;
        let change = |campaign: &mut Campaign| {
            let was = campaign.clone();
            control(campaign, standing(&was, &beside), now).map_err(Unchanged::Refused)?;
            if *campaign == was { Err(Unchanged::Already(Box::new(was))) } else { Ok(()) }
        };
        let changed = match self.try_change_item(item, id, by, change, |_, _| None).await? {
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
