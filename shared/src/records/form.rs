//! Forms. An assistant fills them in with a person, field by field.

pub mod fields;
pub mod mapping;

use crate::records::form::mapping::ContactMapping;
use crate::records::webhook::Webhook;
use crate::values::id::{FormId, OrgId, WebhookId};
use crate::values::json::{JsonArray, JsonObject};
use crate::values::text::{Description, Name};
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
        /// Name of the form.
        input name: Name,
        /// When the assistant is to offer the form, in words.
        input trigger_instructions: Option<Description> = None,
        /// How the form is filled in.
        input form_type: FormType,
        /// The organisation.
        org org_id: OrgId,
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// Fields of the form, in their order, such as `{"name": "when", "type": "date", "required": true}`. The values of a captured form are checked
        /// against them; what the service does not understand of them it only stores.
        input fields: JsonArray = JsonArray::default(),
        /// Where the values of a captured form go in the contact of the conversation, such as `{"mail": "email"}`: to `first_name`, `last_name`, `email`,
        /// `phone_number`, or `attributes.<name>`.
        input contact_mapping: ContactMapping = ContactMapping::default(),
        /// Webhook that is to get filled-in forms; null for none.
        input webhook_id: Option<WebhookId> = None => Webhook,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}
