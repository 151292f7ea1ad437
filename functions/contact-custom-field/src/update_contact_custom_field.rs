//! `PUT /api/v1/contact_custom_field/{contact_custom_field_id}`: changes a custom field of contacts. Its name and its type stay, and it becomes no filter. Values that contacts have stay as they are.

use shared::prelude::*;

pub struct UpdateContactCustomField;

impl Operation for UpdateContactCustomField {
    type Path = ContactCustomFieldId;
    type Query = ();
    type Body = CustomFieldChanges;
    type Reply = Updated<ContactCustomField>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let now = cx.now();
        let change = |field: &mut ContactCustomField| request.body.apply(field, now);
        cx.table
            .try_change(request.path, cx.new_id(), change)
            .await
            .on_missing(ContactCustomFieldId::PARAMETER)
            .map(Updated)
    }
}
