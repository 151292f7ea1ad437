//! Forms: what an assistant asks for, field by field.

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
    pub struct Form {
        /// Identifier.
        pub id: FormId,
        /// What people read.
        pub name: Option<String>,
        /// When the assistant offers it.
        pub trigger_instructions: Option<String>,
        /// How it is filled in.
        pub form_type: FormType,
        /// The organisation.
        pub org_id: OrgId,
        /// Free-form.
        pub attributes: JsonObject,
        /// Free-form fields, in their order.
        pub fields: JsonArray,
        /// Where what was filled in goes.
        pub webhook_id: Option<WebhookId>,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}
