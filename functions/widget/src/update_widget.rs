//! `PUT /api/v1/widget/{widget_id}`: changes a widget. Absent fields keep their values.

use shared::prelude::*;

pub struct UpdateWidget;

impl Operation for UpdateWidget {
    type Path = WidgetId;
    type Query = ();
    type Body = Changes<Widget>;
    type Reply = Updated<Widget>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, Changes(changes), now) = (request.path, request.body, cx.now());
        // The circuit of the old address shows nothing about the new one.
        let reset = |was: &Widget, is: &Widget| {
            is.has_moved_from(was).then(|| delivery::health::resetting(&cx.table, (id.into(), true), now))
        };
        update(cx, id, &changes, reset).await.map(Updated)
    }
}
