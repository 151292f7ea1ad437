//! Campaigns, and the contacts of each.

mod control;
pub mod dispatch;
mod lease;
mod progress;
pub mod rate_limit;
mod run;
pub(crate) mod storage;

pub use lease::Lease;
pub use progress::{Dispatch, Dispatched, Places, fail_deliveries, together};
pub use storage::Earlier;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::records::campaign::storage::run_pointer;
use crate::records::delivery::storage::Due;
use crate::records::widget::Widget;
use crate::request::error::{Error, Issues, Location, Result};
use crate::request::input::{Parse, Raw, bounded_list, settle, words};
use crate::request::tenant::Tenant;
use crate::table::Fingerprint;
use crate::table::keys::Key;
use crate::values::id::{
    AssistantId, CampaignContactId, CampaignId, ContactId, ConversationId, DeliveryId, WidgetId, ordinal, with_ordinal,
};
use crate::values::schema::Schema;
use crate::values::time::Timestamp;

/// The most contacts of one run.
pub const MAX_CONTACTS: usize = 10_000;

/// Seconds within which a repeated request to run a campaign is a retry.
pub const SAME_RUN: i64 = 600;

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

crate::choice! {
    /// The status of one contact of a campaign.
    pub enum ContactStatus {
        Queued = "queued",
        Sent = "sent",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

/// 1 to 10,000 contacts, each once, in the order in which they were first named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactIds {
    sent: Vec<ContactId>,
}

impl ContactIds {
    /// Each contact once, in the order in which they were first named.
    pub fn distinct(&self) -> Vec<ContactId> {
        let mut seen = HashSet::with_capacity(self.sent.len());
        self.sent.iter().copied().filter(|id| seen.insert(*id)).collect()
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

crate::input! {
    /// The input of run-campaign.
    pub struct NewCampaign {
        /// The contacts that receive it.
        pub contact_ids: ContactIds,
        /// The message; a call ignores it.
        pub message: Option<String> = None,
        /// Whether a new thread begins; a call always begins one.
        pub start_new_conversation: bool = false,
    }
}

crate::object! {
    /// How many of a campaign's contacts are in each state.
    #[derive(Default, Copy)]
    pub struct Counts {
        /// Not sent yet.
        pub queued: u64,
        /// Sent.
        pub sent: u64,
        /// Given up.
        pub failed: u64,
        /// Stopped before it was sent.
        pub cancelled: u64,
    }
}

/// What became of a campaign's contacts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Sent.
    pub sent: u64,
    /// Given up in the current round.
    pub failed: u64,
    /// Deleted from the campaign, whatever they were.
    pub deleted: u64,
}

impl Counts {
    /// How many contacts there are.
    pub const fn total(&self) -> u64 {
        self.queued + self.sent + self.failed + self.cancelled
    }
}

crate::record! {
    /// A campaign.
    pub struct Campaign(CampaignId): listed("CAMPAIGN", pointers Campaign::run_pointer, due Campaign::partition) {
        /// The widget it runs through.
        own(filter) widget_id: WidgetId,
        /// The widget's assistant.
        own assistant_id: Option<AssistantId> = None,
        /// The message; null for calls. It is stored beside the campaign, which changes often.
        own message: Option<String> = None,
        /// Whether a new thread begins.
        own start_new_conversation: bool = false,
        /// The status.
        own(filter) status: CampaignStatus = CampaignStatus::NotStarted,
        /// Its contacts by state. What is stored is how many it began with, as queued: see [`Campaign::counted`].
        own counts: Counts = Counts::default(),
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// The place of the next contact to dispatch.
        hidden next_place: u32 = 0,
        /// The round: 0, and one more with each retry.
        hidden round: u32 = 0,
        /// When a function may take a lease on it: at once, or when the current lease expires; `None` where nothing is left to send.
        hidden due_at: Option<Timestamp> = None,
    }
}

impl NewCampaign {
    /// SHA-256 of the request: requests with the same hash are the same. The order of the contacts makes no difference.
    pub fn fingerprint(&self, widget: WidgetId) -> [u8; 32] {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        context.update(widget.0.as_bytes());
        context.update(&[u8::from(self.start_new_conversation), u8::from(self.message.is_some())]);
        let message = self.message.as_deref().unwrap_or_default();
        context.update(&(message.len() as u64).to_be_bytes());
        context.update(message.as_bytes());
        let mut contacts = self.contact_ids.distinct();
        contacts.sort_unstable_by_key(|contact| contact.0);
        for contact in contacts {
            context.update(contact.0.as_bytes());
        }
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(context.finish().as_ref());
        fingerprint
    }

    /// Refuses the request where one of its contacts is among `missing`.
    ///
    /// # Errors
    /// [`Error::Invalid`], with an issue at each index.
    pub fn require_contacts(&self, missing: &HashSet<ContactId>) -> Result<()> {
        let at = Location::body().name("contact_ids");
        let sent = self.contact_ids.sent.iter().enumerate();
        let unknown = sent.filter(|(_, id)| missing.contains(id)).map(|(index, _)| index);
        let issues: Issues = unknown.map(|index| at.index(index).issue("not_found", "Not found")).collect();
        settle(Some(()), issues)
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
            let (kind, msg) = words::MISSING;
            return Err(Error::invalid(Location::body().name("message").issue(kind, msg)));
        }
        Ok(Self {
            id,
            widget_id: widget.id,
            assistant_id: widget.assistant_id,
            message,
            start_new_conversation: calls || new.start_new_conversation,
            status: CampaignStatus::Queued,
            counts: Counts { queued: contacts as u64, sent: 0, failed: 0, cancelled: 0 },
            created_at: now,
            updated_at: now,
            next_place: 0,
            round: 0,
            due_at: Some(now),
        })
    }
}

impl Campaign {
    /// The pointer by which a contact's campaign is found.
    fn run_pointer(&self, tenant: &Tenant) -> Vec<Key> {
        vec![run_pointer(tenant, self.id.run())]
    }

    /// Its partition in the index of what becomes due.
    fn partition(&self, _: CampaignId) -> Option<String> {
        self.due_at.map(|_| Due::Campaign.partition(self.id.0))
    }

    /// Whether all its contacts were dispatched, as far as is stored.
    pub fn is_dispatched(&self) -> bool {
        self.status == CampaignStatus::InProgress && self.due_at.is_none()
    }

    /// This campaign with what became of its contacts: of all that it began with, those that are left are queued, or cancelled with it.
    #[must_use]
    pub fn counted(mut self, outcomes: Outcomes) -> Self {
        let Outcomes { sent, failed, deleted } = outcomes;
        let left = self.counts.queued.saturating_sub(sent + failed + deleted);
        let cancelled = self.status == CampaignStatus::Cancelled;
        let (queued, cancelled) = if cancelled { (0, left) } else { (left, 0) };
        self.counts = Counts { queued, sent, failed, cancelled };
        self
    }

    /// This campaign as it is answered: completed, if nothing is left to send.
    #[must_use]
    pub fn seen(mut self) -> Self {
        let under_way = matches!(self.status, CampaignStatus::Queued | CampaignStatus::InProgress);
        if under_way && self.counts.queued == 0 {
            self.status = CampaignStatus::Completed;
        }
        self
    }
}

/// A run: what the id of a campaign and the ids of its contacts have in common, which is all but the last 32 bits. There the campaign has
/// its ordinal in the list of campaigns, and a contact has its place in the campaign.
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

    /// The id of the contact at `place`, counted from 0. It contains the run and the place, so the item is found by the id alone.
    pub fn contact(self, place: u32) -> CampaignContactId {
        CampaignContactId(with_ordinal(self.0, place + 1))
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

    /// The place in the campaign, counted from 0; `None` where this is the id of a campaign without an ordinal.
    pub const fn place(self) -> Option<u32> {
        ordinal(self.0).checked_sub(1)
    }
}

crate::object! {
    /// One contact of a campaign.
    pub struct CampaignContact {
        /// Identifier.
        pub id: CampaignContactId,
        /// The campaign.
        pub campaign_id: CampaignId,
        /// The contact.
        pub contact_id: ContactId,
        /// The status.
        pub status: ContactStatus,
        /// The conversation with the contact, after it was dispatched.
        pub conversation_id: Option<ConversationId>,
        /// Why it failed.
        pub error: Option<String>,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
    hidden {
        /// The round of the campaign in which it was dispatched, or failed, last.
        pub round: u32,
        /// Its delivery, where it was dispatched to a connector.
        pub delivery_id: Option<DeliveryId>,
    }
}

impl CampaignContact {
    /// Whether it is to be dispatched: it never was, or it has failed in an earlier round.
    pub fn is_waiting_in(&self, campaign: &Campaign) -> bool {
        self.is_retried_in(campaign) || (self.status == ContactStatus::Queued && self.conversation_id.is_none())
    }

    /// Whether it was dispatched, and its delivery has not ended.
    pub fn is_dispatched_in(&self, campaign: &Campaign) -> bool {
        self.status == ContactStatus::Queued && !self.is_waiting_in(campaign)
    }

    fn is_retried_in(&self, campaign: &Campaign) -> bool {
        self.status == ContactStatus::Failed && self.round < campaign.round
    }

    /// This contact as it is answered: with the id of its campaign, whose ordinal the stored contact does not have; as queued, if it has
    /// failed in an earlier round; and as cancelled, if it was queued when its campaign was cancelled.
    #[must_use]
    pub fn seen_in(mut self, campaign: &Campaign) -> Self {
        self.campaign_id = campaign.id;
        if self.is_retried_in(campaign) {
            (self.status, self.conversation_id, self.error) = (ContactStatus::Queued, None, None);
        }
        if campaign.status == CampaignStatus::Cancelled && self.status == ContactStatus::Queued {
            self.status = ContactStatus::Cancelled;
        }
        self
    }

    /// The contacts of a new campaign, none of them sent yet.
    pub fn all_queued(campaign: &Campaign, contacts: &[ContactId]) -> Vec<Self> {
        let run = campaign.id.run();
        let queued = |(place, contact_id): (u32, &ContactId)| Self {
            id: run.contact(place),
            campaign_id: run.campaign(),
            contact_id: *contact_id,
            status: ContactStatus::Queued,
            conversation_id: None,
            error: None,
            created_at: campaign.created_at,
            updated_at: campaign.created_at,
            round: 0,
            delivery_id: None,
        };
        (0..).zip(contacts).map(queued).collect()
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
    /// Seconds since 1970 began, after which the same request is a new one.
    pub ttl: i64,
}

crate::single!(RunMarker, Fingerprint, |print| format_args!("RUN#{}", crate::hex(&print)), "RUN");

impl From<RunMarker> for CampaignRun {
    fn from(marker: RunMarker) -> Self {
        Self { campaign_id: marker.campaign_id, status: CampaignStatus::Queued, contacts: marker.contacts }
    }
}
