//! Lists with exact totals, of which any page is found in two or three round trips, however long they are.
//!
//! A row's sort key is its *ordinal*: 0, 1, 2 and so on in the order of creation, never given twice. A page that begins with the k-th
//! row would be a query from ordinal k on, if nothing were ever removed. What was removed leaves *holes*, and they are counted:
//!
//! - a *block* of 1024 ordinals has an item with the set of its holes, made by its first one;
//! - a *section* of 32 blocks has an item with the number of holes of each, next to the list's head;
//! - the *head* says which ordinal comes next.
//!
//! The total is the next ordinal less all holes. One query reads the head and all sections; the counts lead to the block in which the
//! k-th row lies, and its set to the very ordinal. A million rows with a tenth removed are 31 sections of 9 KB together, and a block.
//!
//! To append moves the head on, then writes the row ([`reservation`](crate::table::reservation)). An ordinal whose row is not there yet counts
//! as a hole until it is. To remove takes the row away, puts its ordinal into the block's set and
//! adds to the section's count ([`rows`](crate::table::rows)), in one transaction. Appends and removals never touch the same item.
//!
//! The last 32 bits of a listed record's id are its ordinal, so that its row is found by its id alone.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::request::page::{ListQuery, Page, PageQuery};
use crate::table::keys::{SK, list_block, list_head, list_row};
use crate::table::reservation::Token;
use crate::table::store::Item;
use crate::table::stored::Listed;
use crate::table::{Table, TableError};
use crate::values::id::ordinal;

/// Ordinals of a block: its set stays under 1 KB, a write unit, until a third of it is gone.
pub(crate) const BLOCK: u32 = 1024;
/// Blocks of a section.
pub(crate) const SECTION: u32 = 32;
/// A list's head and sections, as one query reads them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Index {
    /// The ordinal that the next row gets.
    next: u32,
    /// Holes of each block that has any, and ordinals that have no row yet.
    holes: BTreeMap<u32, u32>,
    /// Where rows may be missing.
    tokens: Vec<Token>,
    /// The ordinals that have no row yet, or never will.
    missing: BTreeSet<u32>,
}

/// Where a row is, as far as the index knows.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// At this ordinal.
    Ordinal(u32),
    /// The `rank`-th row, counted from 0, of a block with holes.
    Block { block: u32, rank: u32 },
}

impl Index {
    /// The same, where these ordinals have no row.
    fn without(mut self, missing: BTreeSet<u32>) -> Self {
        for ordinal in &missing {
            *self.holes.entry(ordinal / BLOCK).or_default() += 1;
        }
        Self { missing, ..self }
    }

    /// The same, where these ordinals have rows after all.
    fn with(mut self, there: &BTreeSet<u32>) -> Self {
        for ordinal in self.missing.intersection(there) {
            self.holes.entry(ordinal / BLOCK).and_modify(|holes| *holes -= 1);
        }
        Self { missing: self.missing.difference(there).copied().collect(), ..self }
    }

    fn total(&self) -> u64 {
        // The head is read a moment before the counts: what came and went in between is in these and not in that.
        u64::from(self.next).saturating_sub(self.holes.values().copied().map(u64::from).sum())
    }

    /// Where the row is that has `rank` rows before it; `None` behind the last.
    fn locate(&self, rank: u64) -> Option<Place> {
        if rank >= self.total() {
            return None;
        }
        // Between two blocks with holes every ordinal has its row, so only the blocks with holes are walked.
        let mut before = 0;
        for (&block, &holes) in &self.holes {
            let rows_before = first_ordinal(block) - before;
            if rank < rows_before {
                break;
            }
            if rank - rows_before < u64::from(BLOCK - holes) {
                return Some(Place::Block { block, rank: u32::try_from(rank - rows_before).ok()? });
            }
            before += u64::from(holes);
        }
        Some(Place::Ordinal(u32::try_from(rank + before).ok()?))
    }
}

/// The ordinal of the `rank`-th row of `block`; `None` where it has fewer, because rows were removed since the index was read.
fn nth_row(block: u32, holes: &BTreeSet<u32>, rank: u32) -> Option<u32> {
    let within = (0..BLOCK).filter(|offset| !holes.contains(offset)).nth(rank as usize)?;
    u32::try_from(first_ordinal(block) + u64::from(within)).ok()
}

/// The ordinal at which `block` begins.
pub(crate) const fn first_ordinal(block: u32) -> u64 {
    block as u64 * BLOCK as u64
}

pub(super) fn next_of(head: Option<&Item>) -> u32 {
    head.and_then(|head| read(head.get("next_ordinal")?)).unwrap_or_default()
}

fn read(value: &AttributeValue) -> Option<u32> {
    value.as_n().ok()?.parse().ok()
}

/// The counts of blocks in the items of sections.
pub(crate) fn counts_of(sections: &[Item]) -> BTreeMap<u32, u32> {
    numbers_of(sections, 'b')
}

/// What the items of sections say of blocks, in the attributes that begin with `prefix`: `b0` of the section 2 is of the block 64.
pub(crate) fn numbers_of<T: FromStr>(sections: &[Item], prefix: char) -> BTreeMap<u32, T> {
    let mut numbers = BTreeMap::new();
    for item in sections {
        let section: Option<u32> = item.get(SK).and_then(|sk| sk.as_s().ok()?.strip_prefix("SECTION#")?.parse().ok());
        for (name, value) in item {
            let block: Option<u32> = name.strip_prefix(prefix).and_then(|block| block.parse().ok());
            let value = value.as_n().ok().and_then(|value| value.parse().ok());
            if let (Some(section), Some(block), Some(value)) = (section, block, value) {
                numbers.insert(section * SECTION + block, value);
            }
        }
    }
    numbers
}

/// The index in the items of a head's partition: the head itself, then its sections.
fn index_of(items: &[Item]) -> Index {
    let Some((head, sections)) = items.split_first() else { return Index::default() };
    Index { next: next_of(Some(head)), holes: counts_of(sections), tokens: Token::all(head), missing: BTreeSet::new() }
}

fn ordinals_of<R: Listed>(rows: &[R]) -> BTreeSet<u32> {
    rows.iter().map(|row| ordinal(row.uuid())).collect()
}

/// The holes in the item of a block, counted from its first ordinal.
pub(crate) fn holes_of(block: &Item) -> BTreeSet<u32> {
    let set = block.get("holes").and_then(|value| value.as_ns().ok()).map(Vec::as_slice).unwrap_or_default();
    set.iter().filter_map(|offset| offset.parse().ok()).collect()
}

impl Table {
    /// The ordinal that the next row gets, which is how many have ever been appended.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn next_ordinal<R: Listed>(&self, of: R::Of) -> Result<u32, TableError> {
        Ok(next_of(self.store.get(&list_head(&self.tenant, &R::list(of))).await?.as_ref()))
    }

    /// A page of `R`'s list: of the rows that match the filters of the query, where it has any.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn list<R: Listed>(&self, of: R::Of, query: &ListQuery<R>) -> Result<Page<R>, TableError> {
        // In boxes: a list without filters need not make room for them.
        if !query.unique.is_empty() {
            return Box::pin(self.with_unique(of, query)).await;
        }
        if !query.terms.is_empty() || !query.dates.are_open() {
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
        let (index, mut rows) = if offset == 0 {
            // The first page begins at the first row, wherever that is.
            let (index, rows) = futures_util::try_join!(self.index(list), self.rows(list, 0, size))?;
            let index = self.resolved(list, index, &ordinals_of(&rows)).await?;
            // The rows may have been read before the head, and some were appended in between.
            let fewer = (rows.len() as u64) < index.total().min(query.size());
            (index, if fewer { self.rows(list, 0, size).await? } else { rows })
        } else {
            let index = self.index(list).await?;
            let index = self.resolved(list, index, &BTreeSet::new()).await?;
            let first = match index.locate(offset) {
                None => None,
                Some(Place::Ordinal(first)) => Some(first),
                Some(Place::Block { block, rank }) => {
                    let mut holes = self.holes(list, block).await?;
                    let missing = index.missing.iter().filter(|ordinal| *ordinal / BLOCK == block);
                    holes.extend(missing.map(|ordinal| ordinal % BLOCK));
                    nth_row(block, &holes, rank)
                }
            };
            let rows = match first {
                Some(first) => self.rows(list, first, size).await?,
                None => Vec::new(),
            };
            (index, rows)
        };
        let index = index.with(&ordinals_of(&rows));
        // What was appended since the index was read is not in its total, and so not on its last page either.
        rows.truncate(usize::try_from(index.total().saturating_sub(offset)).unwrap_or(usize::MAX));
        Ok(query.of(rows, index.total()))
    }

    async fn index(&self, list: &str) -> Result<Index, TableError> {
        let head = list_head(&self.tenant, list);
        let items = self.store.query(&head.pk, &head.sk, None).await?;
        Ok(index_of(&items))
    }

    /// The index, after a look at the rows that may be missing, of which these are `there`.
    async fn resolved(&self, list: &str, index: Index, there: &BTreeSet<u32>) -> Result<Index, TableError> {
        if index.tokens.is_empty() {
            return Ok(index);
        }
        let has_holes = |block| index.holes.contains_key(&block);
        let missing = self.missing(list, &index.tokens, there, has_holes).await?;
        Ok(index.without(missing))
    }

    async fn holes(&self, list: &str, block: u32) -> Result<BTreeSet<u32>, TableError> {
        let item = self.store.get(&list_block(&self.tenant, list, block)).await?;
        Ok(item.as_ref().map(holes_of).unwrap_or_default())
    }

    async fn rows<R: Listed>(&self, list: &str, first: u32, limit: usize) -> Result<Vec<R>, TableError> {
        let row = list_row(&self.tenant, list, first);
        self.store.query_records(&row.pk, &row.sk, Some(limit)).await
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the index and the blocks' sets say of a list, against a plain list of the ordinals that are left.
    fn check(next: u32, removed: &BTreeSet<u32>) {
        let mut holes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for ordinal in removed {
            holes.entry(ordinal / BLOCK).or_default().insert(ordinal % BLOCK);
        }
        let counts = holes.iter().map(|(block, set)| (*block, u32::try_from(set.len()).unwrap())).collect();
        let index = Index { next, holes: counts, ..Index::default() };
        let left: Vec<u32> = (0..next).filter(|ordinal| !removed.contains(ordinal)).collect();
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
        fn every_row_is_found(next in 0..3 * BLOCK, removed in prop::collection::btree_set(0..3 * BLOCK, 0..2000)) {
            let removed = removed.into_iter().filter(|ordinal| *ordinal < next).collect();
            check(next, &removed);
        }
    }

    #[test]
    fn whole_blocks_can_be_gone() {
        check(3 * BLOCK + 7, &(BLOCK..2 * BLOCK).collect());
        check(2 * BLOCK, &(0..2 * BLOCK).collect());
        check(2 * BLOCK, &(0..BLOCK).chain([2 * BLOCK - 1]).collect());
        check(0, &BTreeSet::new());
    }
}
