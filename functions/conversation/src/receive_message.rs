//! `POST /api/v1/widget/{widget_id}/inbound`: adds the message of a person that the connector of a widget brings in,
//! once for each `external_id`. It finds or makes the contact and the conversation.

use shared::prelude::*;

pub struct ReceiveMessage;

impl Operation for ReceiveMessage {
    type Path = WidgetId;
    type Query = ();
    type Body = MessageFromNumber;
    type Reply = Created<ReceivedMessage>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        conversation::receive_message(cx, request.path, request.body).await.map(Created)
    }
}
