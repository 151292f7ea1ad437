//! Reads a list piece by piece: each piece has a bounded size, whatever the size of the rows.
//!
//! A row keeps its ordinal. So whoever reads from one place to the next one meets each row once that is there all the
//! time, whatever is added and removed meanwhile.

use std::ops::Range;

use futures_util::future::try_join_all;

use crate::table::error::TableError;
use crate::table::keys::{list_head, list_row, list_rows, list_rows_between};
use crate::table::ordinals::Ordinals;
use crate::table::part::Table;
use crate::table::stored::Listed;
use crate::values::id::{SPREAD, ordinal};

/// Some rows of a list.
#[derive(Debug)]
pub(crate) struct Piece<R> {
    /// The rows with their places, oldest first.
    pub rows: Vec<(u64, R)>,
    /// The place at which the next piece begins.
    pub next: u64,
    /// The place after the last row.
    pub end: u64,
}

impl Table {
    /// The first rows of `R`'s list at `places`: at most `most`, and at most a megabyte of each partition.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn piece<R: Listed>(
        &self,
        of: R::Of,
        places: Range<u64>,
        most: usize,
    ) -> Result<Piece<R>, TableError> {
        let name = R::list(of);
        let ordinals = Ordinals::of(self.store.get(&list_head(&self.tenant, &name)).await?.as_ref());
        let (start, end) = (places.start.max(ordinals.cut()), places.end.min(ordinals.count()));
        if start >= end {
            return Ok(Piece { rows: Vec::new(), next: end, end });
        }
        let (first, last) = (ordinals.nth(start), ordinals.nth(end - 1));
        let count = u64::try_from(most).unwrap_or(u64::MAX);
        // Rows that are spread are read where they are if none was removed: a limit for each partition would read more
        // of one than of another.
        let (partitions, last, limit) = if first < SPREAD {
            (vec![list_rows(&self.tenant, &name)], last.min(SPREAD - 1), Some(most))
        } else {
            let last = last.min(first.saturating_add(count - 1));
            (list_rows_between(&self.tenant, &name, first..last + 1).0, last, None)
        };
        let range = [first, last].map(|ordinal| list_row(&self.tenant, &name, ordinal).sk);
        let parts = partitions.iter().map(|pk| self.store.some_records::<R>(pk, [&range[0], &range[1]], limit));
        let (mut rows, mut read) = (Vec::new(), last);
        for (records, stopped) in try_join_all(parts).await? {
            rows.extend(records);
            // What comes after the first place at which a partition stopped is read with the next piece.
            let stopped = stopped.and_then(|sk| sk.parse().ok());
            read = stopped.map_or(read, |stopped: u64| read.min(stopped));
        }
        let place = |row: R| (ordinal(row.uuid()) <= read).then(|| (ordinals.place(ordinal(row.uuid())), row));
        let mut rows: Vec<_> = rows.into_iter().filter_map(place).collect();
        rows.sort_by_key(|(place, _)| *place);
        Ok(Piece { rows, next: ordinals.place(read + 1), end })
    }
}
