//! The events of a campaign's contacts: a delivery has ended, or a connector has reported an outcome.

use super::{ChangeEvents, Emitter, ScopedEvent, made};
use crate::records::campaign::{self, Campaign, CampaignContact};
use crate::records::delivery::Delivery;
use crate::records::event::{Event, EventKind};
use crate::records::webhook::subscription::EventScope;
use crate::request::error::Result;
use crate::table::change::Change;
use crate::values::json::JsonObject;

const KIND: EventKind = EventKind::CAMPAIGN_CONTACT_UPDATED;

impl Emitter<'_> {
    /// The event that the delivery to a contact has ended.
    pub(super) async fn of_ended_delivery(&self, change: &Change) -> Result<ChangeEvents> {
        if !self.subscriptions.include_any([KIND]) {
            return Ok(ChangeEvents::default());
        }
        let ended = change.record::<Delivery>()?;
        let Some((campaign, id)) = ended.and_then(|ended| ended.campaign_id.zip(ended.campaign_contact_id)) else {
            return Ok(ChangeEvents::default());
        };
        let found =
            futures_util::try_join!(self.table.find::<Campaign>(campaign), self.table.find::<CampaignContact>(id))?;
        let (Some(campaign), Some(contact)) = found else { return Ok(ChangeEvents::default()) };
        Ok(event_of(contact, &campaign, change).into())
    }

    /// The event that a connector has reported the outcome of a contact.
    pub(super) async fn of_reported_outcome(&self, change: &Change) -> Result<ChangeEvents> {
        if !self.subscriptions.include_any([KIND]) {
            return Ok(ChangeEvents::default());
        }
        let (was, is) = (change.record_before::<CampaignContact>()?, change.record::<CampaignContact>()?);
        let Some(is) = is.filter(|is| was.is_some_and(|was| was.result != is.result)) else {
            return Ok(ChangeEvents::default());
        };
        let found = campaign::with_campaign(self.table, is.id).await?;
        Ok(found.and_then(|(_, campaign)| event_of(is, &campaign, change)).into())
    }
}

fn event_of(contact: CampaignContact, campaign: &Campaign, change: &Change) -> Option<ScopedEvent> {
    let scope = EventScope { assistant_id: campaign.assistant_id, widget_id: campaign.widget_id };
    let sequence = contact.version + 1;
    let data = JsonObject::of(&contact.as_answered_in(campaign))?;
    let ScopedEvent { event, .. } = made(KIND, data, None, change)?;
    Some(ScopedEvent { event: Event { sequence, ..event }, scope })
}
