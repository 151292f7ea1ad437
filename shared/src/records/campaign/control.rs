//! The commands of callers: pause, resume, cancel, retry, delete.

use super::state::{CampaignCommand, CampaignRefusal};
use super::storage::{answered, standing, with_items};
use super::{Campaign, CampaignStatus};
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::error::NotChanged;
use crate::values::id::CampaignId;

/// Why a campaign is not changed.
enum Unchanged {
    /// It is as it is asked to be.
    Already(Box<Campaign>),
    /// Its phase forbids it.
    Refused(CampaignRefusal),
}

/// Does what a caller commands, once for one request. Returns the campaign as it is answered.
///
/// # Errors
/// [`Error::NotFound`] where there is no such campaign, [`Error::Conflict`] where it refuses.
pub async fn control(cx: &Context<'_>, id: CampaignId, command: CampaignCommand) -> Result<Campaign> {
    let (by, now) = (cx.new_id(), cx.now());
    let (campaign, beside) = with_items(&cx.table, id).await.on_missing("campaign_id")?;
    let change = |campaign: &mut Campaign| {
        let was = campaign.clone();
        *campaign = was.clone().on(command, standing(&was, &beside), now).map_err(Unchanged::Refused)?;
        if *campaign == was { Err(Unchanged::Already(Box::new(was))) } else { Ok(()) }
    };
    let changed = match cx.table.change_read(campaign, id, Some(by), change, |_, _| None).await {
        Ok(changed) => changed,
        Err(NotChanged::Refused(Unchanged::Already(campaign))) => *campaign,
        Err(NotChanged::Refused(Unchanged::Refused(refusal))) => return Err(refusal.into()),
        Err(NotChanged::Failed(error)) => return Err(error).on_missing("campaign_id"),
    };
    Ok(answered(&changed, &beside))
}

/// Removes a campaign that is not being sent, and returns what it was. Its contacts go by the stream.
///
/// # Errors
/// [`Error::NotFound`] where there is no such campaign, [`Error::Conflict`] while it is being sent.
pub async fn remove(cx: &Context<'_>, id: CampaignId) -> Result<Campaign> {
    let seen = super::read(&cx.table, id).await.on_missing("campaign_id")?;
    let completed = seen.status == CampaignStatus::Completed;
    // What is stored may lag behind what became of the last contact, but not while there is more to dispatch.
    let check = |stored: &Campaign| match stored.status {
        CampaignStatus::Queued | CampaignStatus::Paused => Err(Error::from(CampaignRefusal::InProgress)),
        // Of another round is what somebody retried just now.
        CampaignStatus::InProgress if !(completed && stored.round == seen.round && stored.is_dispatched()) => {
            Err(CampaignRefusal::InProgress.into())
        }
        _ => Ok(()),
    };
    cx.table.remove_if(id, check).await.on_missing("campaign_id")?;
    Ok(seen)
}
