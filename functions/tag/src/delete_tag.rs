//! `DELETE /api/v1/tag/{tag_id}`: removes a tag.

use shared::prelude::*;

pub struct DeleteTag;

impl Operation for DeleteTag {
    type Path = TagId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Tag>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let removed = cx.table.remove::<Tag>(request.path).await.on_missing("tag_id")?;
        Ok(Deleted(removed))
    }
}
