//! How a campaign begins to run.

use std::collections::HashSet;

use super::storage::Earlier;
use super::{Campaign, CampaignContact, CampaignRun, ContactIds, RunId, SAME_RUN};
use crate::input::settle;
use crate::records::widget::Widget;
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::values::id::{ContactId, WidgetId};

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
    /// [`Error::Invalid`](crate::request::error::Error::Invalid), with an issue at each index.
    pub fn require_contacts(&self, missing: &HashSet<ContactId>) -> Result<()> {
        Ok(settle(Some(()), self.contact_ids.unknown(missing))?)
    }

    /// Queues it through a widget that `accepts` it. A repeat of the same request gets the first run, by whichever route it comes.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::request::error::Error::NotFound) where there is no such widget, what `accepts` refuses, and
    /// [`Error::Invalid`](crate::request::error::Error::Invalid) at unknown contacts and at a message that a chat lacks.
    pub async fn run(
        self,
        cx: &Context<'_>,
        widget: WidgetId,
        accepts: fn(&Widget) -> Result<()>,
    ) -> Result<CampaignRun> {
        let now = cx.now();
        let same = cx.recognised_by(self.fingerprint(widget), SAME_RUN);
        let contacts = self.contact_ids.distinct();
        let found = cx.table.campaign_preconditions(widget, same, &contacts, now).await.on_missing("widget_id")?;
        accepts(&found.widget)?;
        if let Earlier::Counts(earlier) = found.earlier {
            return Ok(earlier.into());
        }
        self.require_contacts(&found.missing)?;
        let id = RunId::fresh(cx.new_attempt()).campaign();
        let campaign = Campaign::queued(id, &found.widget, &self, contacts.len(), now)?;
        // Nothing refers to the staged contacts yet: if the process dies here, nothing is sent, and a repeat stages its own. The commit makes
        // all of them count at once, unless the same request was committed before. Each attempt has its own contacts, so a late write of a
        // dead attempt cannot set a sent contact back to queued.
        let contacts = CampaignContact::all_queued(&campaign, &contacts);
        let place = cx.table.stage_campaign(&campaign, &contacts).await?;
        Ok(cx.table.commit_campaign((&campaign, place), same, &found.earlier, now).await?.into())
    }
}
