//! E-mail addresses and telephone numbers. In an organisation, each belongs to one record at most.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::input::schema::{Schema, Value};
use crate::input::{Issues, Location, Parse, Raw, reject, words};
use crate::table::filters::FilterValue;
use crate::table::unique::Unique;

/// An e-mail address as it was written. Two addresses that differ only in upper and lower case are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Email(String);

/// A telephone number in the form of E.164: `+`, the country code and the number, 8 to 15 digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PhoneNumber(String);

/// The fewest and the most digits of a telephone number.
const DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

impl Email {
    /// The address in `text`, if it is one: characters, `@`, characters, without a space.
    pub fn new(text: &str) -> Option<Self> {
        let (local, domain) = text.rsplit_once('@')?;
        let is_one =
            !local.is_empty() && !domain.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
        is_one.then(|| Self(text.to_owned()))
    }

    /// The address as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PhoneNumber {
    /// The number in `text`, if it is one. It may contain `+`, spaces, hyphens, dots and brackets.
    pub fn new(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| !matches!(c, ' ' | '-' | '.' | '(' | ')' | '[' | ']')).collect();
        let digits = digits.strip_prefix('+').unwrap_or(&digits);
        // No country code begins with 0: such a number is a local one.
        let is_one = digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0');
        (is_one && DIGITS.contains(&digits.len())).then(|| Self(format!("+{digits}")))
    }

    /// The number, with its `+`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Parse for Email {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        Self::new(&text).or_else(|| reject(issues, at, words::EMAIL))
    }
}

impl Parse for PhoneNumber {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        Self::new(&text).or_else(|| reject(issues, at, words::PHONE_NUMBER))
    }
}

impl Schema for Email {
    fn schema() -> Value {
        json!({"type": "string", "format": "email"})
    }
}

impl Schema for PhoneNumber {
    fn schema() -> Value {
        json!({"type": "string", "format": "phone", "pattern": r"^[-+0-9 .()\[\]]{8,}$"})
    }
}

impl FilterValue for Email {
    type Asked = Self;

    fn text(&self) -> Option<String> {
        Some(self.0.to_lowercase())
    }
}

impl FilterValue for PhoneNumber {
    type Asked = Self;

    fn text(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

impl FilterValue for Option<Email> {
    type Asked = Email;

    fn text(&self) -> Option<String> {
        self.as_ref().and_then(FilterValue::text)
    }
}

impl FilterValue for Option<PhoneNumber> {
    type Asked = PhoneNumber;

    fn text(&self) -> Option<String> {
        self.as_ref().and_then(FilterValue::text)
    }
}

impl Unique for Email {
    const TAKEN: &'static str = "email_taken";
}

impl Unique for PhoneNumber {
    const TAKEN: &'static str = "phone_taken";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phone_number_is_reduced_to_a_plus_and_digits() {
        for text in ["+49 151 234-5678", "49(151)234.5678", "[+49]1512345678", "491512345678", " 491512345678"] {
            assert_eq!(PhoneNumber::new(text).unwrap().as_str(), "+491512345678", "{text}");
        }
        for text in
            ["", "+", "1234567", "1234567890123456", "0151 2345678", "49-151-abc", "++491512345678", "4915+12345678"]
        {
            assert_eq!(PhoneNumber::new(text), None, "{text}");
        }
    }

    #[test]
    fn an_email_keeps_its_case_but_is_compared_without_it() {
        let (small, large) = (Email::new("ada@example.com").unwrap(), Email::new("Ada@Example.COM").unwrap());
        assert_eq!(large.as_str(), "Ada@Example.COM");
        assert_eq!(small.text(), large.text());
        for text in ["", "@", "a@", "@b", "ab", "a b@c", "a@b\n"] {
            assert_eq!(Email::new(text), None, "{text:?}");
        }
    }
}
