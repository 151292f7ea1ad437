//! Unique values: at most one row of a list has a given value in a field.

use crate::table::filters::{FilterValue, Term};

/// A type whose values are unique among the records of one kind.
pub trait Unique: FilterValue {
    /// The kind of the 409 if another record has the value.
    const TAKEN: &'static str;
}

impl<T: Unique> Unique for Option<T>
where
    Self: FilterValue,
{
    const TAKEN: &'static str = T::TAKEN;
}

/// A value that no other row of the list may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueValue {
    /// The field, with its value.
    pub term: Term,
    /// The kind of the 409.
    pub taken: &'static str,
}

impl UniqueValue {
    /// The value of `field`; `None` if it has none.
    pub fn of<T: Unique>(field: &'static str, value: &T) -> Option<Self> {
        Term::of(field, value).map(|term| Self { term, taken: T::TAKEN })
    }
}
