//! How the run of a campaign begins.

use super::storage::{Earlier, commit, preconditions, stage};
use super::{Campaign, CampaignContact, CampaignRun, ContactIds, RetryPolicy, RunId, SAME_RUN};
use crate::input::{Location, settle};
use crate::records::widget::Widget;
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::values::hash::sha256;
use crate::values::id::WidgetId;
use crate::values::text::MessageText;

crate::input! {
    /// The input of run-campaign.
    pub struct NewCampaign {
        /// Contacts that get the message or the call. A contact that is named twice gets it once.
        pub contact_ids: ContactIds,
        /// Text that each contact gets. Without one, the opening message of the widget is sent. Calls ignore it.
        pub message: Option<MessageText> = None,
        /// True to begin a new conversation with each contact; false to continue an open one, if there is one. A call always begins a new one.
        pub start_new_conversation: bool = false,
        /// Which outcomes are followed by another attempt; null for none.
        pub retry_policy: Option<RetryPolicy> = None,
    }
}

impl NewCampaign {
    /// SHA-256 of the request: requests with the same hash are the same. The order of the contacts makes no difference.
    pub fn fingerprint(&self, widget: WidgetId) -> [u8; 32] {
        let flags = [u8::from(self.start_new_conversation), u8::from(self.message.is_some())];
        let message = self.message.as_deref().unwrap_or_default();
        let length = (message.len() as u64).to_be_bytes();
        let mut contacts = self.contact_ids.distinct();
        contacts.sort_unstable_by_key(|contact| contact.0);
        let parts = [widget.0.as_bytes().as_slice(), &flags, &length, message.as_bytes()].into_iter();
        let policy = self.retry_policy.as_ref().map(RetryPolicy::print).unwrap_or_default();
        let contacts = contacts.iter().map(|contact| contact.0.as_bytes().as_slice());
        sha256(parts.chain(contacts).chain([policy.as_bytes()]))
    }
}

/// Queues a campaign through a widget that `accepts` it. A repeat of the same request, by either route, gets the first
/// run.
///
/// # Errors
/// [`Error::NotFound`](crate::request::error::Error::NotFound) where there is no such widget, the error of `accepts`,
/// and [`Error::Invalid`](crate::request::error::Error::Invalid) at unknown contacts and at a message that a chat
/// lacks.
pub async fn run(
    cx: &Context<'_>,
    widget: WidgetId,
    new: NewCampaign,
    accepts: fn(&Widget) -> Result<()>,
) -> Result<CampaignRun> {
    let now = cx.now();
    let same = cx.recognised_by(new.fingerprint(widget), SAME_RUN);
    let contacts = new.contact_ids.distinct();
    // Boxed, because the future that waits for it would otherwise contain all of its state.
    let found = Box::pin(preconditions(&cx.table, widget, same, &contacts, now)).await.on_missing("widget_id")?;
    accepts(&found.widget)?;
    if let Earlier::Counts(earlier) = found.earlier {
        return Ok(earlier.into());
    }
    found.widget.require_connector_of_calls(&Location::path())?;
    settle(Some(()), new.contact_ids.unknown(&found.missing))?;
    found.room?;
    let id = RunId::fresh(cx.new_attempt()).campaign();
    let campaign = Campaign::queued(id, &found.widget, &new, contacts.len(), now)?;
    // Nothing refers to the staged contacts yet: if the process crashes here, nothing is sent, and a repeat stages
    // contacts of its own. The commit makes all of them count at once, unless the same request was committed before.
    // Each attempt has contacts of its own, so a late write of a crashed attempt cannot set a sent contact back to
    // queued.
    let contacts = CampaignContact::all_queued(&campaign, &contacts);
    let place = stage(&cx.table, &campaign, &contacts).await?;
    Ok(commit(&cx.table, (&campaign, place), same, &found.earlier, now).await?.into())
}
