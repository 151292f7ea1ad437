//! Contacts: the people to whom campaigns send messages or make calls.

mod import;
mod upsert;

pub use import::{ImportOutcome, ImportedContact, ImportedContacts, NewContacts, import};
pub use upsert::{ContactFields, ContactQuery, Upsert, upsert};

use crate::records::contact_point::{Email, PhoneNumber};
use crate::table::version::Version;
use crate::values::id::{ContactId, OrgId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::record! {
    /// A contact.
    pub struct Contact(ContactId): listed("CONTACT" spread) {
        /// First name of the contact.
        input first_name: Option<String> = None,
        /// Last name of the contact.
        input last_name: Option<String> = None,
        /// E-mail address. No two contacts of an organisation have the same one; upper and lower case make no difference.
        input(unique filter) email: Option<Email> = None,
        /// Telephone number with its country code, answered as `+` and digits. No two contacts of an organisation have the same one.
        input(unique filter) phone_number: Option<PhoneNumber> = None,
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// The organisation that owns the contact. A body may leave it out; if it names one, it must be that of the API key.
        org org_id: OrgId,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}

impl Contact {
    /// A contact with an id and nothing else.
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
