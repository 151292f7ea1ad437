//! Which contacts of a campaign may be contacted when they are dispatched.

use std::collections::BTreeMap;

use super::Unreached;
use crate::records::contact::Contact;
use crate::records::suppression::{self, Points, ReadGuard, SuppressedChannel};
use crate::table::item::{from_item, has_id};
use crate::table::keys::Key;
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
        let keys: Vec<Key> = invited.iter().map(|id| table.key::<Contact>(*id)).collect();
        // The guard is read before the suppressions, never after them.
        let (guard, found) = futures_util::try_join!(
            suppression::read_guard(table, campaign.0),
            table.store.get_attributes(&keys, Points::ATTRIBUTES)
        )?;
        let (mut refused, mut there, mut people) = (BTreeMap::new(), Vec::new(), Vec::<Points>::new());
        for (id, key) in invited.iter().zip(&keys) {
            let item = found.get(key).filter(|item| has_id(item, Some(id.0)));
            if let Some(points) = item.and_then(|item| from_item(item.clone()).ok()) {
                there.push(*id);
                people.push(points);
            } else {
                refused.insert(*id, Unreached::Failed("the contact is gone"));
            }
        }
        let suppressed = suppression::suppressed(table, &people, channel).await?;
        refused.extend(suppressed.into_iter().filter_map(|place| Some((*there.get(place)?, Unreached::Suppressed))));
        Ok(Self { refused, guard })
    }
}
