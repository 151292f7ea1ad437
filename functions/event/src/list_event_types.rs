//! `GET /api/v1/event_type`: lists the types of events to which a webhook can subscribe. Use it to choose the `events`
//! of a webhook.

use shared::prelude::*;

pub struct ListEventTypes;

impl Operation for ListEventTypes {
    type Path = ();
    type Query = ();
    type Body = ();
    type Reply = Retrieved<EventTypes>;

    async fn handle(_: &Context<'_>, _: Request<Self>) -> Result<Self::Reply> {
        Ok(Retrieved(EventTypes::all()))
    }
}
