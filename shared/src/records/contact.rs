//! Contacts: whom campaigns write to and call.

use crate::values::id::{ContactId, OrgId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::record! {
    /// A contact.
    pub struct Contact {
        /// Identifier.
        pub id: ContactId,
        /// First name.
        pub first_name: Option<String>,
        /// Last name.
        pub last_name: Option<String>,
        /// E-mail address.
        pub email: Option<String>,
        /// Telephone number.
        pub phone_number: Option<String>,
        /// Free-form.
        pub attributes: JsonObject,
        /// The organisation.
        pub org_id: OrgId,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}
