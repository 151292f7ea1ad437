//! The fields of a form: an input for each member of a schema, and the members of a request from what was put in.

use maud::{Markup, html};
use serde_json::{Map, Value};
use shared::input::schema::capitalised;

use super::described::{self, resolved};
use super::markup::pretty;
use crate::names::NAMES;

/// A text that may be longer than this gets several lines.
const LONG: u64 = 8192;

/// A member of a schema.
#[derive(Debug, Clone)]
pub struct InputField {
    /// Its name.
    pub name: String,
    /// Whether a request must have it.
    pub required: bool,
    /// What it is for.
    about: String,
    /// The value that it gets where a request leaves it out.
    default: Value,
    /// How it is put in.
    pub input: FieldInput,
}

/// How a value is put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldInput {
    /// On one line.
    Text,
    /// A point in time.
    Time,
    /// A text that may be long.
    Lines,
    /// A whole number, or any number.
    Number,
    /// Yes or no.
    Checkbox,
    /// One of several words.
    Choice(Vec<String>),
    /// An id.
    Id,
    /// A list or an object, as JSON.
    Json,
}

impl InputField {
    /// The member `name` of a schema.
    pub fn of(name: &str, required: bool, schema: &Value) -> Self {
        let schema = resolved(schema);
        let text = |name: &str| schema[name].as_str().unwrap_or_default();
        let words =
            |list: &Value| list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let input = match (text("type"), text("format")) {
            _ if schema["enum"].is_array() => FieldInput::Choice(words(&schema["enum"])),
            ("boolean", _) => FieldInput::Checkbox,
            ("integer" | "number", _) => FieldInput::Number,
            ("string", "uuid") => FieldInput::Id,
            ("string", "date-time") => FieldInput::Time,
            ("string", _) if schema["maxLength"].as_u64().is_some_and(|most| most > LONG) => FieldInput::Lines,
            ("string", _) => FieldInput::Text,
            _ => FieldInput::Json,
        };
        let (about, default) = (text("description").to_owned(), schema["default"].clone());
        Self { name: name.to_owned(), required, about, default, input }
    }

    /// A parameter of a query, as the document has it.
    pub fn of_parameter(parameter: &Value) -> Self {
        let mut field = Self::of(
            parameter["name"].as_str().unwrap_or_default(),
            parameter["required"] == true,
            &parameter["schema"],
        );
        parameter["description"].as_str().unwrap_or_default().clone_into(&mut field.about);
        if field.input == FieldInput::Json {
            // An address has no JSON in it.
            field.input = FieldInput::Text;
        }
        field
    }

    /// Its place among the fields of a form and the columns of a table.
    pub fn rank(&self) -> (usize, bool) {
        let place = match (&self.input, self.name.as_str()) {
            (_, "first_name" | "last_name") => 0,
            (FieldInput::Text | FieldInput::Lines, name) if NAMES.contains(&name) => 0,
            (FieldInput::Choice(_), _) => 1,
            (FieldInput::Id, "id" | "org_id") => 8,
            (FieldInput::Id, _) => 2,
            (FieldInput::Text | FieldInput::Number, _) => 3,
            (FieldInput::Checkbox, _) => 4,
            (FieldInput::Lines, _) => 5,
            (FieldInput::Time, _) => 6,
            (FieldInput::Json, _) => 7,
        };
        (place, !self.required)
    }

    /// Whether its words are the states of a record.
    pub fn is_state(&self) -> bool {
        matches!(self.input, FieldInput::Choice(_))
            && ["status", "state", "outcome"].iter().any(|end| self.name.ends_with(end))
    }

    /// Whether a column of a table can show it.
    pub fn fits_a_column(&self) -> bool {
        // The first column has the name.
        let shown = ["id", "org_id", "name", "first_name", "last_name"];
        !shown.contains(&self.name.as_str()) && self.input != FieldInput::Json
    }

    /// The value that a form gives as text, as the member of a body. What is no JSON or no number stays text: the API says
    /// what is wrong with it.
    fn value(&self, given: Value) -> Value {
        let Value::String(text) = given else { return given };
        match &self.input {
            FieldInput::Json | FieldInput::Number => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            FieldInput::Checkbox => Value::Bool(["true", "on"].contains(&text.as_str())),
            _ => Value::String(text),
        }
    }

    /// The label and the input of the field, in the form `form`. `stored` is the value of a record that is changed, and
    /// `choices` are the ids and names of the records that an id may name.
    pub fn shown(&self, form: &str, stored: Option<&Value>, choices: &[(String, String)]) -> Markup {
        let id = format!("{form}-{}", self.name);
        let (note, issue) = (format!("{id}-about"), format!("{id}-issue"));
        let value = stored.unwrap_or(&self.default);
        let required = self.required && stored.is_none();
        html! {
            div.field {
                label for=(id) { (words(&self.name)) @if required { span.quiet { " · required" } } }
                @match &self.input {
                    FieldInput::Checkbox => input id=(id) name=(self.name) type="checkbox" aria-describedby=(note) checked[*value == true];,
                    FieldInput::Choice(words) => (select(&id, &self.name, &note, required, words.iter().map(|word| (word.as_str(), word.as_str())), value)),
                    FieldInput::Id if !choices.is_empty() => {
                        (select(&id, &self.name, &note, required, choices.iter().map(|(id, name)| (id.as_str(), name.as_str())), value))
                    }
                    FieldInput::Json => {
                        textarea id=(id) name=(self.name) rows="3" spellcheck="false" aria-describedby=(note) data-json required[required] {
                            @if !value.is_null() { (pretty(value)) }
                        }
                    }
                    FieldInput::Lines => textarea id=(id) name=(self.name) rows="3" aria-describedby=(note) required[required] { (text_of(value)) },
                    FieldInput::Number => input id=(id) name=(self.name) type="number" step="any" aria-describedby=(note) required[required] value=(text_of(value));,
                    FieldInput::Id | FieldInput::Text | FieldInput::Time => {
                        input id=(id) name=(self.name) type="text" aria-describedby=(note) required[required] value=(text_of(value))
                            placeholder=[(self.input == FieldInput::Time).then_some("2026-01-31T09:00:00Z")];
                    }
                }
                small.about id=(note) { (prose(&self.about)) }
                small.issue.bad id=(issue) role="alert" {}
            }
        }
    }

    /// The same without a description, for a filter.
    pub fn filter(&self, asked: &str, choices: &[(String, String)]) -> Markup {
        let id = format!("filter-{}", self.name);
        let value = Value::String(asked.to_owned());
        html! {
            div.field {
                label for=(id) { (words(&self.name)) }
                @match &self.input {
                    FieldInput::Choice(words) => (select(&id, &self.name, "", false, words.iter().map(|word| (word.as_str(), word.as_str())), &value)),
                    FieldInput::Checkbox => (select(&id, &self.name, "", false, [("true", "yes"), ("false", "no")].into_iter(), &value)),
                    FieldInput::Id if !choices.is_empty() => {
                        (select(&id, &self.name, "", false, choices.iter().map(|(id, name)| (id.as_str(), name.as_str())), &value))
                    }
                    _ => input id=(id) name=(self.name) type="text" value=(asked);,
                }
            }
        }
    }
}

/// A choice; the first entry is to choose nothing, unless one must be chosen.
fn select<'a>(
    id: &str,
    name: &str,
    note: &str,
    required: bool,
    choices: impl Iterator<Item = (&'a str, &'a str)>,
    value: &Value,
) -> Markup {
    let choices: Vec<_> = choices.collect();
    html! {
        select id=(id) name=(name) aria-describedby=[(!note.is_empty()).then_some(note)] {
            @if !required { option value="" { "–" } }
            @for (choice, shown) in &choices { option value=(choice) selected[value == choice] { (shown) } }
            // An older record may be none of the newest ones that can be chosen.
            @if let Some(other) = value.as_str().filter(|value| !value.is_empty() && !choices.iter().any(|choice| choice.0 == *value)) {
                option value=(other) selected { (other) }
            }
        }
    }
}

/// The body of a request of `operation`, from what its form has sent.
pub fn body(operation: &described::PageOperation, given: Map<String, Value>) -> Map<String, Value> {
    let field = |name: &str| operation.body.iter().find(|field| field.name == name);
    let member = |(name, value): (String, Value)| {
        let value = match field(&name) {
            Some(field) => field.value(value),
            None => value,
        };
        (name, value)
    };
    given.into_iter().map(member).collect()
}

/// A text of the document, whose code stands between backticks.
pub fn prose(text: &str) -> Markup {
    html! { @for (place, part) in text.split('`').enumerate() { @if place % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// A name of the API as words.
pub fn words(name: &str) -> String {
    let name = name.strip_suffix("_id").filter(|name| !name.is_empty()).unwrap_or(name);
    capitalised(&name.replace(['_', '-'], " "))
}

/// A value in an input of one line.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
