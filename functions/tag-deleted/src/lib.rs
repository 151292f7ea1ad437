//! On the table's stream: when a tag is removed, its links leave the link list.

use shared::prelude::stream::*;

pub struct TagDeleted;

impl StreamConsumer for TagDeleted {
    const NAME: &'static str = "tag-deleted";

    async fn handle(cx: &StreamContext<'_>, change: &Change) -> Result<()> {
        let Some((tenant, tag)) = tag_of(&change.key()).filter(|_| change.is_removal()) else { return Ok(()) };
        // However many there are: what is done stays done, and a batch that comes again goes on where this one stopped.
        Ok(cx.table(tenant).remove_links_of(tag).await?)
    }
}
