//! The fields of a form, and the check of the values that fill them in.
//!
//! A form may have any array as its fields. A field is checked as far as its definition is understood.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::input::{Issues, Location, Parse, Raw, Source, reject, words};
use crate::records::contact_point::{Email, PhoneNumber};
use crate::values::json::{JsonArray, JsonObject};
use crate::values::text::is_web_address;
use crate::values::time::DateOrTime;

/// A type of values that the service checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldType {
    Text,
    Number,
    Integer,
    Boolean,
    Date,
    Email,
    Phone,
    Url,
    Choice,
}

/// A field, as far as its definition is understood.
#[derive(Debug)]
struct FormField {
    name: String,
    /// `None` for a type that the service does not know: every value is accepted.
    field_type: Option<FieldType>,
    is_required: bool,
    /// The values of a choice; `None` if the definition has none.
    choices: Option<Vec<String>>,
}

impl FieldType {
    fn of(word: &str) -> Option<Self> {
        match word.to_lowercase().as_str() {
            "string" | "text" => Some(Self::Text),
            "number" | "float" => Some(Self::Number),
            "integer" | "int" => Some(Self::Integer),
            "boolean" | "bool" => Some(Self::Boolean),
            "date" => Some(Self::Date),
            "email" => Some(Self::Email),
            "phone" | "phone_number" => Some(Self::Phone),
            "url" => Some(Self::Url),
            "choice" | "select" => Some(Self::Choice),
            _ => None,
        }
    }
}

impl FormField {
    /// The field of a definition; `None` if that is no object with a name.
    fn of(definition: &RawValue) -> Option<Self> {
        let definition = Source::object(Raw::Json(definition.get()), &Location::nowhere()).ok()?;
        let name = definition.find("name").and_then(text).filter(|name| !name.is_empty())?;
        let choices = definition.find("choices").or_else(|| definition.find("options")).and_then(choices);
        let field_type = match definition.find("type") {
            Some(word) => text(word).and_then(|word| FieldType::of(&word)),
            None => choices.as_ref().map(|_| FieldType::Choice),
        };
        let is_required = definition.find("required").is_some_and(|required| required.source() == "true");
        Some(Self { name: name.into_owned(), field_type, is_required, choices })
    }

    /// Adds the issues of its value, which is at `at`.
    fn check(&self, value: Option<Raw<'_>>, at: &Location, issues: &mut Issues) {
        let Some(value) = value.filter(|value| !is_nothing(*value)) else {
            if self.is_required {
                issues.push(at.issue(words::MISSING.0, words::MISSING.1));
            }
            return;
        };
        let Some(field_type) = self.field_type else { return };
        // The value is stored as it was sent, so only the issues matter.
        let _checked: Option<()> = match field_type {
            FieldType::Text => value.text(at, issues).map(drop),
            FieldType::Number => f64::parse(value, at, issues).map(drop),
            FieldType::Integer => i64::parse(value, at, issues).map(drop),
            FieldType::Boolean => bool::parse(value, at, issues).map(drop),
            FieldType::Date => DateOrTime::parse(value, at, issues).map(drop),
            FieldType::Email => Email::parse(value, at, issues).map(drop),
            FieldType::Phone => PhoneNumber::parse(value, at, issues).map(drop),
            FieldType::Url => check_url(value, at, issues),
            FieldType::Choice => self.check_choice(value, at, issues),
        };
    }

    fn check_choice(&self, value: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<()> {
        let choices = self.choices.as_ref()?;
        let chosen = word_of(value);
        if chosen.is_some_and(|chosen| choices.contains(&chosen)) {
            return Some(());
        }
        let words: Vec<String> = choices.iter().map(|choice| format!("'{choice}'")).collect();
        issues.push(at.issue(words::ENUM, format!("Input should be one of {}", words.join(", "))));
        None
    }
}

/// The issues of `values`, each at its place in `at`: what is wrong with the value of a field, and each value whose
/// name no field has.
pub fn check(fields: &JsonArray, values: &JsonObject, at: &Location) -> Issues {
    let mut issues = Issues::new();
    let values = match Source::object(Raw::Json(values.as_str()), at) {
        Ok(values) => values,
        Err(issue) => return vec![issue],
    };
    let definitions = Raw::Json(fields.as_str()).as_array().unwrap_or_default();
    let known: Vec<Option<FormField>> = definitions.into_iter().map(FormField::of).collect();
    for field in known.iter().flatten() {
        field.check(values.find(&field.name), &at.name(field.name.clone()), &mut issues);
    }
    // A definition that is not understood may be that of any name.
    if known.iter().all(Option::is_some) {
        let names: BTreeSet<&str> = known.iter().flatten().map(|field| &*field.name).collect();
        for name in values.names().filter(|name| !names.contains(name)) {
            issues.push(at.name(name.to_owned()).issue(words::EXTRA.0, words::EXTRA.1));
        }
    }
    issues
}

/// Whether it is the value of a field that was not filled in.
pub fn is_nothing(value: Raw<'_>) -> bool {
    ["null", "\"\""].contains(&value.source())
}

/// The text of a string.
fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    raw.text(&Location::nowhere(), &mut Issues::new())
}

/// A string, a number or a boolean as text.
pub fn word_of(raw: Raw<'_>) -> Option<String> {
    let is_scalar = !raw.source().starts_with(['"', '{', '[', 'n']);
    text(raw).map(Cow::into_owned).or_else(|| is_scalar.then(|| raw.source().to_owned()))
}

/// The values of a choice: each is a word, or an object with a `value`. `None` if one is neither.
fn choices(raw: Raw<'_>) -> Option<Vec<String>> {
    let choice = |item: &RawValue| {
        let item = Raw::Json(item.get());
        let of_object = || word_of(Source::object(item, &Location::nowhere()).ok()?.find("value")?);
        word_of(item).or_else(of_object)
    };
    raw.as_array()?.into_iter().map(choice).collect()
}

fn check_url(value: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<()> {
    let text = value.text(at, issues)?;
    if is_web_address(&text) { Some(()) } else { reject(issues, at, words::URL) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The kinds of the issues of `values`, each with its name.
    fn issues(fields: &Value, values: &Value) -> Vec<(String, &'static str)> {
        let fields: JsonArray = serde_json::from_value(fields.clone()).unwrap();
        let values: JsonObject = serde_json::from_value(values.clone()).unwrap();
        let issues = check(&fields, &values, &Location::body().name("field_values"));
        issues.iter().map(|issue| (issue.loc.field().unwrap().to_owned(), issue.kind)).collect()
    }

    #[test]
    fn each_type_takes_its_values_and_refuses_others() {
        for (word, taken, refused) in [
            ("string", json!(["x", "1"]), json!([1, true, {}, []])),
            ("TEXT", json!(["x"]), json!([1])),
            ("number", json!([1, 1.5, -2e3, "2.5"]), json!(["x", "inf", {}, true])),
            ("integer", json!([1, 2.0, "3"]), json!([1.5, "x", []])),
            ("boolean", json!([true, "yes", 0]), json!(["perhaps", 2, {}])),
            ("date", json!(["2030-01-31", "2030-01-31T12:00:00Z"]), json!(["31.1.2030", 5])),
            ("email", json!(["ada@example.com"]), json!(["ada", 1])),
            ("phone", json!(["+49 151 2345678"]), json!(["0151", 1])),
            ("url", json!(["https://example.com/a?b"]), json!(["example.com", "ftp://example.com", "javascript:x", 1])),
            ("signature", json!([1, "x", {"any": []}]), json!([])),
        ] {
            let fields = json!([{"name": "a", "type": word}]);
            for value in taken.as_array().unwrap() {
                assert_eq!(issues(&fields, &json!({"a": value})), [], "{word}: {value}");
            }
            for value in refused.as_array().unwrap() {
                assert_eq!(issues(&fields, &json!({"a": value})).len(), 1, "{word}: {value}");
            }
        }
    }

    #[test]
    fn a_choice_is_one_of_its_words_values_or_numbers() {
        for field in [
            json!({"name": "a", "type": "choice", "choices": ["x", 1]}),
            json!({"name": "a", "type": "select", "options": [{"value": "x", "label": "X"}, {"value": 1}]}),
            json!({"name": "a", "options": ["x", 1]}),
        ] {
            for (value, wrong) in [(json!("x"), 0), (json!(1), 0), (json!("X"), 1), (json!(["x"]), 1), (json!(null), 0)]
            {
                assert_eq!(issues(&json!([field]), &json!({"a": value})).len(), wrong, "{field}: {value}");
            }
        }
        let unclear = json!([{"name": "a", "type": "choice", "choices": [{"text": "x"}]}]);
        assert_eq!(issues(&unclear, &json!({"a": "y"})), []);
    }

    #[test]
    fn all_issues_are_found_at_once_and_unknown_names_are_refused() {
        let fields = json!([
            {"name": "when", "type": "date", "required": true},
            {"name": "mail", "type": "email", "required": true},
            {"name": "guests", "type": "integer"},
        ]);
        let found = issues(&fields, &json!({"mail": "", "guests": "two", "when": "soon", "other": 1}));
        let expected = [
            ("when", words::DATE_OR_TIME.0),
            ("mail", words::MISSING.0),
            ("guests", words::INT_TEXT.0),
            ("other", words::EXTRA.0),
        ];
        assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
        assert_eq!(issues(&json!([]), &json!({"a": 1})), [("a".to_owned(), words::EXTRA.0)]);
    }

    #[test]
    fn a_definition_that_is_not_understood_allows_every_name() {
        for other in [json!("mail"), json!({"title": "mail"}), json!({"name": ""}), json!({"name": 1}), json!(null)] {
            let fields = json!([other, {"name": "when", "type": "date"}]);
            assert_eq!(issues(&fields, &json!({"mail": 1})), [], "{other}");
            assert_eq!(issues(&fields, &json!({"mail": 1, "when": 2})).len(), 1, "{other}");
        }
    }
}
