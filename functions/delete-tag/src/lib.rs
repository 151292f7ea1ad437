//! `DELETE /api/v1/tag/{tag_id}`: removes a tag.

use shared::prelude::*;

pub struct DeleteTag;

input! {
    pub struct DeleteTagPath {
        pub tag_id: TagId,
    }
}

impl Operation for DeleteTag {
    const ROUTE: &'static Route = &routes::DELETE_TAG;
    type Path = DeleteTagPath;
    type Query = ();
    type Body = ();
    type Reply = Deleted<Tag>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let removed = cx.table.remove::<Tag>(request.path.tag_id).await.on_missing("tag_id")?;
        Ok(Deleted(removed))
    }
}
