//! `POST /api/v1/call/{widget_id}`: calls a telephone number, through the widget's connector.

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
