//! Texts of callers, which have at most so many characters.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::input::schema::{MOST, Schema, Value};
use crate::input::{Issues, Location, Parse, Raw, text_of};

/// A text of at most `LONGEST` characters. A stored one may be longer: the limit holds where a caller sends it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text<const LONGEST: usize>(String);

/// The name of a record.
pub type Name = Text<256>;
/// The description of a record.
pub type Description = Text<65_536>;
/// The instructions of an assistant.
pub type Prompt = Text<131_072>;
/// The text of a message.
pub type MessageText = Text<32_768>;

impl<const LONGEST: usize> Text<LONGEST> {
    /// The most characters.
    pub const MOST: usize = LONGEST;

    /// The text itself.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl<const LONGEST: usize> Deref for Text<LONGEST> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const LONGEST: usize> fmt::Display for Text<LONGEST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<const LONGEST: usize> From<String> for Text<LONGEST> {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl<const LONGEST: usize> From<&str> for Text<LONGEST> {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<const LONGEST: usize> PartialEq<&str> for Text<LONGEST> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl<const LONGEST: usize> Parse for Text<LONGEST> {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        text_of(LONGEST, raw, at, issues).map(Self)
    }
}

impl<const LONGEST: usize> Schema for Text<LONGEST> {
    fn schema() -> Value {
        json!({"type": "string", MOST: LONGEST})
    }
}
