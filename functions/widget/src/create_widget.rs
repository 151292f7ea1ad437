//! `POST /api/v1/widget`: creates a widget: a channel through which an assistant talks to contacts. Messages and calls need its `connector_url`. With it the answer has the secret that signs the connector's events, this once.

use shared::prelude::*;

pub struct CreateWidget;

impl Operation for CreateWidget {
    type Path = ();
    type Query = ();
    type Body = New<Widget>;
    type Reply = Created<WidgetWithSecret>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let mut new = request.body.checked(cx.tenant.org(), Uuid::nil())?;
        let secret = new.connector_url.is_some().then(|| cx.secret().map(new_secret)).transpose()?;
        if let Some(secret) = &secret {
            new.connect(secret);
        }
        let widget = Create::insert(cx, (), new).await?;
        Ok(Created(WidgetWithSecret::new(widget, secret)))
    }
}
