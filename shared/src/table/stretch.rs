//! Reads a list row after row, in either order and within dates, for filters that have no sets.
//!
//! Sets of bits ([`filters`](crate::table::filters)) cost units for every change of a row. If rows change often and are
//! rarely asked for, it is cheaper to read them and to leave out what does not match. Each request reads a bounded
//! number of rows, and the next one goes on where it ended.
//!
//! Dates bound what is read. The rows of a list are appended nearly in the order of time, and a row shows between which
//! times it was appended ([`Appended`]). So a binary search finds ordinals before which all rows were appended too early,
//! and ordinals from which on all were appended too late. It is only about what is read: the caller compares the times.
//! If a row is appended long after its time, the head notes how long ([`Table::note_lateness`]), and a search goes so
//! much further.

use std::ops::Range;

use futures_util::future::try_join_all;

use crate::table::dates::Dates;
use crate::table::error::{TableError, was_done};
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, number, values};
use crate::table::keys::{list_head, list_row, list_rows, list_rows_between};
use crate::table::ordinals::{LATENESS, Ordinals};
use crate::table::page::Order;
use crate::table::part::Table;
use crate::table::query::Found;
use crate::table::stored::Listed;
use crate::values::id::{SPREAD, ordinal};
use crate::values::time::Timestamp;

/// A search ends when so few ordinals are left: they are read at once.
const NEAR: u64 = 256;
/// The rows that a step of a search reads. If one of them shows nothing, another one may.
const PROBED: usize = 8;
/// Seconds by which the rows of a list may be out of order: a row is written at most a minute after its ordinal was
/// reserved, and the clocks of two processes differ by seconds.
const DISORDER: i64 = 300;
/// Seconds from the time of a row until it is appended: a longer time is noted.
const PROMPT: i64 = 300;

/// A row that shows when it was appended.
pub trait Appended: Listed {
    /// The time by which dates select it. It is appended at this time or later.
    fn time(&self) -> Timestamp;

    /// A time at which it surely had been appended.
    fn appended_by(&self) -> Timestamp;
}

/// The rows of a list that are still to be read, in an order.
#[derive(Debug)]
pub struct Stretch {
    list: String,
    ordinals: Ordinals,
    order: Order,
    /// The places of their ordinals.
    places: Range<u64>,
}

impl Stretch {
    /// Whether no row is left.
    pub fn is_read(&self) -> bool {
        self.places.is_empty()
    }

    /// Leaves out the rows up to the one with this ordinal.
    fn go_on_after(&mut self, ordinal: u64) {
        let place = self.ordinals.place(ordinal);
        match self.order {
            Order::Ascending => self.places.start = self.places.start.max(place + 1),
            Order::Descending => self.places.end = self.places.end.min(place),
        }
    }

    /// The ranges of ordinals in which the next `count` rows are searched, one after the other. Rows that are spread
    /// are searched first where they are if none was removed.
    fn ranges(&self, count: u64) -> [Range<u64>; 3] {
        let [start, end] = [self.places.start, self.places.end].map(|place| self.ordinals.nth(place));
        let (plain, from) = (start..end.min(SPREAD), start.max(SPREAD));
        match self.order {
            Order::Ascending => {
                let near = from.saturating_add(count).min(end);
                [plain, from..near, near.max(from)..end]
            }
            Order::Descending => {
                let near = end.saturating_sub(count).max(from);
                [near..end, from..near.min(end), plain]
            }
        }
    }
}

impl Table {
    /// The rows of `R`'s list whose times may be within `dates`, after the row with the ordinal `after`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn stretch<R: Appended>(
        &self,
        of: R::Of,
        (dates, order): (Dates, Order),
        after: Option<u64>,
    ) -> Result<Stretch, TableError> {
        let list = R::list(of);
        let head = self.store.get(&list_head(&self.tenant, &list)).await?;
        let (ordinals, lateness) = (Ordinals::of(head.as_ref()), lateness_of(head.as_ref()));
        let mut stretch = Stretch { list, ordinals, order, places: ordinals.cut..ordinals.count() };
        if let Some(after) = after {
            stretch.go_on_after(after);
        }
        // The rows before a cursor were within the dates already.
        if let Some(from) = dates.from.filter(|_| after.is_none() || order == Order::Descending) {
            stretch.places.start = self.first_place::<R>(&stretch, from.plus_seconds(-DISORDER)).await?;
        }
        if let Some(to) = dates.to.filter(|_| after.is_none() || order == Order::Ascending) {
            stretch.places.end = self.end_place::<R>(&stretch, to.plus_seconds(lateness + DISORDER)).await?;
        }
        Ok(stretch)
    }

    /// Notes on the head of a list that some rows were appended this many `seconds` after their times. It is called
    /// after the rows were appended.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn note_lateness<R: Appended>(&self, of: R::Of, seconds: i64) -> Result<(), TableError> {
        if seconds <= PROMPT {
            return Ok(());
        }
        let note = UpdateExpression::new().set(LATENESS, number(seconds));
        // A list that was deleted meanwhile gets no head.
        let more = "attribute_exists(pk) AND (attribute_not_exists(#longest_lateness) OR #longest_lateness < :seconds)";
        let more = Condition::new(more, values([(":seconds", number(seconds))]));
        was_done(self.store.update(&list_head(&self.tenant, &R::list(of)), &note, Some(&more)).await).map(drop)
    }

    /// The next rows of a stretch, at most `limit`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn next_rows<R: Listed>(&self, stretch: &mut Stretch, limit: usize) -> Result<Vec<R>, TableError> {
        let (rows, read) = self.some_rows::<R>(stretch, limit).await?;
        match rows.last() {
            Some(last) if read >= limit => stretch.go_on_after(ordinal(last.uuid())),
            _ => stretch.places.end = stretch.places.start,
        }
        Ok(rows)
    }

    /// The next rows, and how many were read: an unreadable row counts too.
    async fn some_rows<R: Listed>(&self, stretch: &Stretch, limit: usize) -> Result<(Vec<R>, usize), TableError> {
        let (mut rows, mut read): (Vec<R>, _) = (Vec::new(), 0);
        let forward = stretch.order == Order::Ascending;
        for range in stretch.ranges(u64::try_from(limit).unwrap_or(u64::MAX)) {
            if range.is_empty() || read >= limit {
                continue;
            }
            let (partitions, [from, to]) = if range.start < SPREAD {
                let ends = [range.start, range.end - 1].map(|one| list_row(&self.tenant, &stretch.list, one).sk);
                (vec![list_rows(&self.tenant, &stretch.list)], ends)
            } else {
                list_rows_between(&self.tenant, &stretch.list, range)
            };
            let parts =
                partitions.iter().map(|pk| self.store.records_between::<R>(pk, [&from, &to], limit - read, forward));
            for Found { records, read: of_part } in try_join_all(parts).await? {
                rows.extend(records);
                read += of_part;
            }
        }
        rows.sort_by_key(|row| ordinal(row.uuid()));
        let mut rows = stretch.order.of(rows);
        rows.truncate(limit);
        Ok((rows, read))
    }

    /// A place before which all rows were surely appended before `time`.
    async fn first_place<R: Appended>(&self, stretch: &Stretch, time: Timestamp) -> Result<u64, TableError> {
        let Range { mut start, mut end } = stretch.places;
        while start + NEAR < end {
            let middle = start + (end - start) / 2;
            let rows = self.probe::<R>(stretch, middle..end).await?;
            match rows.iter().rfind(|row| row.appended_by() < time) {
                Some(row) => start = stretch.ordinals.place(ordinal(row.uuid())) + 1,
                None => end = middle,
            }
        }
        Ok(start)
    }

    /// A place from which on all rows were surely appended at `time` or later.
    async fn end_place<R: Appended>(&self, stretch: &Stretch, time: Timestamp) -> Result<u64, TableError> {
        let Range { mut start, mut end } = stretch.places;
        while start + NEAR < end {
            let middle = start + (end - start) / 2;
            let rows = self.probe::<R>(stretch, middle..end).await?;
            let late = rows.iter().position(|row| row.time() >= time).unwrap_or(rows.len());
            if late == 0 {
                // There is no row at all, or none before the first late one.
                end = middle;
                continue;
            }
            let place = |row: &R| stretch.ordinals.place(ordinal(row.uuid()));
            start = rows.get(late - 1).map_or(middle, place) + 1;
            end = rows.get(late).map_or(end, place);
        }
        Ok(end)
    }

    /// The first rows of these places.
    async fn probe<R: Listed>(&self, stretch: &Stretch, places: Range<u64>) -> Result<Vec<R>, TableError> {
        let Stretch { ref list, ordinals, .. } = *stretch;
        let probed = Stretch { list: list.clone(), ordinals, order: Order::Ascending, places };
        Ok(self.some_rows(&probed, PROBED).await?.0)
    }
}

/// The longest time, in seconds, from the time of a row until it was appended.
fn lateness_of(head: Option<&Item>) -> i64 {
    let noted = head.and_then(|head| head.get(LATENESS)?.as_n().ok()?.parse().ok());
    noted.unwrap_or(0).max(PROMPT)
}
