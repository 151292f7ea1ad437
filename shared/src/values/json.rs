//! Free-form JSON, stored as the text that was sent.
//!
//! DynamoDB's maps refuse empty keys, more than 32 levels and more than 38 digits. A string attribute accepts all of them, and the answer is
//! equal to the input, byte by byte. Nothing is parsed in between.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::request::error::{Issues, Location};
use crate::request::input::{Parse, Raw, Source, reject, words};
use crate::values::schema::Schema;

/// A free-form JSON object.
#[derive(Clone)]
pub struct JsonObject(Box<RawValue>);

/// A free-form JSON array.
#[derive(Clone)]
pub struct JsonArray(Box<RawValue>);

impl JsonObject {
    /// The member `name`, if it exists and is text.
    pub fn text(&self, name: &'static str) -> Option<String> {
        let source = Source::body(Some(self.0.get().as_bytes())).ok()?;
        source.required(name, &mut Issues::new())
    }
}

macro_rules! json_text {
    ($Name:ident, $empty:literal, $type:literal) => {
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

        // As JSON this prints the value itself. As an item it becomes a map with one special key, which `table::store` replaces by the text.
        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // An item has text; anything else is the value itself, as in the demo set.
                let text = match Value::deserialize(deserializer)? {
                    Value::String(text) => text,
                    value => value.to_string(),
                };
                RawValue::from_string(text).map(Self).map_err(de::Error::custom)
            }
        }

        impl Schema for $Name {
            fn schema() -> Value {
                json!({"type": $type})
            }
        }
    };
}

json_text!(JsonObject, "{}", "object");
json_text!(JsonArray, "[]", "array");

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

impl Parse for JsonObject {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        match raw.as_object() {
            Some(text) => bounded(text, at, issues).map(Self),
            None => reject(issues, at, words::DICT),
        }
    }
}
