//! Lists with exact totals. Any page is found in two or three round trips, as long as one query can read all counts of
//! holes.
//!
//! A row's sort key is its *ordinal*: 0, 1, 2 and so on in the order of creation, never used twice. Without removals,
//! the page that begins with the k-th row would be a query from ordinal k on. Removed rows leave *holes*, and these are
//! counted:
//!
//! - a *block* of 1024 ordinals has an item with the set of its holes, made by its first one;
//! - a *section* of 32 blocks has an item with the number of holes of each, next to the list's head;
//! - the *head* has the next ordinal.
//!
//! The total is the next ordinal minus all holes. One query reads the head and all sections; the counts lead to the
//! block of the k-th row, and its set leads to the exact ordinal. A million rows with a tenth removed are 31 sections
//! of 9 KB together, and a block.
//!
//! An append first increases the head's ordinal and then writes the row ([`reservation`](crate::table::reservation)).
//! An ordinal counts as a hole until its row is written. A removal deletes the row, puts its ordinal into the block's
//! set and adds to the section's count ([`rows`](crate::table::rows)), in one transaction. Appends and removals never
//! touch the same item.
//!
//! The last bits of a listed record's id are its ordinal, so that its row is found by its id alone.
//!
//! The rows of a list share a partition, which takes a thousand write units per second. If a list [may be
//! spread](Listed::SPREADS) and gets long, its ordinals continue at `SPREAD`, and the rows from there on are in eight
//! partitions. The head has the last ordinal before that. So a short list costs the same as before, a long one takes
//! eight times as many writes per second, and an id shows where its row is.
//!
//! If rows expire (`table::expiry`), the sections at the beginning end up with holes only. The head then has the number
//! of ordinals that are cut off, and the items of these sections and blocks are deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::{BoxFuture, try_join_all};

use crate::table::error::TableError;
use crate::table::item::Item;
use crate::table::keys::{SECTION_KEY, SK, list_block, list_head, list_row, list_rows_between};
use crate::table::ordinals::{BLOCK, Ordinals, SECTION, first_ordinal};
use crate::table::page::{ListQuery, Order, Page, PageQuery};
use crate::table::part::Table;
use crate::table::query::Found;
use crate::table::reservation::{Token, missing};
use crate::table::stored::Listed;
use crate::values::id::{SPREAD, ordinal};
use crate::values::time::Timestamp;

/// A list's head and sections, as one query reads them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) ordinals: Ordinals,
    /// Holes of each block with holes, except blocks that are cut off; an ordinal without a row so far counts as a
    /// hole.
    pub(super) holes: BTreeMap<u64, u64>,
    /// The tokens of ordinals whose rows may be missing.
    tokens: Vec<Token>,
    /// The ordinals that have no row yet, or never get one.
    missing: BTreeSet<u64>,
}

/// The place of a row, as far as the index shows it.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// At this ordinal.
    Ordinal(u64),
    /// The `rank`-th row, counted from 0, of a block with holes.
    Block { block: u64, rank: u64 },
}

impl Index {
    /// The same index, if these ordinals have no row.
    fn without(mut self, mut missing: BTreeSet<u64>) -> Self {
        // Ordinals that are cut off are not counted at all.
        missing.retain(|ordinal| self.ordinals.place(*ordinal) >= self.ordinals.cut);
        for ordinal in &missing {
            *self.holes.entry(ordinal / BLOCK).or_default() += 1;
        }
        Self { missing, ..self }
    }

    /// The same index, if these ordinals have rows after all.
    fn with(mut self, there: &BTreeSet<u64>) -> Self {
        for ordinal in self.missing.intersection(there) {
            self.holes.entry(ordinal / BLOCK).and_modify(|holes| *holes -= 1);
        }
        Self { missing: self.missing.difference(there).copied().collect(), ..self }
    }

    fn total(&self) -> u64 {
        // The head is read a moment before the counts: a row that was appended and removed in between is in the counts
        // only.
        (self.ordinals.count() - self.ordinals.cut).saturating_sub(self.holes.values().sum())
    }

    /// The place of the row that has `rank` rows before it; `None` after the last row.
    fn locate(&self, rank: u64) -> Option<Place> {
        if rank >= self.total() {
            return None;
        }
        // Between two blocks with holes every ordinal has its row, so only the blocks with holes are walked.
        let mut before = self.ordinals.cut;
        for (&block, &holes) in &self.holes {
            let [first, end] = [block, block + 1].map(|block| self.ordinals.place(first_ordinal(block)));
            let rows_before = first - before;
            if rank < rows_before {
                break;
            }
            if rank - rows_before < (end - first).saturating_sub(holes) {
                return Some(Place::Block { block, rank: rank - rows_before });
            }
            before += holes;
        }
        Some(Place::Ordinal(self.ordinals.nth(rank + before)))
    }

    /// The number of ordinals that can be cut off: the ones of the first sections that have holes only.
    pub(super) fn emptied(&self) -> u64 {
        let mut cut = self.ordinals.cut;
        loop {
            let section = self.ordinals.nth(cut) / BLOCK / SECTION;
            let blocks = section * SECTION..(section + 1) * SECTION;
            let end = self.ordinals.place(first_ordinal(blocks.end));
            let holes: u64 = self.holes.range(blocks).map(|(_, holes)| holes).sum();
            if end > self.ordinals.count() || holes < end - cut {
                return cut;
            }
            cut = end;
        }
    }

    /// An ordinal at or before the first row.
    fn begin(&self) -> u64 {
        match self.locate(0) {
            Some(Place::Ordinal(first)) => first,
            Some(Place::Block { block, .. }) => first_ordinal(block),
            None => 0,
        }
    }
}

/// The ordinal of the `rank`-th row of `block`; `None` if it has fewer rows, because rows were removed since the index
/// was read.
fn nth_row(block: u64, holes: &BTreeSet<u64>, rank: u64) -> Option<u64> {
    let within = (0..BLOCK).filter(|offset| !holes.contains(offset)).nth(usize::try_from(rank).ok()?)?;
    Some(first_ordinal(block) + within)
}

/// The counts of blocks in section items, or of sections in volume items, by the beginning of their sort keys. Other
/// items are left out.
pub(crate) fn counts_of(items: &[Item], key: &str) -> BTreeMap<u64, u64> {
    numbers_of(items, key, 'b')
}

/// The numbers that section items have for blocks, in the attributes that begin with `prefix`: `b0` of section 2
/// belongs to block 64. The same for the numbers that volume items have for sections.
pub(crate) fn numbers_of<T: FromStr>(items: &[Item], key: &str, prefix: char) -> BTreeMap<u64, T> {
    let mut numbers = BTreeMap::new();
    for item in items {
        let number: Option<u64> = item.get(SK).and_then(|sk| sk.as_s().ok()?.strip_prefix(key)?.parse().ok());
        for (name, value) in item {
            let place: Option<u64> = name.strip_prefix(prefix).and_then(|place| place.parse().ok());
            let value = value.as_n().ok().and_then(|value| value.parse().ok());
            if let (Some(number), Some(place), Some(value)) = (number, place, value) {
                numbers.insert(number * SECTION + place, value);
            }
        }
    }
    numbers
}

/// The index in the items of a head's partition: the head itself, then its sections.
pub(super) fn index_of(items: &[Item]) -> Index {
    let Some((head, sections)) = items.split_first() else { return Index::default() };
    let ordinals = Ordinals::of(Some(head));
    let mut holes = counts_of(sections, SECTION_KEY);
    if ordinals.cut > 0 {
        holes.retain(|block, _| ordinals.place(first_ordinal(*block)) >= ordinals.cut);
    }
    Index { ordinals, holes, tokens: Token::all(head), missing: BTreeSet::new() }
}

fn ordinals_of<R: Listed>(rows: &[R]) -> BTreeSet<u64> {
    rows.iter().map(|row| ordinal(row.uuid())).collect()
}

/// The holes in the item of a block, counted from its first ordinal.
pub(crate) fn holes_of(block: &Item) -> BTreeSet<u64> {
    let set = block.get("holes").and_then(|value| value.as_ns().ok()).map(Vec::as_slice).unwrap_or_default();
    set.iter().filter_map(|offset| offset.parse().ok()).collect()
}

impl Table {
    /// The number of rows that were ever appended.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn appended<R: Listed>(&self, of: R::Of) -> Result<u64, TableError> {
        Ok(self.ordinals(&R::list(of)).await?.count())
    }

    async fn ordinals(&self, list: &str) -> Result<Ordinals, TableError> {
        Ok(Ordinals::of(self.store.get(&list_head(&self.tenant, list)).await?.as_ref()))
    }

    /// The last rows of a list: the ones with the last `count` ordinals.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn newest<R: Listed>(&self, of: R::Of, count: u64) -> Result<Vec<R>, TableError> {
        let list = R::list(of);
        let ordinals = self.ordinals(&list).await?;
        let first = ordinals.nth(ordinals.count().saturating_sub(count));
        self.rows(&list, ordinals, first, usize::MAX).await
    }

    /// At most `most` rows of a list, from the ordinal `first` on. In a long list only those before it was spread.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn rows_from<R: Listed>(&self, of: R::Of, first: u64, most: usize) -> Result<Vec<R>, TableError> {
        self.rows(&R::list(of), Ordinals::default(), first, most).await
    }

    /// The rows of a list that has at most `most`, as they were a moment ago: this process remembers them for some
    /// seconds.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn remembered<R: Listed>(
        &self,
        of: R::Of,
        (most, seconds): (usize, i64),
        now: Timestamp,
    ) -> Result<Arc<Vec<R>>, TableError> {
        let (list, recent) = (R::list(of), &self.store.recent);
        let head = list_head(&self.tenant, &list);
        if let Some(rows) = recent.rows(&head, now) {
            return Ok(rows);
        }
        let rows = Arc::new(self.rows_from(of, 0, most).await?);
        recent.keep_rows(&head, &rows, now.plus_seconds(seconds));
        Ok(rows)
    }

    /// Reads the rows of a list again the next time.
    pub(crate) fn forget<R: Listed>(&self, of: R::Of) {
        self.store.recent.drop_rows(&list_head(&self.tenant, &R::list(of)));
    }

    /// A page of `R`'s list: of the rows that match the query's filters, if it has any.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn list<R: Listed>(&self, of: R::Of, query: &ListQuery<R>) -> Result<Page<R>, TableError> {
        // Boxed, so that a list without filters uses less memory.
        if !query.unique.is_empty() {
            return Box::pin(self.with_unique(of, query)).await;
        }
        if !query.terms.is_empty() || !query.marks.is_empty() || !query.dates.are_unbounded() {
            return Box::pin(self.filtered(of, query)).await;
        }
        self.page(of, &query.page).await
    }

    /// A page of `R`'s list.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn page<R: Listed>(&self, of: R::Of, query: &PageQuery) -> Result<Page<R>, TableError> {
        let list = &R::list(of);
        let (offset, size) = (query.offset(), usize::try_from(query.size()).unwrap_or(usize::MAX));
        let (index, before, rows) = if offset == 0 && query.order == Order::Ascending {
            // The first page begins at the first row, at whatever ordinal that is.
            let (index, rows) =
                futures_util::try_join!(self.index(list), self.rows(list, Ordinals::default(), 0, size))?;
            let index = self.resolved(list, index, ordinals_of(&rows)).await?;
            // The rows may have been read before the head, and some were appended in between.
            let fewer = (rows.len() as u64) < index.total().min(query.size());
            let rows = if fewer { self.rows(list, index.ordinals, index.begin(), size).await? } else { rows };
            (index, 0, rows)
        } else {
            let (index, first) = self.located(list, query).await?;
            let (before, count) = query.within(index.total());
            // Rows that were missing may be there by now, between the rows of the page.
            let most = usize::try_from(count).unwrap_or(usize::MAX).saturating_add(index.missing.len());
            let rows = match first {
                Some(first) => self.rows(list, index.ordinals, first, most).await?,
                None => Vec::new(),
            };
            (index, before, rows)
        };
        let index = index.with(&ordinals_of(&rows));
        let (from, count) = query.within(index.total());
        let (skip, count) = (from.saturating_sub(before), usize::try_from(count).unwrap_or(usize::MAX));
        // A row that was appended since the index was read is not in its total, so the newest page leaves it out too.
        let rows = rows.into_iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).take(count).collect();
        Ok(query.of(query.order.of(rows), index.total()))
    }

    // Code that is the same for all records is boxed: otherwise each function with a list would compile it again.

    fn index<'a>(&'a self, list: &str) -> BoxFuture<'a, Result<Index, TableError>> {
        let head = list_head(&self.tenant, list);
        Box::pin(async move { Ok(index_of(&self.store.query(&head.pk, &head.sk, None).await?)) })
    }

    /// The index after a check of the rows that may be missing; the rows of `there` exist.
    fn resolved<'a>(
        &'a self,
        list: &'a str,
        index: Index,
        there: BTreeSet<u64>,
    ) -> BoxFuture<'a, Result<Index, TableError>> {
        Box::pin(async move {
            if index.tokens.is_empty() {
                return Ok(index);
            }
            let has_holes = |block| index.holes.contains_key(&block);
            let missing = missing(self, list, &index.tokens, &there, has_holes).await?;
            Ok(index.without(missing))
        })
    }

    /// The ordinal of the oldest row of a page, if the page has a row.
    fn located<'a>(
        &'a self,
        list: &'a str,
        page: &'a PageQuery,
    ) -> BoxFuture<'a, Result<(Index, Option<u64>), TableError>> {
        Box::pin(async move {
            let index = self.index(list).await?;
            let index = self.resolved(list, index, BTreeSet::new()).await?;
            let (before, count) = page.within(index.total());
            let first = match index.locate(before).filter(|_| count > 0) {
                None => None,
                Some(Place::Ordinal(first)) => Some(first),
                Some(Place::Block { block, rank }) => {
                    let mut holes = self.holes(list, block).await?;
                    let missing = index.missing.iter().filter(|ordinal| *ordinal / BLOCK == block);
                    holes.extend(missing.map(|ordinal| ordinal % BLOCK));
                    nth_row(block, &holes, rank)
                }
            };
            Ok((index, first))
        })
    }

    async fn holes(&self, list: &str, block: u64) -> Result<BTreeSet<u64>, TableError> {
        let item = self.store.get(&list_block(&self.tenant, list, block)).await?;
        Ok(item.as_ref().map(holes_of).unwrap_or_default())
    }

    /// At most `limit` rows from the ordinal `first` on.
    async fn rows<R: Listed>(
        &self,
        list: &str,
        ordinals: Ordinals,
        mut first: u64,
        limit: usize,
    ) -> Result<Vec<R>, TableError> {
        let (mut rows, mut read) = (Vec::new(), 0);
        if first < SPREAD {
            let row = list_row(&self.tenant, list, first);
            Found { records: rows, read } = self.store.query_records(&row.pk, (&row.sk, None), Some(limit)).await?;
            first = SPREAD;
        }
        // At first only the range that has all of them if none was removed.
        let mut end = first.saturating_add(u64::try_from(limit - read).unwrap_or(u64::MAX)).min(ordinals.next);
        while first < end && read < limit {
            let (partitions, [from, to]) = list_rows_between(&self.tenant, list, first..end);
            let parts =
                partitions.iter().map(|pk| self.store.query_records(pk, (&from, Some(&to)), Some(limit - read)));
            for Found { records, read: of_part } in try_join_all(parts).await? {
                rows.extend(records);
                read += of_part;
            }
            (first, end) = (end, ordinals.next);
        }
        rows.sort_by_key(|row: &R| ordinal(row.uuid()));
        rows.truncate(limit);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compares the index and the sets of the blocks with a plain list of the remaining ordinals.
    fn check(ordinals: Ordinals, removed: &BTreeSet<u64>) {
        let mut holes: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for ordinal in removed {
            holes.entry(ordinal / BLOCK).or_default().insert(ordinal % BLOCK);
        }
        let counts = holes.iter().map(|(block, set)| (*block, set.len() as u64)).collect();
        let index = Index { ordinals, holes: counts, ..Index::default() };
        let given = (ordinals.cut..ordinals.count()).map(|place| ordinals.nth(place));
        let left: Vec<u64> = given.filter(|ordinal| !removed.contains(ordinal)).collect();
        let before = ordinals.nth(index.emptied());
        assert!(left.iter().all(|ordinal| *ordinal >= before), "{before}");
        assert_eq!(index.total(), left.len() as u64);
        assert_eq!(index.locate(left.len() as u64), None);
        for (rank, wanted) in left.iter().enumerate() {
            let found = match index.locate(rank as u64).unwrap() {
                Place::Ordinal(ordinal) => Some(ordinal),
                Place::Block { block, rank } => nth_row(block, &holes[&block], rank),
            };
            assert_eq!(found, Some(*wanted), "rank {rank}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_row_is_found_by_its_rank(
            count in 0..3 * BLOCK,
            spread_from in prop::option::of(0..2 * BLOCK),
            removed in prop::collection::btree_set(0..3 * BLOCK, 0..2000),
        ) {
            let spread_from = spread_from.filter(|from| *from <= count);
            let next = spread_from.map_or(count, |from| SPREAD + count - from);
            let ordinals = Ordinals { next, spread_from, cut: 0 };
            assert_eq!(ordinals.count(), count);
            check(ordinals, &removed.into_iter().filter(|place| *place < count).map(|place| ordinals.nth(place)).collect());
        }
    }

    #[test]
    fn a_list_with_empty_blocks_is_read() {
        let ordinals = |next| Ordinals { next, ..Ordinals::default() };
        check(ordinals(3 * BLOCK + 7), &(BLOCK..2 * BLOCK).collect());
        check(ordinals(2 * BLOCK), &(0..2 * BLOCK).collect());
        check(ordinals(2 * BLOCK), &(0..BLOCK).chain([2 * BLOCK - 1]).collect());
        check(ordinals(0), &BTreeSet::new());
    }

    #[test]
    fn sections_without_rows_are_cut_off() {
        let section = BLOCK * SECTION;
        for (spread_from, sections) in [(None, [section, 2 * section]), (Some(1100), [1100, 1100 + section])] {
            let count = 1100 + 2 * section;
            let next = spread_from.map_or(count, |from| SPREAD + count - from);
            let of = |cut| Ordinals { next, spread_from, cut };
            let emptied = |cut, places: std::ops::Range<u64>| {
                let mut holes = BTreeMap::new();
                for ordinal in places.clone().map(|place| of(cut).nth(place)) {
                    *holes.entry(ordinal / BLOCK).or_default() += 1;
                }
                let index = Index { ordinals: of(cut), holes, ..Index::default() };
                assert_eq!(index.total(), count - cut - (places.end - places.start));
                index.emptied()
            };
            let [first, second] = sections;
            assert_eq!(emptied(0, 0..first - 1), 0);
            assert_eq!(emptied(0, 1..second), 0);
            assert_eq!(emptied(0, 0..first), first);
            assert_eq!(emptied(0, 0..second), second);
            assert_eq!(emptied(first, first..second), second);
            assert_eq!(emptied(first, first + 1..second), first);
            let rows = (second + 1..count).map(|place| of(second).nth(place)).collect();
            check(of(second), &rows);
        }
    }
}
