//! Ids of the payment provider, and the order of its events.

use crate::values::hash::sha256;
use serde::{Deserialize, Serialize};

/// An id or a word of the provider: 1 to 255 visible characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProviderId(String);

impl ProviderId {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its SHA-256, which keys of the table contain instead of the text.
    pub fn fingerprint(&self) -> [u8; 32] {
        sha256([self.0.as_bytes()])
    }
}

impl TryFrom<String> for ProviderId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let visible = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        visible.then_some(Self(text)).ok_or("an id has 1 to 255 visible characters")
    }
}

impl From<ProviderId> for String {
    fn from(id: ProviderId) -> Self {
        id.0
    }
}

/// The order of an event among the events about the same thing. Several often have the same second: then the `rank`
/// decides, and finally the id, so that the order of their arrival makes no difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventOrder {
    /// When the event happened, in seconds since 1970.
    pub created: i64,
    /// Of two events of one second, the one with the higher rank is later.
    pub rank: u8,
    /// The event.
    pub event_id: ProviderId,
}
