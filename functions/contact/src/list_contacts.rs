//! `GET /api/v1/contact`: a page of the organisation's contacts, oldest first. Use it to find a contact. `email` and
//! `phone_number` select the one contact that has them, and `custom_field` those with a value of a custom field.

use shared::prelude::*;

pub struct ListContacts;

impl Operation for ListContacts {
    type Path = ();
    type Query = ContactListQuery;
    type Body = ();
    type Reply = Page<Contact>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let query = request.query.with_fields(cx).await?;
        List::<Contact>::handle(cx, Request { path: (), query, body: () }).await
    }
}
