//! `POST /api/v1/call/{widget_id}`: calls one telephone number at once, through the connector of a widget. To call many contacts, use `call-contacts`.

use shared::prelude::*;

pub struct StartCall;

impl Operation for StartCall {
    type Path = WidgetId;
    type Query = ();
    type Body = CallToNumber;
    type Reply = Created<Requested>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        conversation::start_call(cx, request.path, request.body).await.map(Created)
    }
}
