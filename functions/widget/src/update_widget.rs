//! `PUT /api/v1/widget/{widget_id}`: changes a widget. Absent fields keep their values. The first `connector_url` gives the widget a secret that signs its events; the answer has it, this once.

use shared::prelude::*;

pub struct UpdateWidget;

impl Operation for UpdateWidget {
    type Path = WidgetId;
    type Query = ();
    type Body = Changes<Widget>;
    type Reply = Updated<WidgetWithSecret>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (id, Changes(changes), now) = (request.path, request.body, cx.now());
        let has_connector = matches!(changes.connector_url, Patch::Set(Some(_)));
        let secret = has_connector.then(|| cx.secret().map(new_secret)).transpose()?;
        // The circuit of the old address shows nothing about the new one.
        let reset = |was: &Widget, is: &Widget| {
            is.has_moved_from(was).then(|| delivery::health::resetting(&cx.table, (id.into(), true), now))
        };
        let connect = |widget: &mut Widget| {
            if let Some(secret) = &secret {
                widget.connect(secret);
            }
        };
        let widget = update(cx, id, &changes, connect, reset).await?;
        Ok(Updated(WidgetWithSecret::new(widget, secret)))
    }
}
