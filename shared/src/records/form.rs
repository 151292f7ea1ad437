//! Forms, which an assistant fills in with a person, field by field.

use crate::records::webhook::Webhook;
use crate::values::id::{FormId, OrgId, WebhookId};
use crate::values::json::{JsonArray, JsonObject};
use crate::values::time::Timestamp;

crate::choice! {
    /// How a form is filled in.
    pub enum FormType {
        Natural = "natural",
        Simple = "simple",
    }
}

crate::record! {
    /// A form.
    pub struct Form(FormId): listed("FORM") {
        /// What people read.
        input name: String,
        /// When the assistant offers it.
        input trigger_instructions: Option<String> = None,
        /// How it is filled in.
        input form_type: FormType,
        /// The organisation.
        org org_id: OrgId,
        /// Free-form.
        input attributes: JsonObject = JsonObject::default(),
        /// Free-form fields, in their order.
        input fields: JsonArray = JsonArray::default(),
        /// The address that a filled-in form is sent to.
        input webhook_id: Option<WebhookId> = None => Webhook,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}
