//! Contacts: the people to whom campaigns send messages or make calls.

mod import;
mod upsert;

pub use import::{Import, ImportOutcome, ImportedContact, ImportedContacts, NewContacts, import};
pub use upsert::{ContactFields, ContactQuery, Upsert, upsert};

use crate::records::contact_point::{Email, PhoneNumber};
use crate::table::version::Version;
use crate::values::id::{ContactId, OrgId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::record! {
    /// A contact.
    pub struct Contact(ContactId): listed("CONTACT" spread) {
        /// First name.
        input first_name: Option<String> = None,
        /// Last name.
        input last_name: Option<String> = None,
        /// E-mail address.
        input(unique filter) email: Option<Email> = None,
        /// Telephone number.
        input(unique filter) phone_number: Option<PhoneNumber> = None,
        /// Free-form.
        input attributes: JsonObject = JsonObject::default(),
        /// The organisation.
        org org_id: OrgId,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}

impl Contact {
    /// A contact of whom nothing is known.
    pub(crate) fn unknown(id: ContactId, org: OrgId, now: Timestamp) -> Self {
        Self {
            id,
            first_name: None,
            last_name: None,
            email: None,
            phone_number: None,
            attributes: JsonObject::default(),
            org_id: org,
            created_at: now,
            updated_at: now,
            version: Version::default(),
        }
    }
}
