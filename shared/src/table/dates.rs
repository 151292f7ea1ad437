//! Filters of lists by the time at which rows were made: `date_from` and `date_to`.
//!
//! Rows stand in the order of their ordinals, and the times at which they were made are nearly in that order, but not quite: a request takes
//! its time, and its ordinal a moment later; a request that is executed again keeps its time. So each block of a set has a *span*, the
//! earliest and the latest time of all rows that were ever in it, and its section repeats the span beside the count. A block whose span
//! lies within the dates counts as a whole, and one whose span lies outside not at all. Of the others, hardly more than the two at the
//! edges, the times of the rows themselves are read.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Deserialize;

use crate::request::error::Issues;
use crate::request::input::{Source, member};
use crate::table::item::{Item, from_item, number};
use crate::table::keys::{Key, list_row};
use crate::table::list::{BLOCK, numbers_of};
use crate::table::{Table, TableError};
use crate::values::schema::Member;
use crate::values::time::{DateOrTime, Timestamp};

/// Blocks of which the rows are read at the same time.
const CONCURRENT_BLOCKS: usize = 4;

/// The times at which the wanted rows were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dates {
    /// The first of them.
    pub from: Option<Timestamp>,
    /// The time behind the last of them.
    pub to: Option<Timestamp>,
}

impl Dates {
    /// Reads the dates from a query. None after an issue.
    pub fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let from = source.optional::<Option<DateOrTime>>("date_from", issues, || None);
        let to = source.optional::<Option<DateOrTime>>("date_to", issues, || None);
        Some(Self { from: from?.map(|from| from.0), to: to?.map(|to| to.0) })
    }

    /// The members of a query's schema.
    pub fn members() -> [Member; 2] {
        [
            member::<DateOrTime>(
                "date_from",
                false,
                "Those made at this time or later only; a date means its beginning, in UTC.",
            ),
            member::<DateOrTime>(
                "date_to",
                false,
                "Those made before this time only; a date means its beginning, in UTC.",
            ),
        ]
    }

    /// Whether they are those of all rows.
    pub const fn are_open(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether `time` is among them.
    pub fn contain(&self, time: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time < to)
    }

    /// Whether they may contain a time of `span`.
    fn meet(&self, span: Span) -> bool {
        self.from.is_none_or(|from| from <= span.last) && self.to.is_none_or(|to| span.first < to)
    }
}

/// The earliest and the latest of some times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    first: Timestamp,
    last: Timestamp,
}

impl Span {
    /// Of one time.
    pub(super) const fn of(time: Timestamp) -> Self {
        Self { first: time, last: time }
    }

    /// Of the times of both.
    pub(super) fn around(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
        Some(Self { first: a.first.min(b.first), last: a.last.max(b.last) })
    }

    /// The span in the attributes `first` and `last` of an item, in milliseconds since 1970 began.
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

impl Dates {
    /// Takes the blocks from `counts`, those of a set, that have no row made within the dates. Returns those that have such rows, and perhaps
    /// others too.
    pub(super) fn narrow(&self, sections: &[Item], counts: &mut BTreeMap<u32, u32>) -> BTreeSet<u32> {
        if self.are_open() {
            return BTreeSet::new();
        }
        let (firsts, lasts) = (numbers_of::<i64>(sections, 'f'), numbers_of::<i64>(sections, 'l'));
        let span = |block: &u32| {
            let time = |times: &BTreeMap<u32, i64>| times.get(block).copied().map(Timestamp::from_unix_millis);
            Some(Span { first: time(&firsts)?, last: time(&lasts)? })
        };
        counts.retain(|block, count| *count > 0 && span(block).is_none_or(|span| self.meet(span)));
        let whole = |block: &u32| span(block).is_some_and(|span| self.contain(span.first) && self.contain(span.last));
        counts.keys().copied().filter(|block| !whole(block)).collect()
    }
}

impl Table {
    /// The rows of these blocks of `set` that were made within `dates`. All rows of a list are read at once; of a smaller set it is looked up
    /// first which those are.
    pub(super) async fn edges(
        &self,
        (list, set): (&str, &str),
        blocks: &BTreeSet<u32>,
        dates: &Dates,
        all_rows: bool,
    ) -> Result<BTreeMap<u32, Vec<u32>>, TableError> {
        // Collected first: the compiler does not accept a stream over a lazy iterator of borrowing futures as `Send`.
        let edges: Vec<_> = blocks.iter().map(|block| self.made_within((list, set), *block, dates, all_rows)).collect();
        stream::iter(edges).buffered(CONCURRENT_BLOCKS).try_collect().await
    }

    async fn made_within(
        &self,
        (list, set): (&str, &str),
        block: u32,
        dates: &Dates,
        all_rows: bool,
    ) -> Result<(u32, Vec<u32>), TableError> {
        #[derive(Deserialize)]
        struct Made {
            created_at: Timestamp,
        }
        let mut rows: Vec<u32> = if all_rows {
            (block * BLOCK..=block * BLOCK + (BLOCK - 1)).collect()
        } else {
            self.members(set, vec![block]).await?.remove(&block).unwrap_or_default()
        };
        let key = |ordinal: &u32| list_row(&self.tenant, list, *ordinal);
        let keys: Vec<Key> = rows.iter().map(key).collect();
        let mut made = self.store.get_attributes(&keys, "pk, sk, created_at").await?;
        rows.retain(|ordinal| {
            let made: Option<Made> = made.remove(&key(ordinal)).and_then(|item| from_item(item).ok());
            made.is_some_and(|made| dates.contain(made.created_at))
        });
        Ok((block, rows))
    }
}
