//! Campaigns, and the contacts of each.

mod contact;
mod contact_partitions;
mod contact_pointers;
mod control;
mod counts;
pub mod dispatch;
mod lease;
mod progress;
pub mod rate_limit;
mod reachable;
mod report;
mod retry_policy;
mod run;
mod schedule;
mod scheduled;
mod staged;
mod state;
pub(crate) mod storage;
mod text;
mod waiting;

pub use contact::{CampaignContact, ContactStatus};
pub use control::{control, remove};
pub use counts::Counts;
pub use lease::Lease;
pub(crate) use lease::complete;
pub use progress::{
    Dispatch, Dispatched, Prepared, Unreached, dispatch_together, end_contact, park_delivery, remove_deliveries,
    settle_delivery, together,
};
pub use report::report;
pub use retry_policy::{RetriedOutcomes, RetryPolicy};
pub use run::{NewCampaign, run};
pub use schedule::Schedule;
pub use scheduled::{CampaignChanges, NewScheduledCampaign, create, update};
pub use staged::{AddedContacts, MoreContacts, add_contacts};
pub use state::{CampaignCommand, CampaignPhase, CampaignRefusal, CampaignStep, ContactTotals};
pub(crate) use storage::with_campaign;
pub use storage::{Earlier, contacts_at, list, list_contacts, of_delivery, read, remove_contact, stage_contacts};
pub use text::{CampaignText, MessagePosition, TextOf, remove_contacts, stage_message};
pub(crate) use text::{text_of_version, texts};

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::input::schema::Schema;
use crate::input::{Between, Issues, Location, Parse, Raw, Source, bounded_list, words};
use crate::records::due::Due;
use crate::records::outcome::OutcomeCounts;
use crate::records::widget::{Widget, WidgetType};
use crate::request::error::{Error, Result};
use crate::table::Fingerprint;
use crate::table::declaration::{MadeOfBody as _, Named};
use crate::table::keys::Key;
use crate::values::calendar::{TimeOfDay, Weekdays, ZoneName, ZonedTime};
use crate::values::hash::hex;
use crate::values::id::{
    AssistantId, CampaignContactId, CampaignId, ContactId, WidgetId, low_ordinal, with_flag, with_ordinal,
};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::text::{MessageText, Name};
use crate::values::time::Timestamp;

/// The most contacts of one request.
pub const MAX_CONTACTS: usize = 10_000;

/// The most places of a campaign. Contacts may be added to it many times.
pub const MAX_PLACES: u32 = 100_000;

/// Contacts at neighbouring places that share a partition: enough that a page of contacts is in one or two partitions.
pub const NEIGHBOURS: u32 = 128;

/// Seconds within which a repeated request to run a campaign is a retry.
pub const SAME_RUN: i64 = 600;

/// Minutes between the executions of a campaign, at most ten years.
pub type Minutes = Between<1, 5_256_000>;

crate::choice! {
    /// What the contacts of a campaign get.
    pub enum CampaignType {
        OutboundCall = "outbound_call",
        Message = "message",
    }
}

impl From<WidgetType> for CampaignType {
    fn from(widget: WidgetType) -> Self {
        if widget.calls() { Self::OutboundCall } else { Self::Message }
    }
}

crate::choice! {
    /// The status of a campaign.
    pub enum CampaignStatus {
        NotStarted = "not_started",
        ToBeRun = "to_be_run",
        Queued = "queued",
        InProgress = "in_progress",
        Paused = "paused",
        Cancelled = "cancelled",
        Completed = "completed",
    }
}

/// 1 to 10,000 contacts, each once, in the order in which the request first names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactIds {
    sent: Vec<ContactId>,
}

impl ContactIds {
    /// Each contact once, in the order in which the request first names them.
    pub fn distinct(&self) -> Vec<ContactId> {
        let mut seen = HashSet::with_capacity(self.sent.len());
        self.sent.iter().copied().filter(|id| seen.insert(*id)).collect()
    }

    /// An issue at the index of each `missing` contact.
    pub(crate) fn unknown(&self, missing: &HashSet<ContactId>) -> Issues {
        let at = Location::body().name("contact_ids");
        let unknown = self.sent.iter().enumerate().filter(|(_, id)| missing.contains(id));
        unknown.map(|(index, _)| at.index(index).issue("not_found", "Not found")).collect()
    }
}

impl Parse for ContactIds {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        bounded_list(raw, at, issues, (1, MAX_CONTACTS)).map(|sent| Self { sent })
    }
}

impl Schema for ContactIds {
    fn schema() -> Value {
        json!({"type": "array", "items": ContactId::schema(), "minItems": 1, "maxItems": MAX_CONTACTS})
    }
}

crate::record! {
    /// A campaign.
    pub struct Campaign(CampaignId): listed("CAMPAIGN", pointers Campaign::run_pointer, due Campaign::partition, counted Campaign::uses_of_quotas) {
        /// Name of the campaign, for those who manage it.
        input name: Option<Name> = None,
        /// What its contacts get.
        input r#type: Option<CampaignType> = None,
        /// Widget through which the campaign is sent. A campaign without one cannot be enabled.
        input(filter) widget_id: Option<WidgetId> = None,
        /// Assistant of the widget, which answers the contacts.
        own assistant_id: Option<AssistantId> = None,
        /// Text that each contact gets; null for calls.
        input message: Option<MessageText> = None,
        /// True to begin a new conversation with each contact; false to continue an open one, if there is one.
        input start_new_conversation: bool = false,
        /// The status.
        own(filter) status: CampaignStatus = CampaignStatus::NotStarted,
        /// Number of contacts in each status.
        own counts: Counts = Counts::default(),
        /// Number of contacts with each outcome that a connector has reported. An event of the campaign has none.
        own outcomes: OutcomeCounts = OutcomeCounts::default(),
        /// Time of the first execution; null for a campaign that was run at once. A time without an offset is local to `time_zone`.
        input start_time: Option<ZonedTime> = None,
        /// Minutes from one execution to the next; null for a single execution. An interval of whole days keeps the local hour.
        input interval: Option<Minutes> = None,
        /// Weekdays on which the campaign is sent, from 1 for Monday to 7 (or 0) for Sunday; empty for every day.
        input execution_weekdays: Weekdays = Weekdays::default(),
        /// Local time of day at which the window for sending opens, as `HH:MM`; null for midnight.
        input time_window_start: Option<TimeOfDay> = None,
        /// Local time of day at which the window for sending closes, as `HH:MM`; null for midnight. If it is before the start, the window closes on the next day.
        input time_window_end: Option<TimeOfDay> = None,
        /// Time zone of the window, the weekdays and local times, by its name in the IANA database.
        input time_zone: ZoneName = ZoneName::utc(),
        /// Which outcomes are followed by another attempt; null for none.
        input retry_policy: Option<RetryPolicy> = None,
        /// True to send the campaign at its time; false to keep it without sending.
        input enabled: bool = false,
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// Time of the next execution, or the time at which the window opens for the rest of the current one; null if nothing is left to send.
        own next_run_at: Option<Timestamp> = None,
        /// Time at which the last execution ended; null if none has ended.
        own last_run_at: Option<Timestamp> = None,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// The place of the next contact to dispatch.
        hidden next_place: u32 = 0,
        /// The place after the last contact of the current execution; `None` between two executions.
        hidden until_place: Option<u32> = None,
        /// When its next execution begins, or when the current one began.
        hidden execution_at: Option<Timestamp> = None,
        /// True if the current run is not a scheduled execution but a retry or a resume.
        hidden unscheduled: bool = false,
        /// When a contact that waits for another attempt is due first; `None` if none waits, or if the present pass finds them.
        hidden again_at: Option<Timestamp> = None,
        /// The round: 0, and one more with each retry.
        hidden round: u32 = 0,
        /// When a function may take a lease on it: at once, or after the current lease; `None` if nothing is left.
        hidden due_at: Option<Timestamp> = None,
        /// The version of its message, and of the assistant that its events name: 0, and one more after each change.
        hidden text_version: u32 = 0,
        /// Whether each of its contacts has a pointer to its place, which shows whether the campaign has a given
        /// contact. A campaign without a schedule gets no more contacts, and an older one has no pointers.
        hidden has_pointers: bool = false,
        /// Whether its contacts are spread over partitions; in an older campaign they fill one after the other.
        hidden spreads_contacts: bool = false,
        /// Whether each of its contacts that waits for another attempt has an item; in an older campaign some may have
        /// none.
        hidden lists_waiting: bool = false,
    }
}

impl Campaign {
    /// A queued campaign of `contacts` contacts through `widget`.
    ///
    /// # Errors
    /// [`Error::Invalid`] at the body's `message` where a chat would have no first message.
    pub fn queued(id: CampaignId, widget: &Widget, new: &NewCampaign, contacts: usize, now: Timestamp) -> Result<Self> {
        let calls = widget.widget_type.calls();
        let said = new.message.as_ref();
        let message = if calls { None } else { said.or(widget.first_message()).cloned() };
        if !calls && message.is_none() {
            return Err(Self::has_no_message());
        }
        Ok(Self {
            r#type: Some(widget.widget_type.into()),
            widget_id: Some(widget.id),
            assistant_id: widget.assistant_id,
            message,
            start_new_conversation: calls || new.start_new_conversation,
            retry_policy: new.retry_policy.clone(),
            status: CampaignStatus::Queued,
            counts: Counts { queued: contacts as u64, ..Counts::default() },
            due_at: Some(now),
            ..Self::empty(id, now)?
        })
    }

    /// A campaign with default values only.
    fn empty(id: CampaignId, now: Timestamp) -> Result<Self> {
        let nothing = Source::text(Location::body(), []);
        let read = Self::read(&nothing, &mut Issues::new(), &mut Named::default());
        let campaign = read.ok_or_else(|| Error::Internal("a field of a campaign has no default".into()))?;
        Ok(Self { id, created_at: now, updated_at: now, spreads_contacts: true, lists_waiting: true, ..campaign })
    }

    /// The answer to a request whose chats would have no first message.
    fn has_no_message() -> Error {
        let (kind, msg) = words::MISSING;
        Error::invalid(Location::body().name("message").issue(kind, msg))
    }
}

/// The pointer that leads from a run to its campaign.
pub(super) fn run_pointer(tenant: &Tenant, run: RunId) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), "CAMPAIGN")
}

impl Campaign {
    /// The pointer by which the campaign of a contact is found.
    fn run_pointer(&self, tenant: &Tenant) -> Vec<Key> {
        vec![run_pointer(tenant, self.id.run())]
    }

    /// Its partition in the index of due items.
    fn partition(&self, _: CampaignId) -> Option<String> {
        self.due_at.map(|_| Due::Campaign.partition(self.id.0))
    }

    /// The id of its contact at `place`, counted from 0. It contains the run, the place, and whether the contacts are
    /// spread, so the item is found by the id alone. Spread or not, the first contacts are in the first partition.
    pub fn contact(&self, place: u32) -> CampaignContactId {
        let id = with_ordinal(self.id.0, u64::from(place) + 1);
        let is_spread = self.spreads_contacts && place >= NEIGHBOURS;
        CampaignContactId(if is_spread { with_flag(id) } else { id })
    }

    /// Whether it has more than one execution.
    pub fn recurs(&self) -> bool {
        self.start_time.is_some() && self.interval.is_some()
    }

    /// Whether all its contacts were dispatched, according to the stored campaign.
    pub fn is_dispatched(&self) -> bool {
        self.phase() == CampaignPhase::Dispatched
    }

    /// This campaign as a caller sees it: completed if nothing is left to send and no execution follows, and with the
    /// time of its next execution.
    #[must_use]
    pub fn as_answered(mut self) -> Self {
        let under_way = matches!(self.status, CampaignStatus::Queued | CampaignStatus::InProgress);
        if under_way && self.counts.queued == 0 && !self.recurs() {
            self.status = CampaignStatus::Completed;
        }
        self.next_run_at = self.due_at.filter(|_| self.status == CampaignStatus::ToBeRun);
        self
    }
}

/// A run: the common part of the ids of a campaign and its contacts, which is all but the last 32 bits. In these bits,
/// a campaign has its ordinal in the list of campaigns, and a contact has its place in the campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct RunId(Uuid);

impl RunId {
    /// The run of a new id.
    pub fn fresh(id: Uuid) -> Self {
        Self(with_ordinal(id, 0))
    }

    /// The id of its campaign, still without the ordinal.
    pub fn campaign(self) -> CampaignId {
        CampaignId(self.0)
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

impl CampaignId {
    /// Its run.
    pub fn run(self) -> RunId {
        RunId::fresh(self.0)
    }
}

impl CampaignContactId {
    /// Its run.
    pub fn run(self) -> RunId {
        RunId::fresh(self.0)
    }

    /// The place in the campaign, counted from 0; `None` if this is the id of a campaign without an ordinal.
    pub fn place(self) -> Option<u32> {
        u32::try_from(low_ordinal(self.0)).ok()?.checked_sub(1)
    }
}

crate::object! {
    /// The answer of run-campaign.
    pub struct CampaignRun {
        /// The campaign.
        pub campaign_id: CampaignId,
        /// `queued`.
        pub status: CampaignStatus,
        /// How many distinct contacts were queued.
        pub contacts: u64,
    }
}

/// The marker of a request to run a campaign: a repeat finds the campaign here and does not run another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunMarker {
    /// The campaign.
    pub campaign_id: CampaignId,
    /// How many distinct contacts were queued.
    pub contacts: u64,
    /// When it expires, in seconds since 1970: after that, the same request is a new one.
    pub ttl: i64,
}

crate::single!(RunMarker, Fingerprint, |print| format_args!("RUN#{}", hex(&print)), "RUN");

impl From<RunMarker> for CampaignRun {
    fn from(marker: RunMarker) -> Self {
        Self { campaign_id: marker.campaign_id, status: CampaignStatus::Queued, contacts: marker.contacts }
    }
}
