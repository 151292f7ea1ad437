//! `GET /api/v1/event`: lists the events of the last 30 days, oldest first. Use it if your server was down, or cannot
//! be called at all. To read on, pass the id of the last event as `after`: no event is missed, and none comes twice.

use shared::prelude::*;

pub struct ListEvents;

impl Operation for ListEvents {
    type Path = ();
    type Query = EventQuery;
    type Body = ();
    type Reply = Retrieved<EventPage>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(Retrieved(event::list(&cx.table, &request.query, cx.now()).await?))
    }
}
