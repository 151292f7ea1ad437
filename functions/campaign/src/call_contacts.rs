//! `POST /api/v1/call/{widget_id}/contacts`: runs a campaign at once that calls each contact, through a widget for
//! calls. To call one number, use `start-call`; to call later, `create-campaign`.

use shared::prelude::*;

pub struct CallContacts;

impl Operation for CallContacts {
    type Path = WidgetId;
    type Query = ();
    type Body = NewCampaign;
    type Reply = Created<CampaignRun>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        campaign::run(cx, request.path, request.body, Widget::require_calls).await.map(Created)
    }
}
