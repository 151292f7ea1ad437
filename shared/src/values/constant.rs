//! Constants: fields that the specification has, and that no operation sets.

use serde::Serialize;
use serde_json::{Value, json};

use crate::input::schema::Schema;

/// False, in every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlwaysFalse;

impl AlwaysFalse {
    /// The constant, which every record of a kind has.
    pub const fn of<R>(_: &R) -> Self {
        Self
    }
}

impl Serialize for AlwaysFalse {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl Schema for AlwaysFalse {
    fn schema() -> Value {
        json!({"type": "boolean", "const": false})
    }
}

/// The number 0, in every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlwaysZero;

impl AlwaysZero {
    /// The constant, which every record of a kind has.
    pub const fn of<R>(_: &R) -> Self {
        Self
    }
}

impl Serialize for AlwaysZero {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(0)
    }
}

impl Schema for AlwaysZero {
    fn schema() -> Value {
        json!({"type": "integer", "const": 0})
    }
}
