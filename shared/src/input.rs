//! Reads path, query and body as pydantic 2 does in lax mode: it reports all issues at once, with pydantic's messages.
//!
//! [`Parse`] reads one value, [`Input`] a set of named ones; [`input!`](macro@crate::input) declares a set once and
//! derives the struct, the reader and the JSON schema. The messages themselves are the constants of [`words`].

pub mod bounded;
pub mod each;
pub mod form;
mod issue;
mod object;
mod parse;
pub mod schema;
pub mod words;

use std::borrow::Cow;

use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::input::form::{FormBody, FormPart};
use crate::input::schema::{MOST, Member, Schema, Value, described, nullable, object};

pub use issue::{Issue, Issues, Location};
pub use parse::{Between, Count, LONGEST, Parse, Raw, bounded_list, one_of, reject, text_of};
use parse::{Kind, string};

/// The mark that some editors and programs write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// One field of an update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The field is absent: its value stays.
    #[default]
    Absent,
    /// The field is null: its value becomes the default.
    Null,
    /// The field has a value.
    Set(T),
}

impl<T: Clone> Patch<T> {
    /// Changes a field whose default is to be absent.
    pub fn change(&self, field: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Null => *field = None,
            Self::Set(value) => *field = Some(value.clone()),
        }
    }
}

/// The named values of the path, the query or the body.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    place: Location,
    values: Vec<(Cow<'a, str>, Raw<'a>)>,
}

impl<'a> Source<'a> {
    /// The text values of the path or the query. The last value of a name counts.
    pub fn text(place: Location, values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (Cow::Borrowed(name), Raw::Text(value))).collect();
        Self { place, values }
    }

    /// The members of a JSON object. The last member of a name counts.
    ///
    /// # Errors
    /// One issue: the body is missing, is not JSON, or is not an object.
    pub fn body(bytes: Option<&'a [u8]>) -> Result<Self, Issue> {
        let place = Location::body();
        let because = |(kind, msg): words::Words| place.issue(kind, msg);
        let bytes = bytes.filter(|bytes| !bytes.is_empty()).ok_or_else(|| because(words::MISSING))?;
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let text = std::str::from_utf8(bytes).map_err(|error| json_invalid(&bytes[..error.valid_up_to()]))?;
        // Nearly every body is an object, and is read once. Any other body is not parsed as an object: the error of
        // serde would quote all of it.
        let object =
            text.trim_start().starts_with('{').then(|| serde_json::from_str::<Members<'_>>(text).ok()).flatten();
        let members = object.ok_or_else(|| match serde_json::from_str::<&RawValue>(text) {
            Err(error) => json_invalid(&text.as_bytes()[..error_offset(text, &error)]),
            Ok(value) if value.get() == "null" => because(words::MISSING),
            Ok(_) => because(words::BODY),
        })?;
        Ok(Self::of(place, members))
    }

    /// The parts of a form. The last part of a name counts.
    pub fn form(form: &'a FormBody) -> Self {
        let value = |(name, part): &'a (String, FormPart)| {
            let raw = match part {
                FormPart::Text(text) => Raw::Text(text),
                FormPart::File(file) => Raw::File(file),
            };
            (Cow::Borrowed(&**name), raw)
        };
        Self { place: Location::body(), values: form.0.iter().map(value).collect() }
    }

    /// The members of the object `raw`, which is at `place` in a body.
    ///
    /// # Errors
    /// One issue: it is no object.
    pub fn object(raw: Raw<'a>, place: &Location) -> Result<Self, Issue> {
        let members = serde_json::from_str::<Members<'_>>(raw.source()).ok();
        let members = members.ok_or_else(|| place.issue(words::BODY.0, words::BODY.1))?;
        Ok(Self::of(place.clone(), members))
    }

    fn of(place: Location, members: Members<'a>) -> Self {
        // A name with half of a surrogate pair counts as an unknown field, and not as an error.
        let value = |(name, value): (&'a RawValue, &'a RawValue)| {
            (string(name.get()).unwrap_or_default(), Raw::Json(value.get()))
        };
        Self { place, values: members.0.into_iter().map(value).collect() }
    }

    /// The same source with one more text value.
    #[must_use]
    pub fn with(&self, name: &'a str, value: &'a str) -> Self {
        let more = (Cow::Borrowed(name), Raw::Text(value));
        Self { place: self.place.clone(), values: self.values.iter().cloned().chain([more]).collect() }
    }

    /// The value `name`, as it was received.
    pub fn find(&self, name: &str) -> Option<Raw<'a>> {
        self.values.iter().rev().find(|(given, _)| given == name).map(|(_, raw)| *raw)
    }

    /// The names of its values.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| &**name)
    }

    /// Whether it has a value `name` that is not null.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some_and(|raw| !matches!(raw.kind(), Kind::Null))
    }

    /// The value `name`, which is required.
    pub fn required<T: Parse>(&self, name: &'static str, issues: &mut Issues) -> Option<T> {
        let at = self.place.name(name);
        match self.find(name) {
            Some(raw) => T::parse(raw, &at, issues),
            None => reject(issues, &at, words::MISSING),
        }
    }

    /// The change of `name` that an update asks for. Null is allowed if the field has a default.
    pub fn change<T: Parse>(&self, name: &'static str, issues: &mut Issues, has_default: bool) -> Option<Patch<T>> {
        match self.find(name) {
            None => Some(Patch::Absent),
            Some(raw) if has_default && matches!(raw.kind(), Kind::Null) => Some(Patch::Null),
            Some(raw) => T::parse(raw, &self.place.name(name), issues).map(Patch::Set),
        }
    }

    /// The value `name`, or `default` if it is absent or null.
    pub fn optional<T: Parse>(
        &self,
        name: &'static str,
        issues: &mut Issues,
        default: impl FnOnce() -> T,
    ) -> Option<T> {
        match self.find(name) {
            Some(raw) if !matches!(raw.kind(), Kind::Null) => T::parse(raw, &self.place.name(name), issues),
            _ => Some(default()),
        }
    }
}

/// `before` is the part of the text before the error.
fn json_invalid(before: &[u8]) -> Issue {
    let characters = before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
    Location::body().index(characters).issue(words::JSON.0, words::JSON.1)
}

/// The byte at which `serde_json` failed. It counts lines from 1, and columns in bytes from 1, with 0 for the start of
/// a line.
fn error_offset(text: &str, error: &serde_json::Error) -> usize {
    if error.is_eof() {
        return text.len();
    }
    let line_start: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let mut offset = (line_start + error.column().saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    // An unknown word, such as `nope`, is reported at its beginning, and not at its first wrong letter.
    if error.to_string().starts_with("expected ident") {
        offset = text[..offset].trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len();
    }
    offset
}

/// The members of an object as text, not parsed.
pub(crate) struct Members<'a>(pub(crate) Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Reads a set of named values.
pub type ReadInput<T> = fn(&Source<'_>, &mut Issues) -> Option<T>;

/// A set of named values, declared by [`input!`](macro@crate::input).
pub trait Input: Sized + Send + 'static {
    /// Whether the set has any values. If it has none, the body is not read.
    const EXPECTED: bool = true;

    /// Reads every value; `None` after at least one issue was added.
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self>;

    /// Reads a form in place of a JSON body, where the operation takes one.
    const OF_FORM: Option<ReadInput<Self>> = None;

    /// The JSON schema of the form.
    fn form_schema() -> Option<Value> {
        None
    }

    /// The meaning of a request without a body; `None` if a body is required.
    fn absent() -> Option<Self> {
        None
    }

    /// The JSON schema of the set.
    fn schema() -> Value;
}

/// A body that is optional in a request.
#[derive(Debug)]
pub struct OptionalBody<T>(pub Option<T>);

impl<T: Input> Input for OptionalBody<T> {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        T::read(source, issues).map(|body| Self(Some(body)))
    }

    fn absent() -> Option<Self> {
        Some(Self(None))
    }

    fn schema() -> Value {
        T::schema()
    }
}

impl Input for () {
    const EXPECTED: bool = false;

    fn read(_: &Source<'_>, _: &mut Issues) -> Option<Self> {
        Some(())
    }

    fn schema() -> Value {
        object(vec![])
    }
}

/// The value, or an error with all issues.
///
/// # Errors
/// All issues.
pub fn settle<T>(value: Option<T>, issues: Issues) -> Result<T, Issues> {
    match value {
        Some(value) if issues.is_empty() => Ok(value),
        _ => Err(issues),
    }
}

/// An optional member of a schema, with its default unless that is null. An empty object is left out as a default,
/// because absence means the same and client generators drop the whole schema of such a member.
pub fn member_or<T: Schema + serde::Serialize>(name: &'static str, doc: &str, default: &T) -> Member {
    let mut member = member::<T>(name, false, doc);
    match serde_json::to_value(default) {
        Ok(Value::Null) | Err(_) => {}
        Ok(Value::Object(empty)) if empty.is_empty() => {}
        Ok(value) => member.schema["default"] = value,
    }
    member
}

/// A member of the schema of an input, whose texts have a limit. A member with a default may also be null, which means
/// the default.
pub fn input_member(member: Member) -> Member {
    let mut schema = limited(member.schema);
    let is_map = schema["additionalProperties"] == true || schema["additionalProperties"].is_object();
    if !member.required && is_map && schema.get("default").is_none() {
        schema["description"] = null_means(&schema, "{}");
    }
    Member { schema: if member.required { schema } else { nullable(schema) }, ..member }
}

/// The description of `schema`, and the meaning of null.
pub fn null_means(schema: &Value, default: &str) -> Value {
    let says = schema["description"].as_str().unwrap_or_default();
    format!("{says} Null means the default, `{default}`.").trim().into()
}

/// `schema` with the most characters of a text, where it is the schema of a text.
pub fn limited(mut schema: Value) -> Value {
    let of_text = |schema: &mut Value| {
        if schema["type"] == "string"
            && ["enum", "format", "pattern", "contentMediaType", "maxLength"]
                .iter()
                .all(|word| schema.get(word).is_none())
        {
            let most = schema.as_object_mut().and_then(|schema| schema.remove(MOST));
            schema["maxLength"] = most.unwrap_or_else(|| LONGEST.into());
        }
    };
    if let Some(choices) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        choices.iter_mut().for_each(of_text);
    } else if let Some(items) = schema.get_mut("items") {
        of_text(items);
    } else {
        of_text(&mut schema);
    }
    schema
}

/// One member of a schema: its name, whether it is required, and the schema itself.
pub fn member<T: Schema>(name: &'static str, required: bool, doc: &str) -> Member {
    Member { name, required, schema: described(T::schema(), doc) }
}

/// Declares the values of a path, a query or a body once: the struct, the reader that collects every issue, the JSON
/// schema.
///
/// A field without a default is required. With one (`= …`), absent and null both mean the default.
#[macro_export]
macro_rules! input {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($Trait:ident),*)])?
        pub struct $Name:ident {
            $($(#[doc = $field_doc:literal])* pub $field:ident: $Type:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug)]
        $(#[derive($($Trait),*)])?
        pub struct $Name {
            $($(#[doc = $field_doc])* pub $field: $Type,)*
        }

        impl $crate::input::Input for $Name {
            fn read(source: &$crate::input::Source<'_>, issues: &mut $crate::input::Issues) -> Option<Self> {
                $(let $field: Option<$Type> = $crate::input!(@read source issues $field $($default)?);)*
                Some(Self { $($field: $field?,)* })
            }

            fn schema() -> $crate::input::schema::Value {
                let members = vec![
                    $($crate::input!(@member $field $Type, concat!($($field_doc),*) $(, $default)?),)*
                ];
                $crate::input::schema::titled($crate::input::schema::object(members), stringify!($Name), concat!($($doc),*))
            }
        }
    };
    (@read $source:ident $issues:ident $field:ident) => { $source.required(stringify!($field), $issues) };
    (@read $source:ident $issues:ident $field:ident $default:expr) => {
        $source.optional(stringify!($field), $issues, || $default)
    };
    (@member $field:ident $Type:ty, $doc:expr) => {
        $crate::input::input_member($crate::input::member::<$Type>(stringify!($field), true, $doc))
    };
    (@member $field:ident $Type:ty, $doc:expr, $default:expr) => {
        $crate::input::input_member($crate::input::member_or::<$Type>(stringify!($field), $doc, &$default))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_body_is_one_issue_with_its_location() {
        let issue = |bytes: &[u8]| {
            let issue = Source::body(Some(bytes)).unwrap_err();
            serde_json::to_string(&issue).unwrap()
        };
        let json =
            |offset: usize| format!(r#"{{"loc":["body",{offset}],"msg":"JSON decode error","type":"json_invalid"}}"#);
        assert_eq!(issue(b""), r#"{"loc":["body"],"msg":"Field required","type":"missing"}"#);
        assert_eq!(issue(b" null "), r#"{"loc":["body"],"msg":"Field required","type":"missing"}"#);
        assert!(issue(b"[]").contains("model_attributes_type"));
        assert!(issue(b"1").contains("model_attributes_type"));
        assert_eq!(issue(b"{"), json(1));
        assert_eq!(issue(b"{x"), json(1));
        assert_eq!(issue("{\"é\":é}".as_bytes()), json(5));
        assert_eq!(issue(b"{\n\"a\": 1,\n ]"), json(11));
        assert_eq!(issue(b"{\"a\xff\"}"), json(3));
        assert_eq!(issue(b"{} x"), json(3));
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_not_counted() {
        let source = Source::body(Some("\u{feff}{\"a\":1}".as_bytes())).unwrap();
        assert_eq!(source.required::<i64>("a", &mut Issues::new()), Some(1));
        for (body, offset) in [("\u{feff}", 0), ("\u{feff}{", 1), ("\u{feff}\u{feff}{}", 0)] {
            let issue = Source::body(Some(body.as_bytes())).unwrap_err();
            assert_eq!(issue.loc, Location::body().index(offset), "{body:?}");
            assert_eq!(issue.kind, "json_invalid", "{body:?}");
        }
    }

    #[test]
    fn nesting_of_any_depth_is_read() {
        let depth = 100_000;
        let body = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let source = Source::body(Some(body.as_bytes())).unwrap();
        assert!(source.find("a").is_some());
    }

    #[test]
    fn the_last_value_of_a_name_counts() {
        let source = Source::body(Some(br#"{"a":1,"a":2,"\ud800":3}"#)).unwrap();
        assert_eq!(source.required::<i64>("a", &mut Issues::new()), Some(2));
    }
}
