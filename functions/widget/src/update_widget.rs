//! `PUT /api/v1/widget/{widget_id}`: changes a widget; absent fields keep their values.

use std::sync::atomic::{AtomicBool, Ordering};

use shared::prelude::*;

pub struct UpdateWidget;

impl Operation for UpdateWidget {
    type Path = WidgetId;
    type Query = ();
    type Body = Changes<Widget>;
    type Reply = Updated<Widget>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, Changes(changes)) = (request.path, request.body);
        // An execution that died may have made the change: then nobody looks at it again.
        let moves = AtomicBool::new(matches!(changes.connector_url, Patch::Set(_)));
        let look = |was: &Widget, is: &Widget| moves.store(is.has_moved_from(was), Ordering::Relaxed);
        let widget = update(cx, id, &changes, look).await?;
        if moves.into_inner() {
            // The circuit of the old address tells nothing of the new one.
            cx.table.reset_endpoint_health((id.into(), true), cx.now()).await?;
        }
        Ok(Updated(widget))
    }
}
