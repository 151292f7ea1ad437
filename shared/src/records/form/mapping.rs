//! The mapping of a form: which values of a captured form go to which fields of the contact.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::json;
use serde_json::value::RawValue;

use crate::input::schema::{Schema, Value};
use crate::input::{Issues, LONGEST, Location, Parse, Raw, Source, reject, words};
use crate::records::contact::Contact;
use crate::records::contact_point::{Email, PhoneNumber};
use crate::records::form::fields::{is_nothing, word_of};
use crate::table::declaration::Declared as _;
use crate::values::json::{self, JsonObject};
use crate::values::text::Name;
use crate::values::time::Timestamp;

/// The most fields of a mapping.
const MOST: usize = 100;
/// What stands before the name of an attribute.
const ATTRIBUTES: &str = "attributes.";

/// A field of a contact that a mapping may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContactField {
    /// `first_name`
    FirstName,
    /// `last_name`
    LastName,
    /// `email`
    Email,
    /// `phone_number`
    PhoneNumber,
    /// `attributes.<name>`
    Attribute(String),
}

impl ContactField {
    /// The fields that have a word of their own.
    const NAMED: [(&'static str, Self); 4] = [
        ("first_name", Self::FirstName),
        ("last_name", Self::LastName),
        ("email", Self::Email),
        ("phone_number", Self::PhoneNumber),
    ];

    /// The field that `text` names.
    fn of(text: &str) -> Option<Self> {
        let attribute = text.strip_prefix(ATTRIBUTES).filter(|name| !name.is_empty() && name.len() <= Name::MOST);
        let named = || Self::NAMED.into_iter().find(|(word, _)| *word == text).map(|(_, field)| field);
        attribute.map(|name| Self::Attribute(name.to_owned())).or_else(named)
    }
}

impl fmt::Display for ContactField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(name) => write!(formatter, "{ATTRIBUTES}{name}"),
            _ => Self::NAMED
                .iter()
                .find(|(_, field)| field == self)
                .map_or(Ok(()), |(word, _)| formatter.write_str(word)),
        }
    }
}

impl Serialize for ContactField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContactField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::of(&text).ok_or_else(|| de::Error::custom("no field of a contact"))
    }
}

impl Parse for ContactField {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let field = Self::of(&String::parse(raw, at, issues)?);
        if field.is_none() {
            let named = Self::NAMED.map(|(word, _)| format!("'{word}'")).join(", ");
            issues.push(at.issue(words::ENUM, format!("Input should be {named} or '{ATTRIBUTES}' and a name")));
        }
        field
    }
}

/// Which values of a captured form go to which fields of the contact: the name in the form, and the field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContactMapping(BTreeMap<String, ContactField>);

impl Parse for ContactMapping {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        if raw.as_object().is_none() {
            return reject(issues, at, words::DICT);
        }
        let source = Source::object(raw, at).map_err(|issue| issues.push(issue)).ok()?;
        let (before, mut fields) = (issues.len(), BTreeMap::new());
        for name in source.names() {
            let at = at.name(name.to_owned());
            // The table refuses an empty name.
            if name.is_empty() || name.len() > Name::MOST {
                let message = format!("Names should have 1 to {} bytes", Name::MOST);
                issues.push(at.issue("value_error", message));
            } else if let Some(field) = source.find(name).and_then(|raw| ContactField::parse(raw, &at, issues)) {
                fields.insert(name.to_owned(), field);
            }
        }
        if fields.len() > MOST {
            let message = format!("Dictionary should have at most {MOST} items, not {}", fields.len());
            issues.push(at.issue(words::TOO_LONG, message));
        }
        (issues.len() == before).then_some(Self(fields))
    }
}

impl Schema for ContactMapping {
    fn schema() -> Value {
        let named = ContactField::NAMED.map(|(word, _)| word).join("|");
        let field = json!({"type": "string", "pattern": format!("^({named}|attributes\\..{{1,{}}})$", Name::MOST)});
        json!({"type": "object", "additionalProperties": field, "maxProperties": MOST})
    }
}

crate::choice! {
    /// Why a value was not written to the contact.
    pub enum NotWritten {
        /// Another contact has the e-mail address.
        EmailTaken = "email_taken",
        /// Another contact has the telephone number.
        PhoneTaken = "phone_taken",
        /// The field of the contact does not take such a value.
        NotValid = "not_valid",
        /// The contact has no room for the value.
        TooLong = "too_long",
    }
}

crate::object! {
    /// A value that was not written to the contact.
    pub struct ContactIssue {
        /// The name of the value in the form.
        pub field: String,
        /// The field of the contact.
        pub contact_field: String,
        /// Why it was not written.
        pub reason: NotWritten,
    }
}

impl ContactMapping {
    /// Whether it maps nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `contact` with the mapped `values`, and the values that it does not take. `taken` has the fields whose value
    /// another contact has. An empty value leaves its field as it is.
    pub fn apply(
        &self,
        values: &JsonObject,
        contact: &Contact,
        taken: &[&str],
        now: Timestamp,
    ) -> (Contact, Vec<ContactIssue>) {
        let (mut is, mut refused) = (contact.clone(), Vec::new());
        let Ok(values) = Source::object(Raw::Json(values.as_str()), &Location::nowhere()) else {
            return (is, refused);
        };
        for (name, field) in &self.0 {
            let Some(value) = values.find(name).filter(|value| !is_nothing(*value)) else { continue };
            let contact_field = field.to_string();
            let written = match field {
                ContactField::Email if taken.contains(&&*contact_field) => Err(NotWritten::EmailTaken),
                ContactField::PhoneNumber if taken.contains(&&*contact_field) => Err(NotWritten::PhoneTaken),
                _ => field.set(&mut is, value),
            };
            if let Err(reason) = written {
                refused.push(ContactIssue { field: name.clone(), contact_field, reason });
            }
        }
        if is != *contact {
            is.touch(now);
        }
        (is, refused)
    }
}

impl ContactField {
    /// Gives this field of `contact` a value.
    fn set(&self, contact: &mut Contact, value: Raw<'_>) -> Result<(), NotWritten> {
        let text = || {
            let text = word_of(value).ok_or(NotWritten::NotValid)?;
            if text.chars().count() > LONGEST { Err(NotWritten::TooLong) } else { Ok(text) }
        };
        match self {
            Self::FirstName => contact.first_name = Some(text()?),
            Self::LastName => contact.last_name = Some(text()?),
            Self::Email => contact.email = Some(Email::new(&text()?).ok_or(NotWritten::NotValid)?),
            Self::PhoneNumber => {
                contact.phone_number = Some(PhoneNumber::new(&text()?).ok_or(NotWritten::NotValid)?);
            }
            Self::Attribute(name) => {
                let value = serde_json::from_str::<&RawValue>(value.source()).map_err(|_| NotWritten::NotValid)?;
                let attributes = contact.attributes.with(name, &value).ok_or(NotWritten::NotValid)?;
                if attributes.len() > json::MOST {
                    return Err(NotWritten::TooLong);
                }
                contact.attributes = attributes;
            }
        }
        Ok(())
    }
}
