//! The phases of a campaign, and how it changes from one to the next: by the commands of callers, and by the steps of
//! the function that sends it. Nothing here reads or writes the table. The dispatch and the deliveries look at the
//! campaign before they send, so a command is one write of the campaign alone, however many contacts it has.

use super::{Campaign, CampaignStatus, Counts};
use crate::input::Location;
use crate::request::error::Error;
use crate::table::declaration::Declared as _;
use crate::table::quota::{Amounts, Quota};
use crate::values::time::Timestamp;

/// The phase of a campaign. The attributes `status` and `due_at` store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignPhase {
    /// The campaign is disabled, or has no time at which it is sent.
    NotStarted,
    /// Its next execution, or the rest of one, begins at `at`.
    Waiting {
        /// The time.
        at: Timestamp,
    },
    /// The next tick sends it.
    Queued {
        /// Since when.
        at: Timestamp,
    },
    /// A function has a lease and sends it.
    Sending {
        /// When the lease expires. It also names the lease.
        lease: Timestamp,
    },
    /// All contacts of the execution were dispatched; deliveries may not have ended.
    Dispatched,
    /// Nothing is sent until it is resumed.
    Paused,
    /// Contacts that were queued are never sent.
    Cancelled,
    /// Nothing is left to send.
    Completed,
}

/// The commands of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignCommand {
    /// Stop it: queued contacts are never sent.
    Cancel,
    /// Stop it until it is resumed.
    Pause,
    /// Continue it after a pause.
    Resume,
    /// Queue the failed contacts again.
    Retry,
}

/// A step of the function that sends a campaign. A step with a `lease` takes effect only while the campaign has that
/// lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignStep {
    /// Take a lease until `until`, if the campaign is due.
    Lease {
        /// When the lease expires.
        until: Timestamp,
    },
    /// Save the place of the next contact, and renew the lease until `until`.
    Renew {
        /// The current lease.
        lease: Timestamp,
        /// The place.
        next: u32,
        /// When the new lease expires.
        until: Timestamp,
        /// The first time at which a contact that was passed over may be dispatched again.
        again: Option<Timestamp>,
    },
    /// End the lease before it expires: the campaign is due at once.
    Release {
        /// The current lease.
        lease: Timestamp,
    },
    /// The time window has closed: the rest of the contacts wait until it `opens`.
    Interrupt {
        /// The current lease.
        lease: Timestamp,
        /// When the window opens.
        opens: Timestamp,
    },
    /// The organisation may send nothing more today: the rest of the contacts wait until `at`.
    Defer {
        /// The current lease.
        lease: Timestamp,
        /// When the next day begins.
        at: Timestamp,
    },
    /// All contacts of the execution were dispatched.
    Finish {
        /// The current lease.
        lease: Timestamp,
        /// When the first contact that waits may be dispatched again.
        again: Option<Timestamp>,
    },
    /// A contact waits for another attempt, which may begin at `at`.
    Again {
        /// The time.
        at: Timestamp,
    },
    /// No contact is queued any more in this round.
    Complete {
        /// The round.
        round: u32,
    },
}

/// Why a campaign refuses a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignRefusal {
    /// It is cancelled.
    Cancelled,
    /// It has nothing left to send.
    NothingLeft,
    /// It is being sent.
    InProgress,
}

impl From<CampaignRefusal> for Error {
    fn from(refusal: CampaignRefusal) -> Self {
        let (kind, message) = match refusal {
            CampaignRefusal::Cancelled => ("campaign_cancelled", "The campaign is cancelled"),
            CampaignRefusal::NothingLeft => ("campaign_completed", "The campaign has nothing left to send"),
            CampaignRefusal::InProgress => ("campaign_in_progress", "The campaign is being sent"),
        };
        Campaign::conflict(kind, message)
    }
}

/// The results of a campaign's contacts, as far as a command depends on them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContactTotals {
    /// The number of contacts in each state.
    pub counts: Counts,
    /// The number of contacts that were dispatched and whose delivery has not ended.
    pub dispatched: u64,
}

impl Campaign {
    /// The current phase.
    pub fn phase(&self) -> CampaignPhase {
        match (self.status, self.due_at) {
            (CampaignStatus::NotStarted, _) => CampaignPhase::NotStarted,
            (CampaignStatus::ToBeRun, at) => CampaignPhase::Waiting { at: at.unwrap_or(Timestamp::MAX) },
            (CampaignStatus::Queued, at) => CampaignPhase::Queued { at: at.unwrap_or(Timestamp::MAX) },
            (CampaignStatus::InProgress, Some(lease)) => CampaignPhase::Sending { lease },
            (CampaignStatus::InProgress, None) => CampaignPhase::Dispatched,
            (CampaignStatus::Paused, _) => CampaignPhase::Paused,
            (CampaignStatus::Cancelled, _) => CampaignPhase::Cancelled,
            (CampaignStatus::Completed, _) => CampaignPhase::Completed,
        }
    }

    /// It counts as running from the time at which it is queued or waits for an execution, until it is completed,
    /// paused, cancelled or removed.
    pub(super) fn uses_of_quotas(&self) -> Amounts {
        let runs = matches!(self.status, CampaignStatus::ToBeRun | CampaignStatus::Queued | CampaignStatus::InProgress);
        if runs { vec![(Quota::RunningCampaigns, 1)] } else { Amounts::new() }
    }

    /// The only function that stores a phase.
    pub(super) fn enter(&mut self, phase: CampaignPhase) {
        (self.status, self.due_at) = match phase {
            CampaignPhase::NotStarted => (CampaignStatus::NotStarted, None),
            CampaignPhase::Waiting { at } => (CampaignStatus::ToBeRun, Some(at)),
            CampaignPhase::Queued { at } => (CampaignStatus::Queued, Some(at)),
            CampaignPhase::Sending { lease } => (CampaignStatus::InProgress, Some(lease)),
            CampaignPhase::Dispatched => (CampaignStatus::InProgress, None),
            CampaignPhase::Paused => (CampaignStatus::Paused, None),
            CampaignPhase::Cancelled => (CampaignStatus::Cancelled, None),
            CampaignPhase::Completed => (CampaignStatus::Completed, None),
        };
    }

    /// The campaign after a command, or why it refuses.
    ///
    /// # Errors
    /// [`CampaignRefusal`].
    pub fn on(
        mut self,
        command: CampaignCommand,
        totals: ContactTotals,
        now: Timestamp,
    ) -> Result<Self, CampaignRefusal> {
        match command {
            CampaignCommand::Cancel => self.cancel(totals, now),
            CampaignCommand::Pause => self.pause(totals, now),
            CampaignCommand::Resume => self.resume(totals, now),
            CampaignCommand::Retry => self.retry(totals, now),
        }?;
        Ok(self)
    }

    /// The campaign after a step; `None` if it is not due, or if another function has the lease.
    pub fn after(mut self, step: CampaignStep, now: Timestamp) -> Option<Self> {
        let phase = self.phase();
        match step {
            CampaignStep::Lease { until } => {
                let (CampaignPhase::Waiting { at: due }
                | CampaignPhase::Queued { at: due }
                | CampaignPhase::Sending { lease: due }) = phase
                else {
                    return None;
                };
                if now < due {
                    return None;
                }
                // Contacts that wait for another attempt come before a new execution.
                if self.until_place.is_none() && self.again_at.is_some_and(|at| at <= now) {
                    self.try_again();
                }
                // An execution ends with the last contact that the campaign has when the execution begins.
                self.until_place = self.until_place.or(Some(self.places()));
                self.enter(CampaignPhase::Sending { lease: until });
                self.touch(now);
            }
            CampaignStep::Complete { round } => {
                if phase != CampaignPhase::Dispatched || self.round != round {
                    return None;
                }
                self.enter(CampaignPhase::Completed);
            }
            CampaignStep::Renew { lease, .. }
            | CampaignStep::Release { lease }
            | CampaignStep::Interrupt { lease, .. }
            | CampaignStep::Defer { lease, .. }
            | CampaignStep::Finish { lease, .. }
                if phase != (CampaignPhase::Sending { lease }) =>
            {
                return None;
            }
            CampaignStep::Again { .. } if phase == CampaignPhase::Cancelled => return None,
            CampaignStep::Again { at } => self.await_attempt(at, now),
            CampaignStep::Renew { next, until, again, .. } => {
                self.next_place = next;
                self.note_attempt(again);
                self.enter(CampaignPhase::Sending { lease: until });
            }
            CampaignStep::Release { .. } => self.enter(CampaignPhase::Sending { lease: now }),
            CampaignStep::Interrupt { opens, .. } => self.enter(CampaignPhase::Waiting { at: opens }),
            CampaignStep::Defer { at, .. } => self.enter(CampaignPhase::Queued { at }),
            CampaignStep::Finish { again, .. } => {
                self.note_attempt(again);
                self.finish(now);
            }
        }
        Some(self)
    }

    /// Ends an execution: waits for the next one, if there is one.
    fn finish(&mut self, now: Timestamp) {
        let until = self.until_place.take().unwrap_or_default();
        let unscheduled = std::mem::take(&mut self.unscheduled);
        let Some(schedule) = self.schedule() else { return self.rest(now) };
        let next = match self.execution_at {
            Some(next) if unscheduled => Some(next),
            began => schedule.next(began.unwrap_or(now)),
        };
        self.last_run_at = next.map(|_| now).or(self.last_run_at);
        match next {
            Some(next) => {
                (self.next_place, self.execution_at) = (until, Some(next.max(now)));
                // A missed execution starts as soon as the window is open.
                let at = if next > now { next } else { schedule.opens(now).unwrap_or(now) };
                let at = self.soonest(Some(at), now).unwrap_or(at);
                self.enter(if self.enabled { CampaignPhase::Waiting { at } } else { CampaignPhase::NotStarted });
            }
            None if self.places() == until => {
                (self.last_run_at, self.execution_at) = (Some(now), None);
                self.rest(now);
            }
            // The last execution stays open for the contacts that were added in the meantime.
            None => {
                self.next_place = until;
                self.enter(CampaignPhase::Sending { lease: now });
            }
        }
    }

    /// Waits for the next attempt of a contact, if one waits.
    pub(super) fn rest(&mut self, now: Timestamp) {
        let next = self.soonest(None, now);
        self.enter(next.map_or(CampaignPhase::Dispatched, |at| CampaignPhase::Waiting { at }));
    }

    /// Gives a new campaign the `status` with which it is created. Only its schedule says when it is sent.
    pub(super) fn begin(&mut self, status: CampaignStatus, now: Timestamp) {
        match status {
            CampaignStatus::Paused => self.stop(CampaignPhase::Paused, now),
            CampaignStatus::Cancelled => self.stop(CampaignPhase::Cancelled, now),
            CampaignStatus::Completed => self.stop(CampaignPhase::Completed, now),
            CampaignStatus::NotStarted
            | CampaignStatus::ToBeRun
            | CampaignStatus::Queued
            | CampaignStatus::InProgress => {}
        }
    }

    /// Raises the number of places to `places`.
    pub(super) fn grow(&mut self, places: u32, now: Timestamp) {
        self.counts.queued = u64::from(places);
        self.touch(now);
    }

    /// How many places the campaign has. A deleted contact keeps its place.
    pub(super) fn places(&self) -> u32 {
        u32::try_from(self.counts.queued).unwrap_or(u32::MAX)
    }

    /// Removes the time at which it is sent.
    pub(super) fn unschedule(&mut self) {
        if self.phase() == CampaignPhase::Paused {
            // If it gets a time again, it starts at the first contact, so that it also sends the contacts that a pause
            // held back.
            self.rewind();
        }
        self.enter(CampaignPhase::NotStarted);
    }

    /// Stops it: queued contacts are never sent.
    fn cancel(&mut self, totals: ContactTotals, now: Timestamp) -> Result<(), CampaignRefusal> {
        if self.is_over(totals.counts) {
            return Err(self.nothing_to_send());
        }
        self.stop(CampaignPhase::Cancelled, now);
        Ok(())
    }

    /// Stops it until it is resumed.
    fn pause(&mut self, totals: ContactTotals, now: Timestamp) -> Result<(), CampaignRefusal> {
        if self.status == CampaignStatus::Paused {
            return Ok(());
        }
        if self.is_over(totals.counts) {
            return Err(self.nothing_to_send());
        }
        self.stop(CampaignPhase::Paused, now);
        Ok(())
    }

    /// Continues it after a pause.
    fn resume(&mut self, totals: ContactTotals, now: Timestamp) -> Result<(), CampaignRefusal> {
        if self.status != CampaignStatus::Paused {
            return if self.is_over(totals.counts) { Err(self.nothing_to_send()) } else { Ok(()) };
        }
        self.rewind();
        if self.start_time.is_none() {
            self.continue_at(now, now);
            return Ok(());
        }
        if self.execution_at.is_none() && !self.is_under_way() {
            // It was paused before `next_run_at` was stored.
            self.plan(now);
        }
        self.wait(now);
        Ok(())
    }

    /// Queues the failed contacts again.
    fn retry(&mut self, totals: ContactTotals, now: Timestamp) -> Result<(), CampaignRefusal> {
        match self.status {
            CampaignStatus::Cancelled => return Err(self.nothing_to_send()),
            CampaignStatus::Paused => return Err(CampaignRefusal::InProgress),
            _ if totals.dispatched > 0 || self.is_under_way() => return Err(CampaignRefusal::InProgress),
            // Contacts that were added since the last execution wait for the next one.
            _ if totals.counts.queued > 0 && !self.waits() => return Err(CampaignRefusal::InProgress),
            _ if totals.counts.failed == 0 => {}
            _ => {
                self.round += 1;
                self.rewind();
                let schedule = self.schedule();
                self.continue_at(schedule.and_then(|schedule| schedule.opens(now)).unwrap_or(now), now);
            }
        }
        Ok(())
    }

    /// Whether it sends nothing more, unless it is retried.
    fn is_over(&self, counts: Counts) -> bool {
        let is_left = counts.queued > 0 || self.recurs() || self.waits();
        matches!(self.status, CampaignStatus::Cancelled | CampaignStatus::Completed) || !is_left
    }

    /// Whether it waits for its time, or for a caller to enable or resume it.
    pub(super) fn waits(&self) -> bool {
        let waiting = [CampaignStatus::NotStarted, CampaignStatus::ToBeRun, CampaignStatus::Paused];
        self.start_time.is_some() && waiting.contains(&self.status)
    }

    /// Continues the current run at `at`: at once, or when its window opens.
    fn continue_at(&mut self, at: Timestamp, now: Timestamp) {
        self.enter(if at == now { CampaignPhase::Queued { at } } else { CampaignPhase::Waiting { at } });
        self.touch(now);
    }

    /// Starts again at its first contact: earlier contacts may have a delivery that was parked, or may have failed.
    /// Contacts that were added since the last execution wait for the next one.
    pub(super) fn rewind(&mut self) {
        if self.next_place == 0 && self.until_place.is_none() {
            return;
        }
        self.unscheduled |= self.until_place.is_none();
        self.until_place = self.until_place.or(Some(self.next_place));
        (self.next_place, self.again_at) = (0, None);
    }

    /// Calculates the time of its next execution again after a change of its schedule.
    pub(super) fn plan(&mut self, now: Timestamp) {
        let Some(schedule) = self.schedule() else { return };
        let (under_way, has_run) = (self.is_under_way(), self.last_run_at.is_some_and(|last| schedule.start <= last));
        // The current execution does not belong to the new schedule.
        self.unscheduled = under_way;
        let next = if under_way || has_run { schedule.next(now) } else { schedule.first(now) };
        // Contacts queued for an execution that the new schedule no longer has are sent in one final execution.
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

    /// Waits for its next step: the rest of the current run, or the next execution. A missed execution starts at once.
    fn wait(&mut self, now: Timestamp) {
        let Some(schedule) = self.schedule() else { return };
        let under_way = self.is_under_way();
        let next = if under_way {
            schedule.opens(now.max(schedule.start))
        } else {
            if self.until_place.take().is_some() {
                // The contacts that wait for another attempt come at the end of an execution.
                self.note_attempt(Some(now));
            }
            self.unscheduled = false;
            let next = self.execution_at.and_then(|at| if at > now { Some(at) } else { schedule.opens(now) });
            self.soonest(next, now)
        };
        match next {
            Some(_) if !self.enabled => self.stop(CampaignPhase::NotStarted, now),
            Some(at) if under_way => self.continue_at(at, now),
            Some(at) => self.enter(CampaignPhase::Waiting { at }),
            None => self.stop(CampaignPhase::Completed, now),
        }
        self.touch(now);
    }

    fn stop(&mut self, phase: CampaignPhase, now: Timestamp) {
        self.enter(phase);
        self.touch(now);
    }

    /// Why it has nothing more to send.
    pub(super) const fn nothing_to_send(&self) -> CampaignRefusal {
        match self.status {
            CampaignStatus::Cancelled => CampaignRefusal::Cancelled,
            _ => CampaignRefusal::NothingLeft,
        }
    }

    pub(super) fn conflict(kind: &'static str, message: &'static str) -> Error {
        Error::Conflict { at: Location::path().name("campaign_id"), kind, message }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROUND: u32 = 0;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(1_800_000_000_000).plus_seconds(seconds)
    }

    /// A campaign of two contacts in this phase: without a schedule, or with one that starts after a minute.
    fn in_phase(phase: CampaignPhase, is_scheduled: bool) -> Campaign {
        let mut campaign: Campaign = serde_json::from_value(json!({
            "id": "01900000-0000-7000-8000-000000000001",
            "counts": {"queued": 2, "sent": 0, "failed": 0, "cancelled": 0},
            "enabled": true,
            "created_at": at(0),
            "updated_at": at(0),
        }))
        .unwrap();
        if is_scheduled {
            campaign.start_time = Some(serde_json::from_value(json!(at(60))).unwrap());
            campaign.execution_at = Some(at(60));
        }
        campaign.enter(phase);
        campaign
    }

    fn totals(queued: u64, failed: u64, dispatched: u64) -> ContactTotals {
        ContactTotals { counts: Counts { queued, failed, ..Counts::default() }, dispatched }
    }

    const PHASES: usize = 8;

    fn phases() -> [CampaignPhase; PHASES] {
        [
            CampaignPhase::NotStarted,
            CampaignPhase::Waiting { at: at(60) },
            CampaignPhase::Queued { at: at(0) },
            CampaignPhase::Sending { lease: at(90) },
            CampaignPhase::Dispatched,
            CampaignPhase::Paused,
            CampaignPhase::Cancelled,
            CampaignPhase::Completed,
        ]
    }

    /// The phase after `command`, or the refusal, from each phase.
    fn commanded(
        is_scheduled: bool,
        command: CampaignCommand,
        totals: ContactTotals,
    ) -> [Result<CampaignPhase, CampaignRefusal>; PHASES] {
        phases().map(|phase| in_phase(phase, is_scheduled).on(command, totals, at(0)).map(|campaign| campaign.phase()))
    }

    #[test]
    fn each_command_leads_from_each_phase_to_one_phase_or_refusal() {
        use CampaignCommand::{Cancel, Pause, Resume, Retry};
        let [not_started, waiting, queued, sending, dispatched, paused, cancelled, completed] = phases().map(Ok);
        let (is_cancelled, is_over, is_sent) =
            (Err(CampaignRefusal::Cancelled), Err(CampaignRefusal::NothingLeft), Err(CampaignRefusal::InProgress));
        let stopped = |into| [into, into, into, into, into, into, is_cancelled, is_over];
        let left = totals(1, 1, 0);
        assert_eq!(commanded(false, Cancel, left), stopped(cancelled));
        assert_eq!(commanded(false, Pause, left), stopped(paused));
        let resumed = [not_started, waiting, queued, sending, dispatched, queued, is_cancelled, is_over];
        assert_eq!(commanded(false, Resume, left), resumed);
        // The scheduled campaign waits for its time.
        let resumed = [not_started, waiting, queued, sending, dispatched, waiting, is_cancelled, is_over];
        assert_eq!(commanded(true, Resume, left), resumed);

        // Without a queued contact nothing is left to stop, except the wait of a schedule.
        let nothing_left = [is_over, is_over, is_over, is_over, is_over, is_over, is_cancelled, is_over];
        assert_eq!(commanded(false, Cancel, totals(0, 1, 0)), nothing_left);
        let waits = [cancelled, cancelled, is_over, is_over, is_over, cancelled, is_cancelled, is_over];
        assert_eq!(commanded(true, Cancel, totals(0, 1, 0)), waits);

        // Failed contacts are queued again once no contact is queued and no delivery is under way.
        let again = [queued, queued, queued, queued, queued, is_sent, is_cancelled, queued];
        assert_eq!(commanded(false, Retry, totals(0, 1, 0)), again);
        let refused = [is_sent, is_sent, is_sent, is_sent, is_sent, is_sent, is_cancelled, is_sent];
        assert_eq!(commanded(false, Retry, totals(1, 1, 0)), refused);
        assert_eq!(commanded(false, Retry, totals(0, 1, 1)), refused);
        // Without a failed contact the campaign stays as it is.
        let same = [not_started, waiting, queued, sending, dispatched, is_sent, is_cancelled, completed];
        assert_eq!(commanded(false, Retry, totals(0, 0, 0)), same);
    }

    /// The phase after `step` from each phase; `None` where it has no effect.
    fn stepped(is_scheduled: bool, step: CampaignStep, now: Timestamp) -> [Option<CampaignPhase>; PHASES] {
        phases().map(|phase| in_phase(phase, is_scheduled).after(step, now).map(|campaign| campaign.phase()))
    }

    /// The result of a step that has an effect in the phase `Sending` only.
    fn while_sending(after: CampaignPhase) -> [Option<CampaignPhase>; PHASES] {
        phases().map(|phase| matches!(phase, CampaignPhase::Sending { .. }).then_some(after))
    }

    #[test]
    fn a_lease_is_taken_of_a_due_campaign_only() {
        let lease = CampaignStep::Lease { until: at(180) };
        let taken = Some(CampaignPhase::Sending { lease: at(180) });
        assert_eq!(stepped(false, lease, at(0)), [None, None, taken, None, None, None, None, None]);
        assert_eq!(stepped(false, lease, at(60)), [None, taken, taken, None, None, None, None, None]);
        // An expired lease is taken over.
        assert_eq!(stepped(false, lease, at(90)), [None, taken, taken, taken, None, None, None, None]);
        let leased = in_phase(CampaignPhase::Queued { at: at(0) }, false).after(lease, at(0)).unwrap();
        assert_eq!((leased.until_place, leased.next_place), (Some(2), 0));
    }

    #[test]
    fn a_step_with_a_lease_needs_the_current_lease() {
        let (lease, opens) = (at(90), at(600));
        let steps = |lease| {
            [
                (
                    CampaignStep::Renew { lease, next: 1, until: at(200), again: None },
                    CampaignPhase::Sending { lease: at(200) },
                ),
                (CampaignStep::Release { lease }, CampaignPhase::Sending { lease: at(0) }),
                (CampaignStep::Interrupt { lease, opens }, CampaignPhase::Waiting { at: opens }),
                (CampaignStep::Defer { lease, at: opens }, CampaignPhase::Queued { at: opens }),
                (CampaignStep::Finish { lease, again: None }, CampaignPhase::Dispatched),
            ]
        };
        for (step, after) in steps(lease) {
            assert_eq!(stepped(false, step, at(0)), while_sending(after), "{step:?}");
        }
        for (step, _) in steps(at(91)) {
            assert_eq!(stepped(false, step, at(0)), [None; PHASES], "{step:?}");
        }
    }

    #[test]
    fn a_dispatched_campaign_is_completed_in_its_round_only() {
        let completed = phases().map(|phase| (phase == CampaignPhase::Dispatched).then_some(CampaignPhase::Completed));
        assert_eq!(stepped(false, CampaignStep::Complete { round: ROUND }, at(0)), completed);
        assert_eq!(stepped(false, CampaignStep::Complete { round: ROUND + 1 }, at(0)), [None; PHASES]);
    }

    /// A campaign that is done with its contacts, of which one waits for another attempt at 100.
    fn awaiting() -> Campaign {
        let mut campaign = in_phase(CampaignPhase::Completed, true);
        (campaign.next_place, campaign.execution_at, campaign.last_run_at) = (2, None, Some(at(70)));
        campaign.after(CampaignStep::Again { at: at(100) }, at(80)).unwrap()
    }

    #[test]
    fn a_pass_for_further_attempts_has_no_places() {
        let campaign = awaiting();
        assert_eq!(campaign.phase(), CampaignPhase::Waiting { at: at(100) });
        let leased = campaign.after(CampaignStep::Lease { until: at(190) }, at(100)).unwrap();
        assert_eq!((leased.next_place, leased.until_place, leased.again_at), (2, Some(2), None));
        // A report during the pass notes its own time.
        let leased = leased.after(CampaignStep::Again { at: at(300) }, at(101)).unwrap();
        let finished = |again| leased.clone().after(CampaignStep::Finish { lease: at(190), again }, at(110)).unwrap();
        for (again, next) in [(None, at(300)), (Some(at(400)), at(300)), (Some(at(200)), at(200))] {
            assert_eq!(finished(again).phase(), CampaignPhase::Waiting { at: next });
        }
        assert_eq!(finished(None).last_run_at, Some(at(70)));
    }

    #[test]
    fn a_pass_that_a_window_has_cut_short_begins_again() {
        let leased = awaiting().after(CampaignStep::Lease { until: at(190) }, at(100)).unwrap();
        let mut cut = leased.after(CampaignStep::Interrupt { lease: at(190), opens: at(600) }, at(110)).unwrap();
        // The schedule has changed, and the window is open.
        cut.plan(at(200));
        assert_eq!((cut.phase(), cut.again_at), (CampaignPhase::Waiting { at: at(200) }, Some(at(200))));
    }

    #[test]
    fn a_pass_looks_at_all_places_while_a_contact_without_item_waits() {
        let older = Campaign { lists_waiting: false, ..awaiting() };
        let leased = older.after(CampaignStep::Lease { until: at(190) }, at(100)).unwrap();
        assert_eq!((leased.next_place, leased.until_place), (0, Some(2)));
        let finish = CampaignStep::Finish { lease: at(190), again: None };
        let passed = Campaign { next_place: 2, ..leased }.after(finish, at(110)).unwrap();
        assert!(!passed.lists_waiting);
        let again = passed.after(CampaignStep::Again { at: at(300) }, at(120)).unwrap();
        assert!(again.lists_waiting);
    }

    #[test]
    fn a_finished_execution_waits_for_the_next_one() {
        let mut campaign = in_phase(CampaignPhase::Waiting { at: at(60) }, true);
        campaign.interval = Some(serde_json::from_value(json!(60)).unwrap());
        let leased = campaign.after(CampaignStep::Lease { until: at(150) }, at(60)).unwrap();
        let finished = leased.after(CampaignStep::Finish { lease: at(150), again: None }, at(70)).unwrap();
        assert_eq!(finished.phase(), CampaignPhase::Waiting { at: at(60 + 3600) });
        assert_eq!((finished.last_run_at, finished.next_place), (Some(at(70)), 2));
        // The contacts that were added to the last execution are sent before it ends.
        let mut last = in_phase(CampaignPhase::Waiting { at: at(60) }, true);
        last = last.after(CampaignStep::Lease { until: at(150) }, at(60)).unwrap();
        last.grow(3, at(61));
        let open = last.after(CampaignStep::Finish { lease: at(150), again: None }, at(70)).unwrap();
        assert_eq!((open.phase(), open.next_place), (CampaignPhase::Sending { lease: at(70) }, 2));
        let again = open.after(CampaignStep::Lease { until: at(200) }, at(70)).unwrap();
        let ended = again.after(CampaignStep::Finish { lease: at(200), again: None }, at(80)).unwrap();
        assert_eq!((ended.phase(), ended.last_run_at), (CampaignPhase::Dispatched, Some(at(80))));
    }
}
