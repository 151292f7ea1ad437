//! Upserts of contacts. A contact is found by its e-mail address, else by its telephone number; else it is created.

use serde::Serialize;
use uuid::Uuid;

use super::Contact;
use super::custom::{CustomFields, CustomValues, require_room_for_values};
use crate::input::schema::{Schema, Value};
use crate::input::{Issues, Location, Parse, Raw, words};
use crate::records::contact_point::{Email, PhoneNumber};
use crate::request::context::Context;
use crate::request::error::{Error, Missing as _, Result};
use crate::request::response::Upserted;
use crate::table::declaration::Declared as _;
use crate::table::error::NotChanged;
use crate::table::filters::Term;
use crate::table::rows::NewRow;
use crate::table::{Table, TableError};
use crate::values::id::{ContactId, OrgId, ordinal, with_ordinal};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::input! {
    /// A contact, as an upsert sends it in the body. What is absent or null stays as it is.
    pub struct ContactFields {
        /// First name of the contact.
        pub first_name: Option<String> = None,
        /// Last name of the contact.
        pub last_name: Option<String> = None,
        /// E-mail address. No two contacts of an organisation have the same one; upper and lower case make no difference.
        pub email: Option<Email> = None,
        /// Telephone number with its country code, answered as `+` and digits. No two contacts of an organisation have the same one.
        pub phone_number: Option<PhoneNumber> = None,
        /// Free-form.
        pub attributes: Option<JsonObject> = None,
        /// Values of the custom fields of the organisation, by their names. A contact keeps the values that are left out; a value of null removes one.
        pub custom_fields: Option<JsonObject> = None,
        /// The organisation of the API key. It may be left out.
        pub org_id: Option<OrgId> = None,
    }
}

/// A value of a query; an empty text counts as absent.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Filled<T>(Option<T>);

impl<T: Parse> Parse for Filled<T> {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        if let Raw::Text("") = raw {
            Some(Self(None))
        } else {
            T::parse(raw, at, issues).map(|value| Self(Some(value)))
        }
    }
}

impl<T: Schema> Schema for Filled<T> {
    fn schema() -> Value {
        Option::<T>::schema()
    }
}

crate::input! {
    /// The fields that an upsert may send in the query.
    pub struct ContactQuery {
        /// First name of the contact.
        pub first_name: Option<String> = None,
        /// Last name of the contact.
        pub last_name: Option<String> = None,
        /// E-mail address. No two contacts of an organisation have the same one; upper and lower case make no difference.
        pub email: Filled<Email> = Filled(None),
        /// Telephone number with its country code, answered as `+` and digits. No two contacts of an organisation have the same one.
        pub phone_number: Filled<PhoneNumber> = Filled(None),
    }
}

impl ContactQuery {
    /// The fields of the query and of the body. If both have a field, the one of the body counts.
    pub fn with(self, body: Option<ContactFields>) -> ContactFields {
        let Self { first_name, last_name, email: Filled(email), phone_number: Filled(phone_number) } = self;
        let (attributes, custom_fields, org_id) = (None, None, None);
        let query = ContactFields { first_name, last_name, email, phone_number, attributes, custom_fields, org_id };
        let Some(body) = body else { return query };
        ContactFields {
            first_name: body.first_name.or(query.first_name),
            last_name: body.last_name.or(query.last_name),
            email: body.email.or(query.email),
            phone_number: body.phone_number.or(query.phone_number),
            ..body
        }
    }
}

impl ContactFields {
    /// These fields, after a check: the organisation must be that of the caller, an e-mail address or a telephone number
    /// must be present, and the custom fields must allow their values.
    ///
    /// # Errors
    /// [`Error::Forbidden`] at another organisation, else [`Error::Invalid`] with all issues.
    pub async fn checked(self, cx: &Context<'_>) -> Result<WantedContact> {
        let at = Location::body();
        let read = |fields: &CustomFields| self.values(fields, &at);
        let values = CustomFields::check(cx, read, std::result::Result::is_ok).await?;
        self.wanted(cx.tenant.org(), at, values)
    }

    /// The values of its custom fields. It is at `place`.
    pub(super) fn values(&self, fields: &CustomFields, place: &Location) -> Result<CustomValues, Issues> {
        fields.values(self.custom_fields.as_ref(), &place.name(CUSTOM_FIELDS))
    }

    /// The same check with these values of the custom fields. Its issues are at `place`.
    pub(super) fn wanted(
        self,
        org: OrgId,
        place: Location,
        values: Result<CustomValues, Issues>,
    ) -> Result<WantedContact> {
        match (self.check(org, &place), values) {
            (Ok(()), Ok(values)) => Ok(WantedContact { fields: self, values, place }),
            (Err(Error::Invalid(mut issues)), Err(others)) => {
                issues.extend(others);
                Err(Error::Invalid(issues))
            }
            (Err(error), _) => Err(error),
            (Ok(()), Err(issues)) => Err(Error::Invalid(issues)),
        }
    }

    fn check(&self, org: OrgId, place: &Location) -> Result<()> {
        if self.org_id.is_some_and(|named| named != org) {
            return Err(Error::other_organisation(place.name("org_id")));
        }
        if self.email.is_none() && self.phone_number.is_none() {
            return Err(Error::invalid(place.name("email").issue(words::MISSING.0, words::MISSING.1)));
        }
        Ok(())
    }
}

/// The member of a body that has the values of custom fields.
const CUSTOM_FIELDS: &str = "custom_fields";

/// A contact that is to be upserted, after its check.
#[derive(Debug)]
pub struct WantedContact {
    fields: ContactFields,
    values: CustomValues,
    /// Where it is in the request.
    place: Location,
}

impl WantedContact {
    /// The values by which the contact is found: its e-mail address, then its telephone number.
    pub(super) fn terms(&self) -> Vec<Term> {
        let ContactFields { email, phone_number, .. } = &self.fields;
        Term::of("email", email).into_iter().chain(Term::of("phone_number", phone_number)).collect()
    }

    /// Whether `contact` has one of these values.
    fn find(&self, contact: &Contact) -> bool {
        let has = contact.unique();
        self.terms().iter().any(|asked| has.iter().any(|value| value.term == *asked))
    }

    /// Requires what a new contact needs.
    ///
    /// # Errors
    /// An issue for each required custom field without a value.
    pub(super) fn complete(&self) -> Result<(), Issues> {
        self.values.complete()
    }

    /// A new contact with these fields.
    fn contact(&self, id: ContactId, org: OrgId, now: Timestamp) -> Contact {
        let mut contact = Contact::unknown(id, org, now);
        self.apply(&mut contact);
        contact
    }

    /// Gives `contact` these fields, and returns whether that changed it.
    fn apply(&self, contact: &mut Contact) -> bool {
        let was = contact.clone();
        let ContactFields { first_name, last_name, email, phone_number, attributes, custom_fields: _, org_id: _ } =
            &self.fields;
        set(&mut contact.first_name, first_name.as_ref());
        set(&mut contact.last_name, last_name.as_ref());
        set(&mut contact.email, email.as_ref());
        set(&mut contact.phone_number, phone_number.as_ref());
        if let Some(attributes) = attributes {
            contact.attributes = attributes.clone();
        }
        self.values.apply(contact);
        *contact != was
    }
}

/// Gives `field` a value, where there is one.
fn set<T: Clone>(field: &mut Option<T>, value: Option<&T>) {
    if let Some(value) = value {
        *field = Some(value.clone());
    }
}

/// One upsert of a request, which may be executed more than once.
#[derive(Debug, Clone, Copy)]
pub struct Upsert {
    /// The id of a contact that it creates.
    id: Uuid,
    /// The mark by which a repeat finds the creation.
    origin: Option<Uuid>,
    /// The mark by which a repeat finds the change.
    change: Uuid,
    org: OrgId,
    now: Timestamp,
}

impl Upsert {
    /// The next upsert of the request.
    pub fn of(cx: &Context<'_>) -> Self {
        let (id, change) = (cx.new_id(), cx.new_id());
        Self { id, origin: cx.origin(id), change, org: cx.tenant.org(), now: cx.now() }
    }

    /// The id of a contact that it creates, before the contact has its place in the list.
    pub(super) const fn id(&self) -> Uuid {
        self.id
    }

    /// A new contact with these fields.
    pub(super) fn contact(&self, wanted: &WantedContact, id: ContactId) -> Contact {
        wanted.contact(id, self.org, self.now)
    }
}

/// Why a contact that was found is not written.
enum ContactUpdateRefused {
    /// The contact has these fields already.
    Equal(Box<Contact>),
    /// It would be invalid.
    Invalid(Issues),
    /// Another writer gave it another e-mail address and telephone number.
    Moved,
}

/// Finds the contact with this e-mail address, else with this telephone number, and changes it; creates one if there is
/// none.
///
/// # Errors
/// [`Error::Conflict`] where they belong to two contacts, [`Error::Invalid`] where a custom field does not allow it.
pub async fn upsert(table: &Table, wanted: &WantedContact, upsert: &Upsert) -> Result<Upserted<Contact>> {
    let mut round = table.store.backoff();
    loop {
        let found = table.holders::<Contact>((), &wanted.terms()).await?;
        let mut ids = found.iter().map(|(_, id)| *id);
        let upserted = match (ids.next(), ids.next()) {
            (Some(first), Some(second)) if first != second => return Err(ambiguous()),
            (Some(id), _) => update_found(table, wanted, upsert, ContactId(id)).await,
            (None, _) => {
                wanted.complete()?;
                insert(table, wanted, upsert).await.map(Upserted::Created).map_err(NotChanged::Failed)
            }
        };
        match upserted {
            // In the meantime, another writer has created, changed or removed a contact with this address or number.
            Err(NotChanged::Failed(TableError::Missing | TableError::Taken { .. })) => {
                round.again("the contact").await?;
            }
            result => return result.map_err(|error| error.or(Error::from)),
        }
    }
}

async fn insert(table: &Table, wanted: &WantedContact, upsert: &Upsert) -> Result<Contact, TableError> {
    let row = NewRow { of: (), id: upsert.id, origin: upsert.origin, now: upsert.now };
    table.insert(row, |id| upsert.contact(wanted, id)).await
}

/// Changes a contact that was found.
///
/// # Errors
/// [`TableError::Missing`] where the contact is gone, or has other values by now: the change would overwrite them. Issues
/// where it would be invalid.
pub(super) async fn update_found(
    table: &Table,
    wanted: &WantedContact,
    upsert: &Upsert,
    id: ContactId,
) -> Result<Upserted<Contact>, NotChanged<Issues>> {
    if with_ordinal(upsert.id, ordinal(id.0)) == id.0 {
        // An earlier attempt of this request has created it, or a call whose answer was lost.
        return Ok(Upserted::Created(table.get(id).await?));
    }
    let change = |contact: &mut Contact| {
        if !wanted.find(contact) {
            return Err(ContactUpdateRefused::Moved);
        }
        // A contact that stays the same is not written.
        if !wanted.apply(contact) {
            return Err(ContactUpdateRefused::Equal(Box::new(contact.clone())));
        }
        require_room_for_values(contact, &wanted.place.name(CUSTOM_FIELDS)).map_err(ContactUpdateRefused::Invalid)?;
        contact.updated_at = upsert.now;
        Ok(())
    };
    match table.try_change(id, upsert.change, change).await {
        Ok(contact) => Ok(Upserted::Updated(contact)),
        Err(NotChanged::Refused(ContactUpdateRefused::Equal(contact))) => Ok(Upserted::Updated(*contact)),
        Err(NotChanged::Refused(ContactUpdateRefused::Moved)) => Err(NotChanged::Failed(TableError::Missing)),
        Err(NotChanged::Refused(ContactUpdateRefused::Invalid(issues))) => Err(NotChanged::Refused(issues)),
        Err(NotChanged::Failed(error)) => Err(NotChanged::Failed(error)),
    }
}

fn ambiguous() -> Error {
    Error::Conflict {
        at: Location::body().name("phone_number"),
        kind: "ambiguous_contact",
        message: "E-mail address and telephone number belong to two contacts",
    }
}
