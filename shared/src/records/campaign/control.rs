//! The commands of callers: pause, resume, cancel, retry, delete.

use super::state::{CampaignCommand, CampaignRefusal};
use super::storage::{answered, contact_totals, with_items};
use super::{Campaign, CampaignStatus};
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::error::NotChanged;
use crate::values::id::CampaignId;

/// Why a command is refused, or changes nothing.
enum CommandRefused {
    /// The campaign already has the state that the command asks for.
    AlreadyDone(Box<Campaign>),
    /// Its phase forbids it.
    WrongPhase(CampaignRefusal),
}

/// Executes the command of a caller, once for each request. Returns the campaign as a caller sees it.
///
/// # Errors
/// [`Error::NotFound`] where there is no such campaign, [`Error::Conflict`] where its phase forbids the command.
pub async fn control(cx: &Context<'_>, id: CampaignId, command: CampaignCommand) -> Result<Campaign> {
    let (by, now) = (cx.new_id(), cx.now());
    let (campaign, items) = with_items(&cx.table, id).await.on_missing("campaign_id")?;
    let change = |campaign: &mut Campaign| {
        let was = campaign.clone();
        *campaign = was.clone().on(command, contact_totals(&was, &items), now).map_err(CommandRefused::WrongPhase)?;
        if *campaign == was { Err(CommandRefused::AlreadyDone(Box::new(was))) } else { Ok(()) }
    };
    let changed = match cx.table.change_read(campaign, id, (Some(by), false), change, |_, _| None).await {
        Ok(changed) => changed,
        Err(NotChanged::Refused(CommandRefused::AlreadyDone(campaign))) => *campaign,
        Err(NotChanged::Refused(CommandRefused::WrongPhase(refusal))) => return Err(refusal.into()),
        Err(NotChanged::Failed(error)) => return Err(error).on_missing("campaign_id"),
    };
    Ok(answered(&changed, &items))
}

/// Removes a campaign that is not being sent, and returns it as it was. The stream removes its contacts.
///
/// # Errors
/// [`Error::NotFound`] where there is no such campaign, [`Error::Conflict`] while it is being sent.
pub async fn remove(cx: &Context<'_>, id: CampaignId) -> Result<Campaign> {
    let seen = super::read(&cx.table, id).await.on_missing("campaign_id")?;
    let completed = seen.status == CampaignStatus::Completed;
    // The stored status may lag behind the result of the last contact, but not while contacts wait for dispatch.
    let check = |stored: &Campaign| match stored.status {
        CampaignStatus::Queued | CampaignStatus::Paused => Err(Error::from(CampaignRefusal::InProgress)),
        // A different round means that a caller has retried the campaign just now.
        CampaignStatus::InProgress if !(completed && stored.round == seen.round && stored.is_dispatched()) => {
            Err(CampaignRefusal::InProgress.into())
        }
        _ => Ok(()),
    };
    cx.table.remove_if(id, check).await.on_missing("campaign_id")?;
    Ok(seen)
}
