//! `GET /api/v1/event/{event_id}`: reads an event of the last 30 days. Use it to see again what a server of yours has
//! received.

use shared::prelude::*;

pub struct ReadEvent;

impl Operation for ReadEvent {
    type Path = EventId;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<Event>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        event::logged(&cx.table, request.path, cx.now()).await.on_missing("event_id").map(Retrieved)
    }
}
