//! Reads one value as pydantic 2 does in lax mode, with pydantic's messages.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::input::form::FormFile;
use crate::input::schema::{Schema, Value};
use crate::input::{Issues, Location, words};

/// A value as it was received.
#[derive(Debug, Clone, Copy)]
pub enum Raw<'a> {
    /// Text of the path or the query.
    Text(&'a str),
    /// A JSON value of the body, as written.
    Json(&'a str),
    /// A file of a form.
    File(&'a FormFile),
}

/// A JSON value; its first byte shows the kind.
pub(super) enum Kind<'a> {
    Null,
    Bool(bool),
    /// A number as it was written, of any length.
    Number(&'a str),
    /// Text; `None` if it has half of a surrogate pair.
    String(Option<Cow<'a, str>>),
    Array,
    Object,
    File,
}

impl<'a> Raw<'a> {
    pub(super) fn kind(self) -> Kind<'a> {
        let json = match self {
            Self::Text(text) => return Kind::String(Some(Cow::Borrowed(text))),
            Self::Json(json) => json,
            Self::File(_) => return Kind::File,
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

    /// The text of a string of any length, or `None` after an issue at `at` was added.
    pub fn text(self, at: &Location, issues: &mut Issues) -> Option<Cow<'a, str>> {
        match self.kind() {
            Kind::String(Some(text)) => Some(text),
            Kind::String(None) => reject(issues, at, words::UNICODE),
            _ => reject(issues, at, words::STRING),
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

    /// Calls `each` with the items of an array and their indexes, until it breaks. Returns false if there is no array.
    /// The text is known to be JSON, so its rest is not read.
    fn each_item(self, each: impl FnMut(usize, &'a RawValue) -> ControlFlow<()>) -> bool {
        let is_array = matches!(self.kind(), Kind::Array);
        if is_array {
            // Serde reports an error if items are left.
            let _ = serde_json::Deserializer::from_str(self.source()).deserialize_seq(Items(each));
        }
        is_array
    }

    /// The text of the value, as it was received.
    pub const fn source(self) -> &'a str {
        match self {
            Self::Text(text) | Self::Json(text) => text,
            Self::File(_) => "",
        }
    }
}

/// The text of a JSON string; `None` if it has half of a surrogate pair.
pub(super) fn string(json: &str) -> Option<Cow<'_, str>> {
    // Text with an escape cannot be borrowed. An attempt would cost an error in which serde quotes the whole text.
    if json.contains('\\') {
        serde_json::from_str::<String>(json).ok().map(Cow::Owned)
    } else {
        serde_json::from_str(json).ok().map(Cow::Borrowed)
    }
}

/// The most issues of one answer: an issue is longer than its cause, and Lambda allows answers of at most 6 MB.
const MOST_ISSUES: usize = 10_000;

/// Reads one value, or adds its issues.
pub trait Parse: Sized {
    /// The value in `raw`, or `None` after at least one issue at `at` was added.
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self>;
}

/// Adds an issue. Returns `None`, so that a reader can return it.
pub fn reject<T>(issues: &mut Issues, at: &Location, (kind, msg): words::Words) -> Option<T> {
    issues.push(at.issue(kind, msg));
    None
}

/// The most characters of a text whose type has no limit of its own.
pub const LONGEST: usize = 8192;

impl Parse for String {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        text_of(LONGEST, raw, at, issues)
    }
}

/// A text of at most `most` characters, or `None` after an issue at `at` was added.
pub fn text_of(most: usize, raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<String> {
    let text = raw.text(at, issues)?;
    // A text has no more characters than bytes.
    if text.len() > most && text.chars().count() > most {
        issues.push(at.issue(words::TEXT_TOO_LONG, format!("String should have at most {most} characters")));
        return None;
    }
    Some(text.into_owned())
}

impl Parse for bool {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        match raw.kind() {
            Kind::Bool(value) => Some(value),
            Kind::Number(number) => match integer_from_number(number) {
                Ok(0) => Some(false),
                Ok(1) => Some(true),
                Ok(_) => reject(issues, at, words::BOOL_TEXT),
                Err(_) => reject(issues, at, words::BOOL),
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

impl Parse for f64 {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = match raw.kind() {
            Kind::Number(number) => Cow::Borrowed(number),
            Kind::String(Some(text)) => text,
            _ => return reject(issues, at, words::FLOAT),
        };
        let number = text.trim().parse().ok().filter(|number: &Self| number.is_finite());
        number.or_else(|| reject(issues, at, words::FLOAT_TEXT))
    }
}

/// A JSON number: an integer of 64 bits, or a float with such a value, such as `1.0` or `1e3`.
fn integer_from_number(number: &str) -> Result<i64, words::Words> {
    if !number.contains(['.', 'e', 'E']) {
        return number.parse().map_err(|_| words::INT_SIZE);
    }
    let float: f64 = number.parse().map_err(|_| words::INT_SIZE)?;
    if float.is_finite() && float.fract() != 0.0 {
        return Err(words::INT_FRACTION);
    }
    // Both bounds are powers of two, so the comparison is exact; between them the conversion is exact too.
    #[expect(clippy::cast_possible_truncation, reason = "within the bounds nothing is cut off")]
    let exact = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float).then_some(float as i64);
    exact.ok_or(words::INT_SIZE)
}

/// Reads an integer from text as pydantic does: with spaces around it, a sign, single underscores between digits, zeros
/// after a point.
fn integer_from_text(text: &str) -> Result<i64, words::Words> {
    let trimmed = text.trim();
    let whole = match trimmed.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => whole,
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

/// Why `text` is no UUID, in pydantic's words.
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
            // The other items are read too, so that all issues are reported.
            parsed.extend(T::parse(Raw::Json(item.get()), &at.index(index), issues));
            if issues.len() < MOST_ISSUES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if !is_array {
            return reject(issues, at, words::LIST);
        }
        (issues.len() == before).then_some(parsed)
    }
}

/// An array whose number of items is checked before the items are read.
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
    /// `value`, limited to the bounds.
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
        json!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }
}

/// Passes the items of an array as text.
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
            ("\"12.\"", "int_parsing"),
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
        for json in
            ["2", "-1", "2.0", "1.5e1", "9223372036854775807", "\"\"", "\"2\"", "\"1.0\"", "\" true\"", "\"\\udc00\""]
        {
            assert_eq!(read::<bool>(json).map_err(|(kind, _)| kind), Err("bool_parsing"), "{json}");
        }
        for json in ["null", "[]", "{}", "0.5", "1e-1", "1e19", "1e400", "9223372036854775808", "-9223372036854775809"]
        {
            assert_eq!(read::<bool>(json).map_err(|(kind, _)| kind), Err("bool_type"), "{json}");
        }
    }

    #[test]
    fn uuids_are_read_in_every_form_and_refused_with_a_reason() {
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
    fn only_strings_are_read_as_strings() {
        assert_eq!(read::<String>(r#""a\u00e9\ud83d\ude00\u0000""#), Ok("aé😀\0".to_owned()));
        for json in ["1", "true", "null", "[]", "{}"] {
            assert_eq!(read::<String>(json).map_err(|(kind, _)| kind), Err("string_type"), "{json}");
        }
        assert_eq!(read::<String>(r#""\ud800""#).map_err(|(kind, _)| kind), Err("string_unicode"));
    }
}
