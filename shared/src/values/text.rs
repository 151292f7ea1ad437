//! Texts of callers: their longest lengths, and addresses in them.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use crate::input::schema::{MOST, Schema, Value};
use crate::input::{Issues, Location, Parse, Raw, reject, text_of, words};

/// Whether `text` is the address of a page or a file on the web.
pub fn is_web_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| ["https", "http"].contains(&url.scheme()))
}

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
/// The text of a message that is not empty.
pub type SomeText = NonEmpty<32_768>;
/// A caller's own identifier of what it reports. It is not empty.
pub type ExternalId = NonEmpty<256>;

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

/// A text of one character at least.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NonEmpty<const LONGEST: usize>(Text<LONGEST>);

impl<const LONGEST: usize> NonEmpty<LONGEST> {
    /// The text itself.
    pub fn into_text(self) -> Text<LONGEST> {
        self.0
    }
}

impl<const LONGEST: usize> Deref for NonEmpty<LONGEST> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const LONGEST: usize> Parse for NonEmpty<LONGEST> {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = Text::parse(raw, at, issues)?;
        if text.is_empty() { reject(issues, at, words::TEXT_TOO_SHORT) } else { Some(Self(text)) }
    }
}

impl<const LONGEST: usize> Schema for NonEmpty<LONGEST> {
    fn schema() -> Value {
        let mut schema = Text::<LONGEST>::schema();
        schema["minLength"] = json!(1);
        schema
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
