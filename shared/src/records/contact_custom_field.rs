//! Custom fields of contacts: what an organisation itself keeps about its contacts, each with a name and a type.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::input::bounded::UpTo;
use crate::input::schema::{Schema, Value, extended};
use crate::input::{Input, Issues, Location, Parse, Raw, Source, input_member, member, reject, text_of, words};
use crate::request::error::{Error, Result};
use crate::table::declaration::{Changes, Declared as _};
use crate::table::filters::FilterValue;
use crate::table::quota::{Amounts, Quota};
use crate::table::unique::Unique;
use crate::values::id::ContactCustomFieldId;
use crate::values::text::NonEmpty;
use crate::values::time::{Day, Timestamp};

/// The most characters of a text in a custom field.
const LONGEST_VALUE: usize = 8192;

/// One of the values of a field of type `choice`.
pub type CustomFieldChoice = NonEmpty<64>;

crate::choice! {
    /// The type of the values of a custom field.
    pub enum CustomFieldType {
        /// A text of at most 8,192 characters.
        Text = "string",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// A day, such as 2030-01-31.
        Date = "date",
        /// One of the field's `choices`.
        Choice = "choice",
    }
}

/// The name of a custom field. Two names that differ only in upper and lower case are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CustomFieldName(NonEmpty<256>);

impl CustomFieldName {
    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Parse for CustomFieldName {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        NonEmpty::parse(raw, at, issues).map(Self)
    }
}

impl Schema for CustomFieldName {
    fn schema() -> Value {
        NonEmpty::<256>::schema()
    }
}

impl FilterValue for CustomFieldName {
    type Asked = Self;

    fn text(&self) -> Option<String> {
        Some(self.as_str().to_lowercase())
    }
}

impl Unique for CustomFieldName {
    const TAKEN: &'static str = "name_taken";
}

crate::record! {
    /// A custom field of contacts.
    pub struct ContactCustomField(ContactCustomFieldId): listed("CONTACT_CUSTOM_FIELD", counted ContactCustomField::uses_of_quotas) {
        /// Name of the field: contacts have its value under this name in `custom_fields`. No two fields of an organisation have the same one; upper and lower case make no difference.
        fixed(unique) name: CustomFieldName,
        /// Type of the values.
        fixed field_type: CustomFieldType,
        /// The values that a field of type `choice` allows, at least one. Empty for the other types.
        input choices: UpTo<100, CustomFieldChoice> = UpTo::default(),
        /// True if a caller that creates a contact must give the field a value.
        input required: bool = false,
        /// True if `list-contacts` can be filtered by the field. Three fields of an organisation can be filters. An update can set it to false, and not to true.
        input is_filter: bool = false,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}

impl ContactCustomField {
    fn uses_of_quotas(&self) -> Amounts {
        vec![(Quota::CustomFields, 1), (Quota::CustomFieldFilters, u64::from(self.is_filter))]
    }

    /// Checks that the choices fit the type.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        let distinct: BTreeSet<&str> = self.choices.0.iter().map(|choice| &**choice).collect();
        let message = match (self.field_type == CustomFieldType::Choice, self.choices.0.len()) {
            (true, 0) => "A field of type 'choice' should have at least 1 choice",
            (false, 1..) => "Only a field of type 'choice' has choices",
            (_, count) if distinct.len() < count => "Each choice should be in the list once",
            _ => return Ok(()),
        };
        Err(Error::invalid(Location::body().name("choices").issue("value_error", message)))
    }

    /// Whether few contacts have the same value: then no row set is kept of it and other filters together.
    pub fn has_many_values(&self) -> bool {
        !matches!(self.field_type, CustomFieldType::Boolean | CustomFieldType::Choice)
    }

    /// The value in `raw`, which is of a body or of a query, in the one form in which values are compared. `None` after
    /// an issue.
    pub fn read(&self, raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<String> {
        match self.field_type {
            CustomFieldType::Text => text_of(LONGEST_VALUE, raw, at, issues),
            CustomFieldType::Number => number(raw).or_else(|| reject(issues, at, words::NUMBER)),
            CustomFieldType::Boolean => {
                let source = Some(raw.source()).filter(|source| ["true", "false"].contains(source));
                source.map(str::to_owned).or_else(|| reject(issues, at, words::BOOL))
            }
            CustomFieldType::Date => {
                let text = raw.text(at, issues)?;
                let day = Day::parse(&text).map(|day| day.to_string()).filter(|day| *day == text);
                day.or_else(|| reject(issues, at, words::DATE))
            }
            CustomFieldType::Choice => {
                let text = raw.text(at, issues)?;
                if self.choices.0.iter().any(|choice| **choice == *text) {
                    return Some(text.into_owned());
                }
                let choices: Vec<String> = self.choices.0.iter().map(|choice| format!("'{}'", &**choice)).collect();
                issues.push(at.issue(words::ENUM, format!("Input should be one of {}", choices.join(", "))));
                None
            }
        }
    }
}

/// The number in `raw`, in the same form for the same number: `1.0` and `1e0` are `1`.
fn number(raw: Raw<'_>) -> Option<String> {
    let text = raw.source();
    // The words that stand for no number, such as `inf`, begin with a letter, and a text of a body with a quote.
    let begins_as_one = text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    let number: f64 = text.parse().ok().filter(|number: &f64| begins_as_one && number.is_finite())?;
    // Zero has two signs.
    Some((number + 0.0).to_string())
}

/// The body of an update. It may repeat what cannot be changed.
#[derive(Debug)]
pub struct CustomFieldChanges {
    changes: Changes<ContactCustomField>,
    name: Option<CustomFieldName>,
    field_type: Option<CustomFieldType>,
}

impl Input for CustomFieldChanges {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let changes = Changes::read(source, issues);
        let name = source.optional("name", issues, || None);
        let field_type = source.optional("field_type", issues, || None);
        Some(Self { changes: changes?, name: name?, field_type: field_type? })
    }

    fn schema() -> Value {
        let members = [
            member::<CustomFieldName>("name", false, "The name that the field has: it cannot be changed."),
            member::<CustomFieldType>("field_type", false, "The type that the field has: it cannot be changed."),
        ];
        extended(Changes::<ContactCustomField>::schema(), members.map(input_member).into())
    }
}

impl CustomFieldChanges {
    /// Changes `field` at `now`.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the body changes what stays as it is, or the choices do not fit.
    pub fn apply(&self, field: &mut ContactCustomField, now: Timestamp) -> Result<()> {
        let was_filter = field.is_filter;
        field.apply(&self.changes.0);
        field.touch(now);
        let refused = [
            (
                self.name.as_ref().is_some_and(|name| *name != field.name),
                "name",
                "The name of a field cannot be changed",
            ),
            (
                self.field_type.is_some_and(|field_type| field_type != field.field_type),
                "field_type",
                "The type of a field cannot be changed",
            ),
            (field.is_filter && !was_filter, "is_filter", "A field becomes a filter when it is created, and not later"),
        ];
        let issue = |(_, name, message): (bool, &'static str, &'static str)| {
            Location::body().name(name).issue("value_error", message)
        };
        let issues: Issues = refused.into_iter().filter(|(is_refused, ..)| *is_refused).map(issue).collect();
        if issues.is_empty() { field.check() } else { Err(Error::Invalid(issues)) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(field_type: &str, choices: &[&str]) -> ContactCustomField {
        let id = uuid::Uuid::nil();
        let time = "2026-01-01T00:00:00Z";
        let field = json!({"id": id, "name": "plan", "field_type": field_type, "choices": choices, "created_at": time, "updated_at": time});
        serde_json::from_value(field).unwrap()
    }

    fn read(field_type: &str, raw: Raw<'_>) -> Result<String, &'static str> {
        let mut issues = Issues::new();
        let choices: &[&str] = if field_type == "choice" { &["gold", "silver"] } else { &[] };
        let value = field(field_type, choices).read(raw, &Location::body(), &mut issues);
        value.ok_or_else(|| issues[0].kind)
    }

    #[test]
    fn each_type_accepts_its_values_in_a_body() {
        for (field_type, json, wanted) in [
            ("string", r#""a\tb""#, Ok("a\tb")),
            ("string", r#""""#, Ok("")),
            ("string", "1", Err("string_type")),
            ("string", r#""\ud800""#, Err("string_unicode")),
            ("number", "1", Ok("1")),
            ("number", "1.0", Ok("1")),
            ("number", "10e-1", Ok("1")),
            ("number", "-0", Ok("0")),
            ("number", "0.25", Ok("0.25")),
            ("number", "1e999", Err("float_type")),
            ("number", r#""1""#, Err("float_type")),
            ("number", "true", Err("float_type")),
            ("boolean", "true", Ok("true")),
            ("boolean", "1", Err("bool_type")),
            ("boolean", r#""true""#, Err("bool_type")),
            ("date", r#""2028-02-29""#, Ok("2028-02-29")),
            ("date", r#""2027-02-29""#, Err("date_parsing")),
            ("date", r#""2028-2-9""#, Err("date_parsing")),
            ("date", r#""2028-02-29T00:00:00Z""#, Err("date_parsing")),
            ("date", "20280229", Err("string_type")),
            ("choice", r#""gold""#, Ok("gold")),
            ("choice", r#""Gold""#, Err("enum")),
            ("choice", "[]", Err("string_type")),
        ] {
            assert_eq!(read(field_type, Raw::Json(json)), wanted.map(str::to_owned), "{field_type} {json}");
        }
    }

    #[test]
    fn a_query_has_the_same_values_as_text() {
        for (field_type, text, wanted) in [
            ("string", "gold", Ok("gold")),
            ("number", "1.50", Ok("1.5")),
            ("number", "inf", Err("float_type")),
            ("number", "", Err("float_type")),
            ("boolean", "false", Ok("false")),
            ("boolean", "no", Err("bool_type")),
            ("date", "2030-01-31", Ok("2030-01-31")),
            ("choice", "bronze", Err("enum")),
        ] {
            assert_eq!(read(field_type, Raw::Text(text)), wanted.map(str::to_owned), "{field_type} {text}");
        }
    }

    #[test]
    fn only_a_choice_has_choices_each_once() {
        for (field_type, choices, is_right) in [
            ("choice", &["a", "b"][..], true),
            ("choice", &[], false),
            ("choice", &["a", "a"], false),
            ("string", &[], true),
            ("number", &["1"], false),
        ] {
            assert_eq!(field(field_type, choices).check().is_ok(), is_right, "{field_type} {choices:?}");
        }
    }
}
