//! `POST /api/v1/contact_custom_field`: creates a custom field of contacts. Use it for data of your own, such as a
//! customer number. Writes of contacts check its values from then on.

use shared::prelude::*;

pub struct CreateContactCustomField;

impl Operation for CreateContactCustomField {
    type Path = ();
    type Query = ();
    type Body = New<ContactCustomField>;
    type Reply = Created<ContactCustomField>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let new = request.body.checked(cx.tenant.org(), Uuid::nil())?;
        new.check()?;
        Create::insert(cx, (), new).await.map(Created)
    }
}
