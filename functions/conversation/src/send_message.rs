//! `POST /api/v1/messaging/{widget_id}`: sends a message to one telephone number at once, through the connector of a widget. To reach many contacts, use `message-contacts`.

use shared::prelude::*;

pub struct SendMessage;

impl Operation for SendMessage {
    type Path = WidgetId;
    type Query = ();
    type Body = MessageToNumber;
    type Reply = Created<Requested>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        conversation::send_message(cx, request.path, request.body).await.map(Created)
    }
}
