//! `POST /api/v1/widget/{widget_id}/rotate_secret`: makes a new secret for the connector of a widget. Use it if others
//! may know the old one. Events have a signature of each of them for one more day.

use shared::prelude::*;

pub struct RotateWidgetSecret;

impl Operation for RotateWidgetSecret {
    type Path = WidgetId;
    type Query = ();
    type Body = ();
    type Reply = Updated<WidgetWithSecret>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (secret, now) = (new_secret(cx.secret()?), cx.now());
        let rotate = |widget: &mut Widget| widget.rotate(&secret, now);
        let widget = cx.table.change(request.path, cx.new_id(), rotate).await.on_missing("widget_id")?;
        Ok(Updated(WidgetWithSecret::new(widget, Some(secret))))
    }
}
