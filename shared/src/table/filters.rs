//! Filters of lists: which rows have the same value in a field, so that those alone are listed, with a total.
//!
//! The rows with one value are a *set* of ordinals, and so are the rows that match several filters at once: a record with the terms
//! `status=closed` and `assistant_id=A` stands in the sets `status=closed`, `assistant_id=A`, and both together. Where a value is *sparse*, few
//! rows have it, and its set stands alone: each set with it would be one more to write for each row, and what two sets have in common is
//! soon found where one of them is small. An ordinal is a bit. A
//! *block* of 1024 ordinals is an item of sixteen numbers of 64 bits each. A *section* counts the
//! ordinals of 32 blocks, so that a page is found by the counts, then by the bits of the few blocks that it lies in. Behind the first million
//! ordinals, a *volume* counts those of 32 sections, and only the sections are read that a page may lie in.
//!
//! A list that can be asked for the rows of some days has a set of all its rows too, and each block of its sets a span: see
//! [`dates`](crate::table::dates).
//!
//! A request writes its row and no set: all requests of an organisation would meet there. The sets follow the table's stream
//! ([`Table::follow`](crate::table::part::Table::follow)), many changes at once, a moment later. So a total may be a moment old; a page never has a row that does not match.
//! A change says only which rows to read. A row is put into the sets of the terms that it has now. So a change that is handled late or twice does
//! no harm.

mod block;
mod dates;
mod follow;
mod select;

use crate::input::schema::{Member, Schema};
use crate::input::{Issues, Parse, Source, member};
use crate::values::id::Id;

pub use follow::{Move, follow};

/// A field with a value: what a list is filtered by, or what a row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    field: &'static str,
    value: String,
    /// Whether few rows have this value.
    sparse: bool,
}

/// A value that lists can be filtered by.
pub trait FilterValue {
    /// What the query has.
    type Asked: Parse + Schema + FilterValue;

    /// The value in words; none where there is no value.
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

impl Term {
    /// The term of a row whose `field` has this value; none where it has no value.
    pub fn of<T: FilterValue>(field: &'static str, value: &T) -> Option<Self> {
        value.text().map(|value| Self { field, value, sparse: false })
    }

    /// The term that a query asks for, if it asks for one. None after an issue.
    pub fn read<T: FilterValue>(field: &'static str, source: &Source<'_>, issues: &mut Issues) -> Option<Vec<Self>> {
        let asked = source.optional::<Option<T::Asked>>(field, issues, || None)?;
        Some(asked.iter().filter_map(|asked| Self::of(field, asked)).collect())
    }

    /// This term, of a value that few rows have.
    #[must_use]
    pub fn sparse(self) -> Self {
        Self { sparse: true, ..self }
    }

    /// The field.
    pub(super) const fn field(&self) -> &'static str {
        self.field
    }

    /// The value, in words.
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

/// All sets that a row with these terms stands in: one for each choice of at least one of those that are not sparse, one for each that is,
/// and where it is `dated`, that of all rows.
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
