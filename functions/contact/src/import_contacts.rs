//! `POST /api/v1/contact/import`: upserts up to 500 contacts, each by itself.

use shared::prelude::*;

pub struct ImportContacts;

impl Operation for ImportContacts {
    type Path = ();
    type Query = ();
    type Body = NewContacts;
    type Reply = Created<ImportedContacts>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        contact::import(cx, request.body).await.map(Created)
    }
}
