//! Free-form JSON, stored as the text that was sent.
//!
//! DynamoDB's maps refuse empty keys, more than 32 levels and more than 38 digits. A string attribute accepts all of
//! them, and the answer is equal to the input, byte by byte. Nothing is parsed in between.

mod guarded;
mod nulls;
mod texts;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::input::schema::Schema;
use crate::input::{Issues, Location, Parse, Raw, Source, reject, words};
pub use crate::values::json::guarded::GuardedObject;
pub use crate::values::json::nulls::without_nulls;
use crate::values::json::texts::{JsonText, texts};
use crate::values::mask::is_masked;

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
    /// What `value` is in an answer; `None` if that is no JSON.
    pub fn of(value: &impl Serialize) -> Option<Self> {
        serde_json::value::to_raw_value(value).ok().map(Self)
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.0.get().len()
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.0.get() == "{}"
    }

    /// The member `name` alone.
    pub fn only(&self, name: &str) -> Option<Self> {
        let mut members = self.read::<BTreeMap<String, Box<RawValue>>>()?;
        members.retain(|member, _| member == name);
        Self::of(&members)
    }

    /// This object with one more member; `None` if that is no JSON.
    pub fn with(&self, name: &str, value: &impl Serialize) -> Option<Self> {
        let mut members = self.read::<BTreeMap<String, Box<RawValue>>>()?;
        members.insert(name.to_owned(), serde_json::value::to_raw_value(value).ok()?);
        Self::of(&members)
    }

    /// Whether it has a member `name`.
    pub fn has(&self, name: &str) -> bool {
        self.read::<HashMap<String, Box<RawValue>>>().is_some_and(|members| members.contains_key(name))
    }

    /// What it is an answer of.
    pub fn read<T: de::DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.0.get()).ok()
    }

    /// The members of `was` that are missing here, or have another value.
    pub fn former(&self, was: &Self) -> Option<Self> {
        let members = |object: &Self| object.read::<BTreeMap<String, Box<RawValue>>>();
        let (is, mut former) = (members(self)?, members(was)?);
        former.retain(|name, value| is.get(name).is_none_or(|is| is.get() != value.get()));
        Self::of(&former)
    }

    /// The member `name`, if it exists and is text.
    pub fn text(&self, name: &'static str) -> Option<String> {
        let source = Source::body(Some(self.0.get().as_bytes())).ok()?;
        source.required(name, &mut Issues::new())
    }

    /// This object with its secrets masked, at any depth.
    #[must_use]
    pub fn masked(&self) -> Self {
        self.with_texts(|text| text.is_secret().then(|| serde_json::to_string(&text.mask()).ok())?)
    }

    /// This object with its masked texts replaced by the secrets of `stored`. A masked text means the secret at its own
    /// place, unless only a secret of another place has this mask: items of an array move.
    #[must_use]
    pub fn unmasked(&self, stored: &Self) -> Self {
        let secrets: Vec<JsonText> = texts(stored.0.get()).filter(JsonText::is_secret).collect();
        // Of two members with the same name the last one counts.
        let by_place: HashMap<u64, &JsonText> = secrets.iter().map(|secret| (secret.place, secret)).collect();
        let mut by_mask: HashMap<String, Vec<&JsonText>> = HashMap::new();
        for secret in by_place.values() {
            by_mask.entry(secret.mask()).or_default().push(secret);
        }
        self.with_texts(|sent| {
            let text = sent.text.as_deref().filter(|text| is_masked(text))?;
            let here = by_place.get(&sent.place).copied();
            let moved = match by_mask.get(text).map(Vec::as_slice) {
                // In a place that is not masked, an answer would show the secret.
                Some([only]) if sent.is_named_secret || !only.is_named_secret => Some(*only),
                _ => None,
            };
            let secret = here.filter(|here| here.mask() == text).or(moved).or(here)?;
            Some(stored.0.get()[secret.range.clone()].to_owned())
        })
    }

    /// This object with each text replaced by the result of `new`, which is JSON, if there is one.
    fn with_texts(&self, new: impl Fn(&JsonText) -> Option<String>) -> Self {
        let (json, mut is, mut end) = (self.0.get(), String::new(), 0);
        for text in texts(json) {
            if let Some(new) = new(&text) {
                is += &json[end..text.range.start];
                is += &new;
                end = text.range.end;
            }
        }
        is += &json[end..];
        RawValue::from_string(is).map_or_else(|_| self.clone(), Self)
    }
}

macro_rules! json_text {
    ($Name:ident, $empty:literal, $schema:tt) => {
        impl $Name {
            /// Its JSON.
            pub fn as_str(&self) -> &str {
                self.0.get()
            }
        }

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
pub const MOST: usize = 32 * 1024;

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
    fn a_secret_is_masked_at_any_depth_by_its_name_or_form() {
        let deep = format!("{}{{\"token\":\"x\"}}{}", "{\"a\":[".repeat(5000), "]}".repeat(5000));
        for (sent, shown) in [
            (r#"{"api_key":"sk_live_0123456789abcd"}"#, r#"{"api_key":"sk_live…abcd"}"#),
            (
                r#"{ "a" : 1.0, "api_k\u0065y":"sk_live_0123456789abcd" }"#,
                r#"{ "a" : 1.0, "api_k\u0065y":"sk_live…abcd" }"#,
            ),
            (r#"{"token":"one","token":"two"}"#, r#"{"token":"…","token":"…"}"#),
            (r#"{"password":"\ud800 0123456789abcdef"}"#, r#"{"password":"…"}"#),
            (r#"{"password":7,"other":"0123456789abcdefghij"}"#, r#"{"password":7,"other":"0123456789abcdefghij"}"#),
            (r#"{"password":"","secret":null}"#, r#"{"password":"","secret":null}"#),
            (r#"{"a":[{"b":{"stripe_secret":"x"}}],"c":"y"}"#, r#"{"a":[{"b":{"stripe_secret":"…"}}],"c":"y"}"#),
            (
                r#"{"secrets":{"google":["x",{"id":"y"}]},"c":"y"}"#,
                r#"{"secrets":{"google":["…",{"id":"…"}]},"c":"y"}"#,
            ),
            (r#"{"note":["say whsec_abc"],"sk_live_names":"stay"}"#, r#"{"note":["…"],"sk_live_names":"stay"}"#),
            (r#"{"a":"\"token\":\"x\"","b":"\\"}"#, r#"{"a":"\"token\":\"x\"","b":"\\"}"#),
            (r#"{ "spaces" : [ 1 ] }"#, r#"{ "spaces" : [ 1 ] }"#),
            (&deep, &deep.replace("\"x\"", "\"…\"")),
        ] {
            let masked = object(sent).masked();
            assert_eq!(masked.0.get(), shown);
            assert_eq!(masked.masked().0.get(), shown, "a second mask changes nothing");
            assert_eq!(masked.unmasked(&object(sent)).masked().0.get(), shown, "sent back");
        }
    }

    #[test]
    fn a_masked_value_sent_back_keeps_the_stored_secret() {
        let stored = object(
            r#"{"key":"sk_live_0123456789abcd","plan":1,"in":[{"password":"a"},{"password":"0123456789abcdefghij"}]}"#,
        );
        for (sent, kept) in [
            (r#"{"key":"sk_live…abcd","plan":2}"#, r#"{"key":"sk_live_0123456789abcd","plan":2}"#),
            // The key may have been replaced since it was read.
            (r#"{"key":"sk_test…wxyz"}"#, r#"{"key":"sk_live_0123456789abcd"}"#),
            (r#"{"key":"sk_live_another_one"}"#, r#"{"key":"sk_live_another_one"}"#),
            (r#"{"plan":3}"#, r#"{"plan":3}"#),
            (r#"{"in":[{"password":"…"},{"password":"b"}]}"#, r#"{"in":[{"password":"a"},{"password":"b"}]}"#),
            // The first item is removed.
            (r#"{"in":[{"password":"0123456…ghij"}]}"#, r#"{"in":[{"password":"0123456789abcdefghij"}]}"#),
            // A place that is not masked gets only a secret whose form shows what it is.
            (r#"{"note":"0123456…ghij"}"#, r#"{"note":"0123456…ghij"}"#),
            (r#"{"note":"sk_live…abcd"}"#, r#"{"note":"sk_live_0123456789abcd"}"#),
        ] {
            assert_eq!(object(sent).unmasked(&stored).0.get(), kept);
        }
        assert_eq!(object(r#"{"key":"…"}"#).unmasked(&object("{}")).0.get(), r#"{"key":"…"}"#);
        // Of two members with the same name the last one counts.
        let twice = object(r#"{"token":"one","token":"two"}"#);
        assert_eq!(object(r#"{"token":"…"}"#).unmasked(&twice).0.get(), r#"{"token":"two"}"#);
    }
}
