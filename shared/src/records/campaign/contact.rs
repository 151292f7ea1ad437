//! One contact of a campaign: its states, and what a caller sees of it.

use super::{Campaign, CampaignStatus, MessagePosition};
use crate::records::outcome::OutcomeReport;
use crate::values::id::{CampaignContactId, CampaignId, ContactId, ConversationId, DeliveryId, EndpointId};
use crate::values::time::Timestamp;

crate::choice! {
    /// The status of one contact of a campaign.
    pub enum ContactStatus {
        Queued = "queued",
        Sent = "sent",
        /// Its message is stored in its conversation. The widget has no connector that would deliver it.
        Stored = "stored",
        Failed = "failed",
        /// It is not to be contacted, so nothing was sent to it.
        Suppressed = "suppressed",
        Cancelled = "cancelled",
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
        /// Conversation with the contact; null until the contact is dispatched.
        pub conversation_id: Option<ConversationId>,
        /// Why sending failed; null otherwise.
        pub error: Option<String>,
        /// How the call or the message ended, as the connector has reported; null until then.
        pub result: Option<OutcomeReport>,
        /// How many times it was dispatched.
        #[serde(default)]
        pub attempts: u32,
        /// When the `retry_policy` dispatches it again; null if it does not.
        pub next_attempt_at: Option<Timestamp>,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
    hidden {
        /// The number of its changes.
        pub version: u64,
        /// When it was dispatched last, if it was dispatched more than once.
        pub sent_at: Option<Timestamp>,
        /// The round of the campaign in which it was dispatched, or failed, last.
        pub round: u32,
        /// Its delivery, where it was dispatched to a connector.
        pub delivery_id: Option<DeliveryId>,
        /// The connector: that of the widget through which the campaign ran then.
        pub endpoint_id: Option<EndpointId>,
        /// Where its messages were said; `None` of one that was dispatched before this was stored, or never.
        pub said: Option<Vec<MessagePosition>>,
    }
}

impl CampaignContact {
    /// Whether it waits for dispatch: it was never dispatched, failed in an earlier round, or waits for another attempt.
    pub fn is_waiting_in(&self, campaign: &Campaign) -> bool {
        let is_undispatched = self.conversation_id.is_none() || self.next_attempt_at.is_some();
        self.is_retried_in(campaign) || (self.status == ContactStatus::Queued && is_undispatched)
    }

    /// Whether it was dispatched, and its delivery has not ended.
    pub fn is_dispatched_in(&self, campaign: &Campaign) -> bool {
        self.status == ContactStatus::Queued && !self.is_waiting_in(campaign)
    }

    fn is_retried_in(&self, campaign: &Campaign) -> bool {
        self.status == ContactStatus::Failed && self.round < campaign.round
    }

    /// How many times it was dispatched. The first time is not counted: its conversation shows it.
    pub fn times_dispatched(&self) -> u32 {
        self.attempts.max(u32::from(self.conversation_id.is_some()))
    }

    /// This contact as a caller sees it: with the id of its campaign, whose ordinal the stored contact lacks; as
    /// queued, if it failed in an earlier round; and as cancelled, if it was queued when its campaign was cancelled.
    #[must_use]
    pub fn as_answered_in(mut self, campaign: &Campaign) -> Self {
        self.campaign_id = campaign.id;
        self.attempts = self.times_dispatched();
        if self.is_retried_in(campaign) {
            (self.status, self.conversation_id, self.error) = (ContactStatus::Queued, None, None);
        }
        if campaign.status == CampaignStatus::Cancelled && self.status == ContactStatus::Queued {
            (self.status, self.next_attempt_at) = (ContactStatus::Cancelled, None);
        }
        self
    }

    /// The contacts of a new campaign, none of them sent yet.
    pub fn all_queued(campaign: &Campaign, contacts: &[ContactId]) -> Vec<Self> {
        Self::queued_from(0, campaign, contacts, campaign.created_at)
    }

    /// Contacts that are added to a campaign, from the place `first` on.
    pub fn queued_from(first: u32, campaign: &Campaign, contacts: &[ContactId], now: Timestamp) -> Vec<Self> {
        let queued = |(place, contact_id): (u32, &ContactId)| Self {
            id: campaign.contact(place),
            campaign_id: campaign.id.run().campaign(),
            contact_id: *contact_id,
            status: ContactStatus::Queued,
            conversation_id: None,
            error: None,
            result: None,
            attempts: 0,
            next_attempt_at: None,
            created_at: now,
            updated_at: now,
            version: 0,
            sent_at: None,
            round: 0,
            delivery_id: None,
            endpoint_id: None,
            said: None,
        };
        (first..).zip(contacts).map(queued).collect()
    }
}
