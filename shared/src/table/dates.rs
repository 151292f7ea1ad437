//! The dates by which lists can be filtered, `date_from` and `date_to`, and the span of some times.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::input::schema::Member;
use crate::input::{Issues, Source, member};
use crate::table::item::{Item, number};
use crate::values::time::{DateOrTime, Timestamp};

/// The range of creation times of the wanted rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dates {
    /// The first time of the range.
    pub from: Option<Timestamp>,
    /// The time after the range.
    pub to: Option<Timestamp>,
}

impl Dates {
    /// Reads the dates from a query; `None` after an issue.
    pub fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let from = source.optional::<Option<DateOrTime>>("date_from", issues, || None);
        let to = source.optional::<Option<DateOrTime>>("date_to", issues, || None);
        Some(Self { from: from?.map(|from| from.at), to: to?.map(|to| to.at) })
    }

    /// The members of a query's schema.
    pub fn members() -> [Member; 2] {
        [
            member::<DateOrTime>(
                "date_from",
                false,
                "Only records that were made at this time or later. A date means 00:00 UTC of that day.",
            ),
            member::<DateOrTime>(
                "date_to",
                false,
                "Only records that were made before this time. A date means 00:00 UTC of that day.",
            ),
        ]
    }

    /// Whether the range includes all times.
    pub const fn are_unbounded(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether `time` is in the range.
    pub fn contain(&self, time: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time < to)
    }

    /// Whether the range may contain a time of `span`.
    pub(super) fn overlap(&self, span: Span) -> bool {
        self.from.is_none_or(|from| from <= span.last) && self.to.is_none_or(|to| span.first < to)
    }
}

/// The earliest and the latest of some times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

impl Span {
    /// The span of one time.
    pub(super) const fn of(time: Timestamp) -> Self {
        Self { first: time, last: time }
    }

    /// The span that contains both.
    pub(super) fn around(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
        Some(Self { first: a.first.min(b.first), last: a.last.max(b.last) })
    }

    /// The span in the attributes `first` and `last` of an item, in milliseconds since 1970.
    pub(super) fn read(item: &Item, first: &str, last: &str) -> Option<Self> {
        let time = |name: &str| item.get(name)?.as_n().ok()?.parse().ok().map(Timestamp::from_unix_millis);
        Some(Self { first: time(first)?, last: time(last)? })
    }

    /// The two attributes.
    pub(super) fn attributes(&self, first: &str, last: &str) -> [(String, AttributeValue); 2] {
        let attribute = |name: &str, time: Timestamp| (name.to_owned(), number(time.unix_millis()));
        [attribute(first, self.first), attribute(last, self.last)]
    }
}
