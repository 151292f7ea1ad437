//! Filters of lists: sets of rows that have the same value in a field, so that only such rows are listed, with a total.
//!
//! The rows with one value are a *set* of ordinals, and so are the rows that match several filters at once: a record
//! with the terms `status=closed` and `assistant_id=A` is in the sets `status=closed`, `assistant_id=A`, and both
//! together. If a value is *sparse*, few rows have it, and its set is never combined: each combination would be one
//! more set to write for each row, and the common ordinals of two sets are quickly found if one of them is small. An
//! ordinal is a bit. A *block* of 1024 ordinals is an item of sixteen numbers of 64 bits each. A *section* counts the
//! ordinals of 32 blocks, so that a page is found by the counts, and then by the bits of the few blocks that it
//! touches. After the first million ordinals, a *volume* counts the ordinals of 32 sections, and only the sections that
//! a page may touch are read.
//!
//! A list that can be filtered by dates has a set of all its rows too, and each block of its sets has a span: see
//! [`dates`](crate::table::dates).
//!
//! A request writes its row and no set: otherwise all requests of an organisation would conflict there. The sets are
//! updated from the table's stream ([`follow`]), many changes at once, a
//! moment later. So a total may be a moment old, but a page contains matching rows only. A change says only which rows
//! to read: a row is put into the sets of its current terms. So a change that is handled late or twice does no harm.

mod block;
mod dates;
mod follow;
mod marks;
mod select;

use crate::input::schema::{Member, Schema};
use crate::input::{Issues, Parse, Source, member};
use crate::values::id::Id;

pub use follow::{Move, follow};
pub use marks::{Marks, follow_marks};

/// A field with a value, of a filter or of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    field: &'static str,
    value: String,
    /// Whether few rows have this value.
    sparse: bool,
}

/// A value by which lists can be filtered.
pub trait FilterValue {
    /// The type of the value in the query.
    type Asked: Parse + Schema + FilterValue;

    /// The value as text; `None` if there is no value.
    fn text(&self) -> Option<String>;
}

impl<T: Id> FilterValue for T {
    type Asked = T;

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl<T: Id> FilterValue for Option<T> {
    type Asked = T;

    fn text(&self) -> Option<String> {
        self.as_ref().and_then(FilterValue::text)
    }
}

impl FilterValue for bool {
    type Asked = Self;

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Term {
    /// The term of a row whose `field` has this value; `None` if it has no value.
    pub fn of<T: FilterValue>(field: &'static str, value: &T) -> Option<Self> {
        value.text().map(|value| Self { field, value, sparse: false })
    }

    /// The term that a query asks for, if any; `None` after an issue.
    pub fn read<T: FilterValue>(field: &'static str, source: &Source<'_>, issues: &mut Issues) -> Option<Vec<Self>> {
        let asked = source.optional::<Option<T::Asked>>(field, issues, || None)?;
        Some(asked.iter().filter_map(|asked| Self::of(field, asked)).collect())
    }

    /// This term, with a value that few rows have.
    #[must_use]
    pub fn sparse(self) -> Self {
        Self { sparse: true, ..self }
    }

    /// The field.
    pub(super) const fn field(&self) -> &'static str {
        self.field
    }

    /// The value, as text.
    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// The member of a query's schema.
    pub fn member<T: FilterValue>(field: &'static str, doc: &str) -> Member {
        member::<T::Asked>(field, false, doc)
    }
}

/// The set of the rows of `list` that match all of `terms`.
fn set(list: &str, terms: &[&Term]) -> String {
    let terms: Vec<String> = terms.iter().map(|term| format!("{}={}", term.field, term.value)).collect();
    format!("{list}#{}", terms.join("&"))
}

/// All sets that contain a row with these terms: one for each combination of terms that are not sparse, one for each
/// sparse term, and if it is `dated`, the set of all rows.
fn sets(list: &str, terms: &[Term], dated: bool) -> Vec<String> {
    let (sparse, others): (Vec<&Term>, Vec<&Term>) = terms.iter().partition(|term| term.sparse);
    let chosen = |mask: u32| {
        let terms: Vec<&Term> =
            (0..).zip(&others).filter(|(bit, _)| mask & 1 << bit != 0).map(|(_, term)| *term).collect();
        set(list, &terms)
    };
    let alone = sparse.iter().map(|term| set(list, &[term]));
    (u32::from(!dated)..1_u32 << others.len()).map(chosen).chain(alone).collect()
}

/// The sets whose common ordinals are the rows that match all of `terms`, the smallest first.
fn sets_of_query(list: &str, terms: &[Term]) -> Vec<String> {
    let (sparse, others): (Vec<&Term>, Vec<&Term>) = terms.iter().partition(|term| term.sparse);
    let together = (sparse.is_empty() || !others.is_empty()).then(|| set(list, &others));
    sparse.iter().map(|term| set(list, &[term])).chain(together).collect()
}
