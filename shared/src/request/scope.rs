//! Scopes: the records that a key with scopes may read or change.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::input::schema::{Schema, Value};

/// A scope: `<record>:read`, or `<record>:write`, which includes reading.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyScope(String);

impl KeyScope {
    /// The scope of the operations that read records of this kind.
    pub fn read(record: &str) -> Self {
        Self(format!("{record}:read"))
    }

    /// The scope of all operations with records of this kind.
    pub fn write(record: &str) -> Self {
        Self(format!("{record}:write"))
    }

    /// The scope as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a key with this scope may do what `wanted` allows.
    pub fn covers(&self, wanted: &Self) -> bool {
        let reads = |record| wanted.0.strip_suffix(":read") == Some(record);
        self == wanted || self.0.strip_suffix(":write").is_some_and(reads)
    }
}

impl std::fmt::Display for KeyScope {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Schema for KeyScope {
    fn schema() -> Value {
        json!({"type": "string", "pattern": "^[a-z-]+:(read|write)$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_that_writes_also_reads_the_same_record() {
        let (read, write) = (KeyScope::read("contact"), KeyScope::write("contact"));
        assert!(read.covers(&read) && write.covers(&write) && write.covers(&read));
        assert!(!read.covers(&write));
        for other in [KeyScope::read("campaign"), KeyScope::write("campaign"), KeyScope::write("campaign-contact")] {
            assert!(!write.covers(&other) && !read.covers(&other) && !other.covers(&read), "{other}");
        }
    }
}
