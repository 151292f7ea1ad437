//! Reads path, query and body as pydantic 2 does in lax mode: every issue at once, in pydantic's words.
//!
//! [`Parse`] reads one value, [`Input`] a set of named ones; [`input!`](crate::input) declares a set once and derives the struct,
//! the reader and the JSON schema. The words themselves are the constants of [`words`].

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::records::declaration::Change;
use crate::request::error::{Error, Issue, Issues, Location, Result};
use crate::values::schema::{Schema, Value, object};

/// pydantic's types and messages, the one table of them.
pub mod words {
    /// A `type` and its message.
    pub type Words = (&'static str, &'static str);

    /// A required value is absent.
    pub const MISSING: Words = ("missing", "Field required");
    /// The body is not JSON.
    pub const JSON: Words = ("json_invalid", "JSON decode error");
    /// The body is JSON, but no object.
    pub const BODY: Words =
        ("model_attributes_type", "Input should be a valid dictionary or object to extract fields from");
    /// A string was expected.
    pub const STRING: Words = ("string_type", "Input should be a valid string");
    /// A string with half of a surrogate pair.
    pub const UNICODE: Words =
        ("string_unicode", "Input should be a valid string, unable to parse raw data as a unicode string");
    /// An integer was expected, and text that is none came.
    pub const INT_TEXT: Words =
        ("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
    /// An integer was expected, and a number with a fraction came.
    pub const INT_FRACTION: Words =
        ("int_from_float", "Input should be a valid integer, got a number with a fractional part");
    /// An integer was expected, and something that is neither number nor text came.
    pub const INT: Words = ("int_type", "Input should be a valid integer");
    /// An integer of more than 64 bits.
    pub const INT_SIZE: Words =
        ("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size");
    /// A boolean was expected, and other text or another number came.
    pub const BOOL_TEXT: Words = ("bool_parsing", "Input should be a valid boolean, unable to interpret input");
    /// A boolean was expected, and something else altogether came.
    pub const BOOL: Words = ("bool_type", "Input should be a valid boolean");
    /// An object was expected.
    pub const DICT: Words = ("dict_type", "Input should be a valid dictionary");
    /// An array was expected.
    pub const LIST: Words = ("list_type", "Input should be a valid list");
    /// A point in time was expected, and text that is none came.
    pub const TIME: Words = ("datetime_parsing", "Input should be a valid datetime, such as 2030-01-31T12:00:00Z");
    /// A UUID was expected, and no text came.
    pub const UUID: Words = ("uuid_type", "UUID input should be a string, bytes or UUID object");
    /// The `type` of text that is no UUID; the message has a reason in it.
    pub const UUID_TEXT: &str = "uuid_parsing";
    /// The `type` of a word that is not in the list.
    pub const ENUM: &str = "enum";
    /// The `type` of text that does not match a pattern.
    pub const PATTERN: &str = "string_pattern_mismatch";
    /// The `type` of text with too many characters.
    pub const TEXT_TOO_LONG: &str = "string_too_long";
    /// The `type` of a number below its least value.
    pub const TOO_SMALL: &str = "greater_than_equal";
    /// The `type` of a number above its greatest value.
    pub const TOO_LARGE: &str = "less_than_equal";
    /// The `type` of an array with too few items.
    pub const TOO_SHORT: &str = "too_short";
    /// The `type` of an array with too many items.
    pub const TOO_LONG: &str = "too_long";
}

/// A value as it was received.
#[derive(Debug, Clone, Copy)]
pub enum Raw<'a> {
    /// Text of the path or the query.
    Text(&'a str),
    /// A JSON value of the body, as written.
    Json(&'a str),
}

/// A JSON value, told apart by its first byte.
enum Kind<'a> {
    Null,
    Bool(bool),
    /// As written: no number is too long for this.
    Number(&'a str),
    /// `None` where half of a surrogate pair stands alone.
    String(Option<Cow<'a, str>>),
    Array,
    Object,
}

impl<'a> Raw<'a> {
    fn kind(self) -> Kind<'a> {
        let json = match self {
            Self::Text(text) => return Kind::String(Some(Cow::Borrowed(text))),
            Self::Json(json) => json,
        };
        match json.as_bytes().first() {
            Some(b'"') => Kind::String(string(json)),
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b't') => Kind::Bool(true),
            Some(b'f') => Kind::Bool(false),
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number(json),
        }
    }

    /// The JSON text of an object.
    pub fn as_object(self) -> Option<&'a str> {
        matches!(self.kind(), Kind::Object).then(|| self.source())
    }

    /// The items of an array.
    pub fn as_array(self) -> Option<Vec<&'a RawValue>> {
        let mut items = Vec::new();
        let each = |_, item| {
            items.push(item);
            ControlFlow::Continue(())
        };
        self.each_item(each).then_some(items)
    }

    /// Calls `each` with the items of an array and their indexes, until it has enough; false where there is no array. It is known to be
    /// JSON, so what is left is not even looked at.
    fn each_item(self, each: impl FnMut(usize, &'a RawValue) -> ControlFlow<()>) -> bool {
        let is_array = matches!(self.kind(), Kind::Array);
        if is_array {
            // It ends with an error where something was left.
            let _ = serde_json::Deserializer::from_str(self.source()).deserialize_seq(Items(each));
        }
        is_array
    }

    /// The text of the value, as it was received.
    pub const fn source(self) -> &'a str {
        match self {
            Self::Text(text) | Self::Json(text) => text,
        }
    }
}

fn string(json: &str) -> Option<Cow<'_, str>> {
    // Text with an escape cannot be borrowed; to have that found out costs an error in which all of it is quoted.
    if json.contains('\\') {
        serde_json::from_str::<String>(json).ok().map(Cow::Owned)
    } else {
        serde_json::from_str(json).ok().map(Cow::Borrowed)
    }
}

/// The most issues of one answer. Each is longer than the two bytes of a body that it takes to make one, and Lambda passes on no answer
/// of more than 6 MB.
const MOST_ISSUES: usize = 10_000;

/// Reads one value, or says what is wrong with it.
pub trait Parse: Sized {
    /// The value in `raw`, or `None` after at least one issue at `at` was added.
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self>;
}

/// Adds an issue; `None`, so that a reader ends with it.
pub fn reject<T>(issues: &mut Issues, at: &Location, (kind, msg): words::Words) -> Option<T> {
    issues.push(at.issue(kind, msg));
    None
}

impl Parse for String {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        match raw.kind() {
            Kind::String(Some(text)) => Some(text.into_owned()),
            Kind::String(None) => reject(issues, at, words::UNICODE),
            _ => reject(issues, at, words::STRING),
        }
    }
}

impl Parse for bool {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        match raw.kind() {
            Kind::Bool(value) => Some(value),
            Kind::Number(number) => match number.parse::<f64>() {
                Ok(0.0) => Some(false),
                Ok(1.0) => Some(true),
                _ => reject(issues, at, words::BOOL_TEXT),
            },
            Kind::String(Some(text)) => match text.to_ascii_lowercase().as_str() {
                "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
                "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
                _ => reject(issues, at, words::BOOL_TEXT),
            },
            Kind::String(None) => reject(issues, at, words::BOOL_TEXT),
            _ => reject(issues, at, words::BOOL),
        }
    }
}

impl Parse for i64 {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        match raw.kind() {
            Kind::Bool(value) => Some(Self::from(value)),
            Kind::Number(number) => {
                integer_from_number(number).map_err(|words| issues.push(at.issue(words.0, words.1))).ok()
            }
            Kind::String(Some(text)) => {
                integer_from_text(&text).map_err(|words| issues.push(at.issue(words.0, words.1))).ok()
            }
            Kind::String(None) => reject(issues, at, words::INT_TEXT),
            _ => reject(issues, at, words::INT),
        }
    }
}

/// A JSON number: an integer of 64 bits, or a float that is one, such as `1.0` or `1e3`.
fn integer_from_number(number: &str) -> Result<i64, words::Words> {
    if !number.contains(['.', 'e', 'E']) {
        return number.parse().map_err(|_| words::INT_SIZE);
    }
    let float: f64 = number.parse().map_err(|_| words::INT_SIZE)?;
    if float.is_finite() && float.fract() != 0.0 {
        return Err(words::INT_FRACTION);
    }
    // Both bounds are powers of two, so the comparison is exact, and within them the conversion is.
    #[expect(clippy::cast_possible_truncation, reason = "within the bounds nothing is cut off")]
    let exact = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float).then_some(float as i64);
    exact.ok_or(words::INT_SIZE)
}

/// Text as pydantic reads an integer: spaces around it, a sign, single underscores between digits, zeros behind a point.
fn integer_from_text(text: &str) -> Result<i64, words::Words> {
    let trimmed = text.trim();
    let whole = match trimmed.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => whole,
        Some(_) => return Err(words::INT_TEXT),
        None => trimmed,
    };
    let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    let well_formed =
        digits.split('_').all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()));
    if !well_formed {
        return Err(words::INT_TEXT);
    }
    whole.replace('_', "").parse().map_err(|_| words::INT_SIZE)
}

impl Parse for Uuid {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let Kind::String(Some(text)) = raw.kind() else { return reject(issues, at, words::UUID) };
        if let Ok(id) = Self::try_parse(&text.to_ascii_lowercase()) {
            return Some(id);
        }
        issues.push(at.issue(words::UUID_TEXT, format!("Input should be a valid UUID, {}", uuid_reason(&text))));
        None
    }
}

/// Why `text` is no UUID, in the words that pydantic prints.
fn uuid_reason(text: &str) -> String {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let (body, offset, simple) = if let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        (inner, 1, false)
    } else if let Some(inner) = text.strip_prefix("urn:uuid:") {
        (inner, "urn:uuid:".len(), false)
    } else {
        (text, 0, true)
    };
    if let Some((index, character)) = body.char_indices().find(|(_, c)| *c != '-' && !c.is_ascii_hexdigit()) {
        let position = index + offset + 1;
        return format!(
            "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], found `{character}` at {position}"
        );
    }
    let groups: Vec<usize> = body.split('-').map(str::len).collect();
    if groups.len() == 1 && simple {
        return format!("invalid length: expected length 32 for simple format, found {}", text.len());
    }
    if groups.len() != GROUPS.len() {
        return format!("invalid group count: expected 5, found {}", groups.len());
    }
    let wrong = (0..4).find(|&group| groups[group] != GROUPS[group]).unwrap_or(4);
    format!("invalid group length in group {wrong}: expected {}, found {}", GROUPS[wrong], groups[wrong])
}

impl<T: Parse> Parse for Option<T> {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        T::parse(raw, at, issues).map(Some)
    }
}

impl<T: Parse> Parse for Vec<T> {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let before = issues.len();
        let mut parsed = Self::new();
        let is_array = raw.each_item(|index, item| {
            // The other items are read all the same, so that all their issues are told.
            parsed.extend(T::parse(Raw::Json(item.get()), &at.index(index), issues));
            if issues.len() < MOST_ISSUES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if !is_array {
            return reject(issues, at, words::LIST);
        }
        (issues.len() == before).then_some(parsed)
    }
}

/// Text of at most so many characters.
pub fn bounded_text(raw: Raw<'_>, at: &Location, issues: &mut Issues, most: usize) -> Option<String> {
    let text = String::parse(raw, at, issues)?;
    if text.chars().count() > most {
        issues.push(at.issue(words::TEXT_TOO_LONG, format!("String should have at most {most} characters")));
        return None;
    }
    Some(text)
}

/// An array whose number of items is bounded, before its items are looked at.
pub fn bounded_list<T: Parse>(
    raw: Raw<'_>,
    at: &Location,
    issues: &mut Issues,
    (least, most): (usize, usize),
) -> Option<Vec<T>> {
    let Some(items) = raw.as_array() else { return reject(issues, at, words::LIST) };
    let count = items.len();
    let plural = |n: usize| if n == 1 { "item" } else { "items" };
    if count > most {
        let msg = format!("List should have at most {most} {} after validation, not {count}", plural(most));
        issues.push(at.issue(words::TOO_LONG, msg));
        return None;
    }
    let list = Vec::parse(raw, at, issues)?;
    if count < least {
        let msg = format!("List should have at least {least} {} after validation, not {count}", plural(least));
        issues.push(at.issue(words::TOO_SHORT, msg));
        return None;
    }
    Some(list)
}

/// One of a fixed list of words; see [`choice!`](crate::choice).
pub fn one_of<T>(
    raw: Raw<'_>,
    at: &Location,
    issues: &mut Issues,
    list: &[&str],
    from_word: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let found = if let Kind::String(Some(text)) = raw.kind() { from_word(&text) } else { None };
    if found.is_none() {
        let (final_word, others) = list.split_last().unwrap_or((&"", &[]));
        let others = others.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
        issues.push(at.issue(words::ENUM, format!("Input should be {others} or '{final_word}'")));
    }
    found
}

/// An integer from `LEAST` to `MOST`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Between<const LEAST: i64, const MOST: i64>(i64);

/// An integer that is not negative.
pub type Count = Between<0, { i64::MAX }>;

impl<const LEAST: i64, const MOST: i64> Between<LEAST, MOST> {
    /// `value`, brought within the bounds.
    pub const fn clamped(value: i64) -> Self {
        Self(if value < LEAST {
            LEAST
        } else if value > MOST {
            MOST
        } else {
            value
        })
    }

    /// The integer.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl<const LEAST: i64, const MOST: i64> Parse for Between<LEAST, MOST> {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let value = i64::parse(raw, at, issues)?;
        if value < LEAST {
            let msg = format!("Input should be greater than or equal to {LEAST}");
            issues.push(at.issue(words::TOO_SMALL, msg));
            return None;
        }
        if value > MOST {
            issues.push(at.issue(words::TOO_LARGE, format!("Input should be less than or equal to {MOST}")));
            return None;
        }
        Some(Self(value))
    }
}

impl<const LEAST: i64, const MOST: i64> Schema for Between<LEAST, MOST> {
    fn schema() -> Value {
        if MOST == i64::MAX {
            json!({"type": "integer", "minimum": LEAST})
        } else {
            json!({"type": "integer", "minimum": LEAST, "maximum": MOST})
        }
    }
}

/// The named values of the path, the query or the body.
#[derive(Debug)]
pub struct Source<'a> {
    place: Location,
    values: Vec<(Cow<'a, str>, Raw<'a>)>,
}

impl<'a> Source<'a> {
    /// Text values, of the path or the query. Of several with one name the last counts.
    pub fn text(place: Location, values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (Cow::Borrowed(name), Raw::Text(value))).collect();
        Self { place, values }
    }

    /// The members of a JSON object. Of several with one name the last counts.
    ///
    /// # Errors
    /// One issue: no body, no JSON, or no object.
    pub fn body(bytes: Option<&'a [u8]>) -> Result<Self, Issue> {
        let place = Location::body();
        let because = |(kind, msg): words::Words| place.issue(kind, msg);
        let text = match std::str::from_utf8(bytes.unwrap_or_default()) {
            Ok(text) => text,
            Err(error) => return Err(json_invalid(&bytes.unwrap_or_default()[..error.valid_up_to()])),
        };
        if text.is_empty() {
            return Err(because(words::MISSING));
        }
        // Nearly every body is an object, and read once. What does not begin like one is not tried: serde would quote all of it in an error.
        let object =
            text.trim_start().starts_with('{').then(|| serde_json::from_str::<Members<'_>>(text).ok()).flatten();
        let members = object.ok_or_else(|| match serde_json::from_str::<&RawValue>(text) {
            Err(error) => json_invalid(&text.as_bytes()[..error_offset(text, &error)]),
            Ok(value) if value.get() == "null" => because(words::MISSING),
            Ok(_) => because(words::BODY),
        })?;
        Ok(Self { place, values: members.0 })
    }

    fn find(&self, name: &str) -> Option<Raw<'a>> {
        self.values.iter().rev().find(|(given, _)| given == name).map(|(_, raw)| *raw)
    }

    /// The value `name`, which must be there.
    pub fn required<T: Parse>(&self, name: &'static str, issues: &mut Issues) -> Option<T> {
        let at = self.place.name(name);
        match self.find(name) {
            Some(raw) => T::parse(raw, &at, issues),
            None => reject(issues, &at, words::MISSING),
        }
    }

    /// The change of `name` that an update asks for. Null is one where the field has a default to go back to.
    pub fn change<T: Parse>(&self, name: &'static str, issues: &mut Issues, has_default: bool) -> Option<Change<T>> {
        match self.find(name) {
            None => Some(Change::Absent),
            Some(raw) if has_default && matches!(raw.kind(), Kind::Null) => Some(Change::Null),
            Some(raw) => T::parse(raw, &self.place.name(name), issues).map(Change::Set),
        }
    }

    /// The value `name`, or `default` where it is absent or null.
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

/// `before` is what was good.
fn json_invalid(before: &[u8]) -> Issue {
    let characters = before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
    Location::body().index(characters).issue(words::JSON.0, words::JSON.1)
}

/// The byte at which `serde_json` gave up: it counts lines from 1, and columns in bytes from 1 with 0 for the line's start.
fn error_offset(text: &str, error: &serde_json::Error) -> usize {
    if error.is_eof() {
        return text.len();
    }
    let line_start: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let mut offset = (line_start + error.column().saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    // Of a word that is none, such as `nope`, its beginning is the place, and not the first letter that fits no literal.
    if error.to_string().starts_with("expected ident") {
        offset = text[..offset].trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len();
    }
    offset
}

/// Hands on the items of an array, as written.
struct Items<F>(F);

impl<'de, F: FnMut(usize, &'de RawValue) -> ControlFlow<()>> Visitor<'de> for Items<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(item) = items.next_element()? {
            if (self.0)(index, item).is_break() {
                break;
            }
            index += 1;
        }
        Ok(())
    }
}

/// An object's members as written, none of them interpreted.
struct Members<'a>(Vec<(Cow<'a, str>, Raw<'a>)>);

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
                // A name is read as written first: one with half of a surrogate pair is nobody's field, and no reason to fail.
                while let Some(name) = map.next_key::<&RawValue>()? {
                    let value: &RawValue = map.next_value()?;
                    members.push((string(name.get()).unwrap_or_default(), Raw::Json(value.get())));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A set of named values, declared by [`input!`](crate::input).
pub trait Input: Sized + Send + 'static {
    /// Whether there is anything to read at all; where not, a body is not even looked at.
    const EXPECTED: bool = true;

    /// Reads every value; `None` after at least one issue was added.
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self>;

    /// The JSON schema of the set.
    fn schema() -> Value;
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

/// Where the issues are, else the value.
///
/// # Errors
/// [`Error::Invalid`] with all issues.
pub fn settle<T>(value: Option<T>, issues: Issues) -> Result<T> {
    match value {
        Some(value) if issues.is_empty() => Ok(value),
        _ => Err(Error::Invalid(issues)),
    }
}

/// An optional member of a schema, with its default, where that is not null.
pub fn member_or<T: Schema + serde::Serialize>(
    name: &'static str,
    doc: &str,
    default: &T,
) -> crate::values::schema::Member {
    let mut member = member::<T>(name, false, doc);
    match serde_json::to_value(default) {
        Ok(Value::Null) | Err(_) => {}
        Ok(value) => member.schema["default"] = value,
    }
    member
}

/// One member of a schema: its name, whether it is required, and the schema itself.
pub fn member<T: Schema>(name: &'static str, required: bool, doc: &str) -> crate::values::schema::Member {
    crate::values::schema::Member { name, required, schema: crate::values::schema::described(T::schema(), doc) }
}

/// Declares the values of a path, a query or a body once: the struct, the reader that collects every issue, the JSON schema.
///
/// A field without a default is required. With one (`= …`), absent and null both mean the default.
#[macro_export]
macro_rules! input {
    (
        $(#[$attribute:meta])*
        pub struct $Name:ident {
            $($(#[doc = $field_doc:literal])* pub $field:ident: $Type:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug)]
        pub struct $Name {
            $($(#[doc = $field_doc])* pub $field: $Type,)*
        }

        impl $crate::request::input::Input for $Name {
            fn read(source: &$crate::request::input::Source<'_>, issues: &mut $crate::request::error::Issues) -> Option<Self> {
                $(let $field: Option<$Type> = $crate::input!(@read source issues $field $($default)?);)*
                Some(Self { $($field: $field?,)* })
            }

            fn schema() -> $crate::values::schema::Value {
                $crate::values::schema::object(vec![
                    $($crate::request::input::member::<$Type>(
                        stringify!($field),
                        $crate::input!(@required $($default)?),
                        concat!($($field_doc),*),
                    ),)*
                ])
            }
        }
    };
    (@read $source:ident $issues:ident $field:ident) => { $source.required(stringify!($field), $issues) };
    (@read $source:ident $issues:ident $field:ident $default:expr) => {
        $source.optional(stringify!($field), $issues, || $default)
    };
    (@required) => { true };
    (@required $default:expr) => { false };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Parse>(json: &str) -> Result<T, (&'static str, String)> {
        let mut issues = Issues::new();
        let value = T::parse(Raw::Json(json), &Location::body(), &mut issues);
        value.ok_or_else(|| (issues[0].kind, issues[0].msg.to_string()))
    }

    #[test]
    fn integers_are_read_as_pydantic_reads_them() {
        for (json, wanted) in [
            ("12", 12),
            ("\"12\"", 12),
            ("\" 12 \"", 12),
            ("1.0", 1),
            ("true", 1),
            ("false", 0),
            ("1e3", 1000),
            ("\"+7\"", 7),
            ("\"-7\"", -7),
            ("\"1_000\"", 1000),
            ("\"3.00\"", 3),
            ("-0", 0),
            ("\"007\"", 7),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(read::<i64>(json), Ok(wanted), "{json}");
        }
        for (json, wanted) in [
            ("\"x\"", "int_parsing"),
            ("\"\"", "int_parsing"),
            ("\"1.5\"", "int_parsing"),
            ("\"1__0\"", "int_parsing"),
            ("\"_1\"", "int_parsing"),
            ("\"1e3\"", "int_parsing"),
            ("\"+\"", "int_parsing"),
            ("1.5", "int_from_float"),
            ("null", "int_type"),
            ("[]", "int_type"),
            ("{}", "int_type"),
            ("9223372036854775808", "int_parsing_size"),
            ("1e30", "int_parsing_size"),
            ("1e999", "int_parsing_size"),
            ("\"99999999999999999999\"", "int_parsing_size"),
            ("9223372036854775808.0", "int_parsing_size"),
            ("\"\\ud800\"", "int_parsing"),
        ] {
            assert_eq!(read::<i64>(json).map_err(|(kind, _)| kind), Err(wanted), "{json}");
        }
    }

    #[test]
    fn booleans_are_read_as_pydantic_reads_them() {
        for json in ["true", "1", "1.0", "\"true\"", "\"T\"", "\"Yes\"", "\"y\"", "\"ON\"", "\"1\""] {
            assert_eq!(read::<bool>(json), Ok(true), "{json}");
        }
        for json in ["false", "0", "0.0", "-0.0", "\"false\"", "\"F\"", "\"No\"", "\"n\"", "\"oFF\"", "\"0\""] {
            assert_eq!(read::<bool>(json), Ok(false), "{json}");
        }
        for json in ["2", "0.5", "\"\"", "\"2\"", "\" true\"", "\"\\udc00\""] {
            assert_eq!(read::<bool>(json).map_err(|(kind, _)| kind), Err("bool_parsing"), "{json}");
        }
        for json in ["null", "[]", "{}"] {
            assert_eq!(read::<bool>(json).map_err(|(kind, _)| kind), Err("bool_type"), "{json}");
        }
    }

    #[test]
    fn uuids_in_every_form_and_the_reasons_for_the_others() {
        const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
        let upper = ID.to_uppercase();
        for text in [ID, &upper, &ID.replace('-', ""), &format!("{{{ID}}}"), &format!("urn:uuid:{ID}")] {
            assert_eq!(read::<Uuid>(&format!("\"{text}\"")).map(|id| id.to_string()), Ok(ID.to_owned()), "{text}");
        }
        for (text, reason) in [
            ("", "invalid length: expected length 32 for simple format, found 0"),
            ("abc", "invalid length: expected length 32 for simple format, found 3"),
            (
                "z1890a5d",
                "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], found `z` at 1",
            ),
            (
                "{01890a5d-é}",
                "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], found `é` at 11",
            ),
            ("01890a5d-ac96-774b-bcce-b302099a80", "invalid group length in group 4: expected 12, found 10"),
            ("01890a5-ac96-774b-bcce-b302099a8057", "invalid group length in group 0: expected 8, found 7"),
            ("01890a5d-ac96", "invalid group count: expected 5, found 2"),
            ("{}", "invalid group count: expected 5, found 1"),
        ] {
            let wanted = ("uuid_parsing", format!("Input should be a valid UUID, {reason}"));
            assert_eq!(read::<Uuid>(&format!("\"{text}\"")), Err(wanted), "{text}");
        }
        for json in ["12", "null", "true", "[]", "{}"] {
            assert_eq!(read::<Uuid>(json).map_err(|(kind, _)| kind), Err("uuid_type"), "{json}");
        }
    }

    #[test]
    fn strings_are_not_made_of_other_things() {
        assert_eq!(read::<String>(r#""a\u00e9\ud83d\ude00\u0000""#), Ok("aé😀\0".to_owned()));
        for json in ["1", "true", "null", "[]", "{}"] {
            assert_eq!(read::<String>(json).map_err(|(kind, _)| kind), Err("string_type"), "{json}");
        }
        assert_eq!(read::<String>(r#""\ud800""#).map_err(|(kind, _)| kind), Err("string_unicode"));
    }

    #[test]
    fn a_body_that_is_no_object_says_so_and_where() {
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
    fn nesting_of_any_depth_is_read() {
        let depth = 100_000;
        let body = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let source = Source::body(Some(body.as_bytes())).unwrap();
        assert!(source.find("a").is_some());
    }

    #[test]
    fn of_two_values_with_one_name_the_last_counts() {
        let source = Source::body(Some(br#"{"a":1,"a":2,"\ud800":3}"#)).unwrap();
        assert_eq!(source.required::<i64>("a", &mut Issues::new()), Some(2));
    }
}
