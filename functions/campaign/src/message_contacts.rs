//! `POST /api/v1/messaging/{widget_id}/contacts`: runs a campaign at once that sends a message to each contact, through
//! a widget for messages. To reach one number, use `send-message`; to send later, `create-campaign`.

use shared::prelude::*;

pub struct MessageContacts;

impl Operation for MessageContacts {
    type Path = WidgetId;
    type Query = ();
    type Body = NewCampaign;
    type Reply = Created<CampaignRun>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::run(cx, request.path, request.body, Widget::require_messages).await.map(Created)
    }
}
