//! `POST /api/v1/link_tag_entity`: links a tag to a record. Use it to group records by your own labels. To link it
//! again answers the first link.

use shared::prelude::*;

pub struct CreateLinkTagEntity;

impl Operation for CreateLinkTagEntity {
    type Path = ();
    type Query = ();
    type Body = New<Link>;
    type Reply = Created<Link>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let new = request.body.record;
        let entity = new.entity(&cx.tenant);
        let link = |id: LinkId| Link { created_by_id: cx.user(), ..cx.begun(new.clone(), id) };
        Ok(Created(cx.table.insert_once(cx.new_row(()), entity, link).await?))
    }
}
