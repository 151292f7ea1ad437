//! `PUT /api/v1/contact/{contact_id}`: changes a contact. Use it if you know the id; otherwise use `upsert-contact`.
//! Absent fields keep their values, and so do custom fields that `custom_fields` leaves out.

use shared::prelude::*;

pub struct UpdateContact;

impl Operation for UpdateContact {
    type Path = ContactId;
    type Query = ();
    type Body = Changes<Contact>;
    type Reply = Updated<Contact>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        contact::update(cx, request.path, request.body).await.map(Updated)
    }
}
