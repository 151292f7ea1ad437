//! The values of custom fields: writes of contacts check them against the fields of the organisation, and lists of contacts
//! are filtered by them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::Contact;
use crate::input::{Issues, Location, Raw, words};
use crate::records::contact_custom_field::ContactCustomField;
use crate::request::context::Context;
use crate::table::TableError;
use crate::table::filters::Term;
use crate::table::quota::Quota;
use crate::values::hash::{hex, sha256};
use crate::values::id::ContactCustomFieldId;
use crate::values::json::JsonObject;

/// Seconds for which a process knows the custom fields of an organisation.
pub const KNOWN: i64 = 30;
/// The most bytes of all values of a contact: as many as those of other free-form JSON.
const MOST_BYTES: usize = 32 * 1024;
/// The query parameter that asks for values, and the name under which row sets have them.
pub(super) const CUSTOM_FIELD: &str = "custom_field";

/// The custom fields of an organisation.
#[derive(Debug)]
pub struct CustomFields(Arc<Vec<ContactCustomField>>);

impl CustomFields {
    /// What `read` makes of the fields that this process knows. If `is_right` denies the result, the fields are read again
    /// first: another process may have changed them, and a refusal should be right.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn check<T>(
        cx: &Context<'_>,
        read: impl Fn(&Self) -> T,
        is_right: impl Fn(&T) -> bool,
    ) -> Result<T, TableError> {
        let result = read(&Self::known(cx).await?);
        if is_right(&result) {
            return Ok(result);
        }
        cx.table.forget::<ContactCustomField>(());
        Ok(read(&Self::known(cx).await?))
    }

    /// The fields as they were a moment ago.
    async fn known(cx: &Context<'_>) -> Result<Self, TableError> {
        let most = usize::try_from(Quota::CustomFields.default_limit()).unwrap_or(usize::MAX);
        // With an idempotency key the time of the request is that of its first attempt.
        let now = cx.service.clock.now();
        Ok(Self(cx.table.remembered((), (most, KNOWN), now).await?))
    }

    fn named(&self, name: &str) -> Option<&ContactCustomField> {
        self.0.iter().find(|field| field.name.as_str() == name)
    }

    /// The values in `sent`, which is at `at`.
    ///
    /// # Errors
    /// All issues.
    pub fn values(&self, sent: Option<&JsonObject>, at: &Location) -> Result<CustomValues, Issues> {
        let sent = sent.map_or_else(|| Some(BTreeMap::new()), JsonObject::read::<BTreeMap<String, Box<RawValue>>>);
        let sent = sent.ok_or_else(|| vec![at.issue(words::UNICODE.0, words::UNICODE.1)])?;
        let (mut values, mut issues) = (BTreeMap::new(), Issues::new());
        for (name, json) in sent {
            let place = at.name(name.clone());
            let is_removed = json.get() == "null";
            match self.named(&name) {
                Some(field) if is_removed && field.required => {
                    issues.push(place.issue(words::MISSING.0, words::MISSING.1));
                }
                // A value may be left whose field no longer exists.
                _ if is_removed => {
                    values.insert(name, None);
                }
                Some(field) => {
                    if let Some(value) = field.read(Raw::Json(json.get()), &place, &mut issues) {
                        let term = field.is_filter.then(|| CustomTerm::of(field, &value));
                        values.insert(name, Some(CustomValue { json, term }));
                    }
                }
                None => issues.push(place.issue(words::EXTRA.0, "No custom field of contacts has this name")),
            }
        }
        let missing = self.0.iter().filter(|field| field.required && !values.contains_key(field.name.as_str()));
        let missing = missing.map(|field| at.name(field.name.as_str().to_owned()));
        let missing = missing.map(|place| place.issue(words::MISSING.0, words::MISSING.1)).collect();
        if issues.is_empty() { Ok(CustomValues { values, replaces: false, missing }) } else { Err(issues) }
    }

    /// The removal of all values, which a body asks for by null at `at`.
    ///
    /// # Errors
    /// An issue for each required field.
    pub fn no_values(&self, at: &Location) -> Result<CustomValues, Issues> {
        let none = CustomValues { replaces: true, ..self.values(None, at)? };
        none.complete()?;
        Ok(none)
    }

    /// The terms of rows that have these values, of fields with these names. The issue is at `at`.
    ///
    /// # Errors
    /// An issue for each value that no row can have.
    pub(super) fn terms(&self, asked: &[(String, String)], at: &Location) -> Result<Vec<Term>, Issues> {
        let (mut terms, mut issues) = (Vec::new(), Issues::new());
        for (name, text) in asked {
            match self.named(name).filter(|field| field.is_filter) {
                Some(field) => {
                    let value = field.read(Raw::Text(text), at, &mut issues);
                    terms.extend(value.map(|value| CustomTerm::of(field, &value)));
                }
                None => issues.push(at.issue("value_error", "Only a custom field with 'is_filter' filters the list")),
            }
        }
        if !issues.is_empty() {
            return Err(issues);
        }
        Ok(CustomTerms(terms).arranged().terms())
    }
}

/// A value by which lists are filtered, as the row of its contact has it. It stays as it was written: a later change of the
/// field changes no row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomTerm {
    /// The field.
    field: ContactCustomFieldId,
    /// The name of the field.
    name: String,
    /// A hash of the value: the names of row sets have it, whose length is limited.
    value: String,
    /// Whether few rows have the same value.
    sparse: bool,
}

impl CustomTerm {
    fn of(field: &ContactCustomField, value: &str) -> Self {
        Self {
            field: field.id,
            name: field.name.as_str().to_owned(),
            value: hex(&sha256([value.as_bytes()])[..16]),
            sparse: field.has_many_values(),
        }
    }

    fn term(&self) -> Term {
        let term = Term::new(CUSTOM_FIELD, format!("{}:{}", self.field, self.value));
        if self.sparse { term.sparse() } else { term }
    }
}

/// The values by which the list finds a contact. Most contacts have none, so an empty list is not stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct CustomTerms(Vec<CustomTerm>);

impl Serialize for CustomTerms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Some(&self.0).filter(|terms| !terms.is_empty()).serialize(serializer)
    }
}

impl CustomTerms {
    /// The terms of a row.
    pub(super) fn terms(&self) -> Vec<Term> {
        self.0.iter().map(CustomTerm::term).collect()
    }

    /// Each of them once, in the order that the name of a row set has.
    fn arranged(mut self) -> Self {
        self.0.sort_by(|a, b| (a.field, &a.value).cmp(&(b.field, &b.value)));
        self.0.dedup();
        self
    }
}

/// Checked values of custom fields, which a request sends.
#[derive(Debug, Clone, Default)]
pub struct CustomValues {
    /// By the names of their fields. `None` removes a value.
    values: BTreeMap<String, Option<CustomValue>>,
    /// Whether all other values are removed.
    replaces: bool,
    /// The issues of the required fields that have no value here.
    missing: Issues,
}

/// A value that is set.
#[derive(Debug, Clone)]
struct CustomValue {
    json: Box<RawValue>,
    term: Option<CustomTerm>,
}

impl CustomValues {
    /// Requires a value for each required field, as a new contact needs them.
    ///
    /// # Errors
    /// An issue for each missing one.
    pub fn complete(&self) -> Result<(), Issues> {
        if self.missing.is_empty() { Ok(()) } else { Err(self.missing.clone()) }
    }

    /// Gives `contact` these values. It keeps its others.
    pub fn apply(&self, contact: &mut Contact) {
        if self.replaces {
            contact.custom_fields = JsonObject::default();
            contact.custom_terms = CustomTerms::default();
        }
        if self.values.is_empty() {
            return;
        }
        let mut values: BTreeMap<String, Box<RawValue>> = contact.custom_fields.read().unwrap_or_default();
        let mut terms = std::mem::take(&mut contact.custom_terms);
        terms.0.retain(|term| !self.values.contains_key(&term.name));
        for (name, value) in &self.values {
            match value {
                Some(value) => {
                    values.insert(name.clone(), value.json.clone());
                    terms.0.extend(value.term.clone());
                }
                None => {
                    values.remove(name);
                }
            }
        }
        contact.custom_terms = terms.arranged();
        if let Some(values) = JsonObject::of(&values) {
            contact.custom_fields = values;
        }
    }
}

/// Refuses a contact whose values take too much room. The issue is at `at`.
///
/// # Errors
/// One issue.
pub fn require_room_for_values(contact: &Contact, at: &Location) -> Result<(), Issues> {
    let bytes = contact.custom_fields.len();
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let message = format!("All custom fields of a contact should have at most {MOST_BYTES} bytes, not {bytes}");
    Err(vec![at.issue(words::TOO_LONG, message)])
}
