//! `POST /api/v1/contact/import`: creates or changes up to 500 contacts, each as `upsert-contact` does. Use it to take
//! over a list from another system. One that fails does not stop the others.

use shared::prelude::*;

pub struct ImportContacts;

impl Operation for ImportContacts {
    type Path = ();
    type Query = ();
    type Body = NewContacts;
    type Reply = Created<ImportedAll<Contact>>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        contact::import(cx, request.body).await.map(Created)
    }
}
