//! `POST /api/v1/contact/upsert`: finds the contact with an e-mail address or telephone number and changes it, or
//! creates it. Use it if you do not know whether the contact is there already.

use shared::prelude::*;

pub struct UpsertContact;

impl Operation for UpsertContact {
    type Path = ();
    type Query = ContactQuery;
    type Body = OptionalBody<ContactFields>;
    type Reply = Upserted<Contact>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let wanted = request.query.with(request.body.0).checked(cx).await?;
        contact::upsert(&cx.table, &wanted, &Upsert::of(cx)).await
    }
}
