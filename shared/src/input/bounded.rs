//! Lists in a body whose number of items is bounded.

use serde::{Deserialize, Serialize};

use crate::input::schema::{Schema, Value};
use crate::input::{Issues, Location, Parse, Raw, bounded_list};

/// At most `MOST` items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpTo<const MOST: usize, T>(pub Vec<T>);

impl<const MOST: usize, T> UpTo<MOST, T> {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<const MOST: usize, T> Default for UpTo<MOST, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<const MOST: usize, T: Parse> Parse for UpTo<MOST, T> {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        bounded_list(raw, at, issues, (0, MOST)).map(Self)
    }
}

/// At least one item, and at most `MOST`.
#[derive(Debug)]
pub struct OneTo<const MOST: usize, T>(pub Vec<T>);

impl<const MOST: usize, T: Parse> Parse for OneTo<MOST, T> {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        bounded_list(raw, at, issues, (1, MOST)).map(Self)
    }
}

impl<const MOST: usize, T: Schema> Schema for OneTo<MOST, T> {
    fn schema() -> Value {
        let mut schema = UpTo::<MOST, T>::schema();
        schema["minItems"] = 1.into();
        schema
    }
}

impl<const MOST: usize, T: Schema> Schema for UpTo<MOST, T> {
    fn schema() -> Value {
        let mut schema = Vec::<T>::schema();
        schema["maxItems"] = MOST.into();
        schema
    }
}
