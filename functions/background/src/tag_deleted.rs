//! On the table's stream: when a tag is removed, its links leave the link list.

use shared::prelude::events::*;
use shared::table::keys::tag_of;

pub struct TagDeleted;

impl StreamConsumer for TagDeleted {
    const NAME: &'static str = "tag-deleted";

    async fn handle(cx: &EventContext<'_>, batch: &[Change]) -> Handled {
        for (at, change) in batch.iter().enumerate() {
            let Some((tenant, tag)) = tag_of(&change.key()).filter(|_| change.is_removal()) else { continue };
            // However many there are: what is done stays done, and a batch that comes again goes on where this one stopped.
            cx.table(tenant).remove_links_of(tag).await.map_err(|error| Unhandled::at(at, error))?;
        }
        Ok(())
    }
}
