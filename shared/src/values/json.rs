//! Free-form JSON, stored as the text that was sent.
//!
//! DynamoDB's maps refuse empty keys, more than 32 levels and more than 38 digits. A string attribute accepts all of
//! them, and the answer is equal to the input, byte by byte. Nothing is parsed in between.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::input::schema::Schema;
use crate::input::{Issues, Location, Members, Parse, Raw, Source, reject, words};

/// A free-form JSON object.
#[derive(Clone)]
pub struct JsonObject(Box<RawValue>);

/// A free-form JSON array.
#[derive(Clone)]
pub struct JsonArray(Box<RawValue>);

/// An array of free-form JSON objects.
#[derive(Clone)]
pub struct JsonObjects(Box<RawValue>);

impl JsonObject {
    /// The member `name`, if it exists and is text.
    pub fn text(&self, name: &'static str) -> Option<String> {
        let source = Source::body(Some(self.0.get().as_bytes())).ok()?;
        source.required(name, &mut Issues::new())
    }

    /// This object with the text `name`, which is a secret, masked.
    #[must_use]
    pub fn masked(&self, name: &str) -> Self {
        self.with_texts(name, |secret| serde_json::to_string(&mask(secret)).ok())
    }

    /// This object with a masked text `name` replaced by the one in `stored`.
    #[must_use]
    pub fn unmasked(&self, name: &str, stored: &Self) -> Self {
        let members = serde_json::from_str(stored.0.get());
        let secret = members.ok().and_then(|members| last_text(&members, name));
        self.with_texts(name, |sent| secret.filter(|_| is_masked(sent)).map(|secret| secret.get().to_owned()))
    }

    /// This object with each text `name` replaced by the result of `new`, if there is one.
    fn with_texts(&self, name: &str, new: impl Fn(&str) -> Option<String>) -> Self {
        let Some(members) =
            serde_json::from_str(self.0.get()).ok().filter(|members| last_text(members, name).is_some())
        else {
            return self.clone();
        };
        let member = |(named, value): &(&RawValue, &RawValue)| {
            // A string with half of a surrogate pair is no valid text, but it may be part of a secret.
            let text = value.get().starts_with('"').then(|| unquoted(value).unwrap_or_default());
            let new = text.filter(|_| unquoted(named).as_deref() == Some(name)).and_then(|text| new(&text));
            format!("{}:{}", named.get(), new.as_deref().unwrap_or_else(|| value.get()))
        };
        let members: Vec<String> = members.0.iter().map(member).collect();
        RawValue::from_string(format!("{{{}}}", members.join(","))).map_or_else(|_| self.clone(), Self)
    }
}

/// Characters of a secret that are shown: the first ones, which show its purpose, and the last ones, which identify it.
const SHOWN: (usize, usize) = (7, 4);
/// Replaces the hidden part of a masked secret. No secret contains it.
const MASK: char = '…';

/// `secret` in the form that may be shown. A short one is hidden completely.
fn mask(secret: &str) -> String {
    let characters: Vec<char> = secret.chars().collect();
    if characters.len() <= SHOWN.0 + SHOWN.1 {
        return MASK.to_string();
    }
    let (first, last) = (&characters[..SHOWN.0], &characters[characters.len() - SHOWN.1..]);
    first.iter().chain([&MASK]).chain(last).collect()
}

/// Whether `secret` has the form of a masked one.
pub fn is_masked(secret: &str) -> bool {
    secret.contains(MASK)
}

/// The text in a JSON string.
fn unquoted(string: &RawValue) -> Option<String> {
    serde_json::from_str(string.get()).ok()
}

/// The text `name` among `members`: the last one counts.
fn last_text<'a>(members: &Members<'a>, name: &str) -> Option<&'a RawValue> {
    let is_it = |(named, value): &&(&RawValue, &RawValue)| {
        value.get().starts_with('"') && unquoted(named).as_deref() == Some(name)
    };
    members.0.iter().rev().find(is_it).map(|(_, value)| *value)
}

macro_rules! json_text {
    ($Name:ident, $empty:literal, $schema:tt) => {
        impl Default for $Name {
            fn default() -> Self {
                Self(RawValue::from_string($empty.to_owned()).unwrap_or_default())
            }
        }

        // Free-form JSON may contain a secret, such as an agency's payment key.
        impl std::fmt::Debug for $Name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, concat!(stringify!($Name), "({} bytes)"), self.0.get().len())
            }
        }

        impl PartialEq for $Name {
            fn eq(&self, other: &Self) -> bool {
                self.0.get() == other.0.get()
            }
        }

        // As JSON this prints the value itself. As an item it becomes a map with one special key, which `table::item`
        // replaces with the text.
        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // An item has text; any other JSON is the value itself, as in the demo set.
                let text = match Value::deserialize(deserializer)? {
                    Value::String(text) => text,
                    value => value.to_string(),
                };
                RawValue::from_string(text).map(Self).map_err(de::Error::custom)
            }
        }

        impl Schema for $Name {
            fn schema() -> Value {
                json!($schema)
            }
        }
    };
}

json_text!(JsonObject, "{}", {"type": "object", "additionalProperties": true});
json_text!(JsonArray, "[]", {"type": "array", "items": {}});
json_text!(JsonObjects, "[]", {"type": "array", "items": {"type": "object", "additionalProperties": true}});

/// The most bytes of a free-form value.
const MOST: usize = 32 * 1024;

/// `text` as a free-form value, unless it is too long.
fn bounded(text: &str, at: &Location, issues: &mut Issues) -> Option<Box<RawValue>> {
    if text.len() > MOST {
        let msg = format!("JSON should have at most {MOST} bytes, not {}", text.len());
        issues.push(at.issue(words::TOO_LONG, msg));
        return None;
    }
    RawValue::from_string(text.to_owned()).ok()
}

impl Parse for JsonArray {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        match raw.as_array() {
            Some(_) => bounded(raw.source(), at, issues).map(Self),
            None => reject(issues, at, words::LIST),
        }
    }
}

impl Parse for JsonObjects {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        Vec::<JsonObject>::parse(raw, at, issues)?;
        bounded(raw.source(), at, issues).map(Self)
    }
}

impl Parse for JsonObject {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        match raw.as_object() {
            Some(text) => bounded(text, at, issues).map(Self),
            None => reject(issues, at, words::DICT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> JsonObject {
        serde_json::from_str::<Box<RawValue>>(json).map(JsonObject).unwrap()
    }

    #[test]
    fn a_masked_secret_shows_its_ends_unless_it_is_short() {
        for (sent, shown) in [
            (r#"{"key":"sk_live_0123456789abcd"}"#, r#"{"key":"sk_live…abcd"}"#),
            (r#"{ "a" : 1.0, "k\u0065y":"sk_live_0123456789abcd" }"#, r#"{"a":1.0,"k\u0065y":"sk_live…abcd"}"#),
            (
                r#"{"key":"sk_live_first_one","key":"sk_live_second_one"}"#,
                r#"{"key":"sk_live…_one","key":"sk_live…_one"}"#,
            ),
            (r#"{"key":"0123456789a"}"#, r#"{"key":"…"}"#),
            (r#"{"key":"\ud800 0123456789abcdef"}"#, r#"{"key":"…"}"#),
            (r#"{"key":7,"other":"sk_live_0123456789abcd"}"#, r#"{"key":7,"other":"sk_live_0123456789abcd"}"#),
            (r#"{ "spaces" : [ 1 ] }"#, r#"{ "spaces" : [ 1 ] }"#),
        ] {
            let masked = object(sent).masked("key");
            assert_eq!(masked.0.get(), shown);
            assert_eq!(masked.masked("key").0.get(), shown, "a second mask changes nothing");
        }
    }

    #[test]
    fn a_masked_value_sent_back_keeps_the_stored_secret() {
        let stored = object(r#"{"key":"sk_live_0123456789abcd","plan":1}"#);
        for (sent, kept) in [
            (r#"{"key":"sk_live…abcd","plan":2}"#, r#"{"key":"sk_live_0123456789abcd","plan":2}"#),
            // The key may have been replaced since it was read.
            (r#"{"key":"sk_test…wxyz"}"#, r#"{"key":"sk_live_0123456789abcd"}"#),
            (r#"{"key":"sk_live_another_one"}"#, r#"{"key":"sk_live_another_one"}"#),
            (r#"{"plan":3}"#, r#"{"plan":3}"#),
        ] {
            assert_eq!(object(sent).unmasked("key", &stored).0.get(), kept);
        }
        assert_eq!(object(r#"{"key":"…"}"#).unmasked("key", &object("{}")).0.get(), r#"{"key":"…"}"#);
    }
}
