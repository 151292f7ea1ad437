//! Secret text, which is stored and sent, but which `Debug` hides.

use serde::{Deserialize, Serialize};

use crate::input::schema::{Schema, Value};

/// A secret. `Debug` does not show its text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl Schema for Secret {
    fn schema() -> Value {
        String::schema()
    }
}
