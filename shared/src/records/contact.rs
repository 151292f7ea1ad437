//! Contacts: the people to whom campaigns send messages or make calls.

pub mod custom;
mod import;
mod listed;
mod upsert;

pub use import::{NewContacts, import};
pub use listed::ContactListQuery;
pub use upsert::{ContactFields, ContactQuery, Upsert, WantedContact, upsert};

use crate::input::{Location, Patch};
use crate::operations::new::require_room;
use crate::records::contact::custom::{CustomFields, CustomTerms, CustomValues, require_room_for_values};
use crate::records::contact_point::{Email, PhoneNumber};
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::table::declaration::{Changes, Declared as _};
use crate::table::filters::Term;
use crate::table::version::Version;
use crate::values::id::{ContactId, OrgId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::record! {
    /// A contact.
    pub struct Contact(ContactId): listed("CONTACT" spread, terms Contact::custom_terms) {
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
        /// Values of the custom fields of the organisation, by their names. A change keeps the values that it does not name; a value of null removes one.
        input custom_fields: JsonObject = JsonObject::default(),
        /// What follows from them for the filters of lists.
        hidden custom_terms: CustomTerms = CustomTerms::default(),
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
            custom_fields: JsonObject::default(),
            custom_terms: CustomTerms::default(),
            org_id: org,
            created_at: now,
            updated_at: now,
            version: Version::default(),
        }
    }

    /// The filters that it matches by its custom fields.
    fn custom_terms(&self) -> Vec<Term> {
        self.custom_terms.terms()
    }
}

/// Changes a contact. Custom fields that the body leaves out keep their values.
///
/// # Errors
/// 404 without the contact, [`Error::Invalid`](crate::request::error::Error::Invalid) where the custom fields of the
/// organisation do not allow the values.
pub async fn update(cx: &Context<'_>, id: ContactId, changes: Changes<Contact>) -> Result<Contact> {
    let (Changes(mut changes), now, at) = (changes, cx.now(), Location::body().name("custom_fields"));
    let sent = std::mem::take(&mut changes.custom_fields);
    let read = |fields: &CustomFields| match &sent {
        Patch::Null => fields.no_values(&at),
        Patch::Set(values) => fields.values(Some(values), &at),
        Patch::Absent => Ok(CustomValues::default()),
    };
    let values = match &sent {
        Patch::Absent => CustomValues::default(),
        Patch::Set(values) if values.is_empty() => CustomValues::default(),
        _ => match CustomFields::check(cx, read, std::result::Result::is_ok).await? {
            Ok(values) => values,
            Err(issues) => {
                // A missing contact is reported as not found, even if the values are invalid.
                cx.table.get::<Contact>(id).await.on_missing("contact_id")?;
                return Err(issues.into());
            }
        },
    };
    let change = |contact: &mut Contact| -> Result<()> {
        contact.apply(&changes);
        values.apply(contact);
        contact.touch(now);
        require_room_for_values(contact, &at)?;
        require_room(contact)
    };
    cx.table.try_change(id, cx.new_id(), change).await.on_missing("contact_id")
}
