//! Which contacts of a campaign may be contacted when they are dispatched.

use std::collections::{BTreeMap, BTreeSet};

use super::Unreached;
use crate::records::contact::Contact;
use crate::records::suppression::{self, Points, ReadGuard, SuppressedChannel};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignId, ContactId};

/// The contacts of a campaign that must not be contacted.
pub(super) struct Reachable {
    /// Why, for each of them.
    pub(super) refused: BTreeMap<ContactId, Unreached<'static>>,
    /// The others may be contacted as long as this guard is unchanged.
    pub(super) guard: ReadGuard,
}

impl Reachable {
    /// Looks up contacts and their suppressions as they are now.
    ///
    /// # Errors
    /// [`TableError`].
    pub(super) async fn read(
        table: &Table,
        campaign: CampaignId,
        invited: &[ContactId],
        channel: SuppressedChannel,
    ) -> Result<Self, TableError> {
        let wanted: BTreeSet<ContactId> = invited.iter().copied().collect();
        // The guard is read before the suppressions, never after them.
        let (guard, found) =
            futures_util::try_join!(suppression::read_guard(table, campaign.0), table.get_each::<Contact>(&wanted))?;
        let points =
            |contact: &Contact| Points { phone_number: contact.phone_number.clone(), email: contact.email.clone() };
        let suppressed = suppression::suppressed(table, &found.iter().map(points).collect::<Vec<_>>(), channel).await?;
        let there: BTreeSet<ContactId> = found.iter().map(|contact| contact.id).collect();
        let gone = wanted.difference(&there).map(|id| (*id, Unreached::Failed("the contact is gone")));
        let suppressed = suppressed.into_iter().filter_map(|place| Some((found.get(place)?.id, Unreached::Suppressed)));
        Ok(Self { refused: gone.chain(suppressed).collect(), guard })
    }
}
