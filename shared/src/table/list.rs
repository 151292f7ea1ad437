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
//! To append is one transaction: the head moves on, on condition that it stood where this process last saw it, and the rows are put.
//! Where it stood elsewhere, the failure tells where. A process that has not seen it yet reads it first. To remove is one transaction: the row goes, its ordinal joins the block's set,
//! and the section's count grows. Appends and removals never touch the same item.
//!
//! The last 32 bits of a listed record's id are its ordinal, so that its row is found by its id alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;
use uuid::Uuid;

use crate::request::page::{Page, PageQuery};
use crate::request::tenant::Tenant;
use crate::table::keys::{Key, LIST_HEAD, Row, SK, TTL, list_block, list_head, list_row, list_section, made_by};
use crate::table::store::{Cancelled, Item, TRANSACTION_LIMIT, Write, number, text, values};
use crate::table::{ATTEMPTS, Table, TableError};
use crate::values::id::ordinal;
use crate::values::time::Timestamp;

/// Ordinals of a block: its set stays under 1 KB, a write unit, until a third of it is gone.
pub(crate) const BLOCK: u32 = 1024;
/// Blocks of a section.
pub(crate) const SECTION: u32 = 32;
/// The most rows that one append puts, each with a pointer, beside the head.
pub const APPEND_LIMIT: u32 = 49;
/// The most rows that one removal takes: each may have a pointer, and be in a block and a section of its own.
pub const REMOVE_LIMIT: usize = TRANSACTION_LIMIT / 4;
/// Seconds for which it is remembered what made a record: longer than a change stays in the stream, or a keyed request may come again
/// ([`MARKED`](crate::records::claim::MARKED)).
const REMEMBERED: i64 = 3 * 86_400;
/// How much longer an append waits, at most, for each that got ahead of it.
const CROWD: Duration = Duration::from_millis(8);

/// A list's head and sections, as one query reads them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Index {
    /// The ordinal that the next row gets.
    next: u32,
    /// Holes of each block that has any.
    holes: BTreeMap<u32, u32>,
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

/// A transaction in the making that also appends to lists. Its lists' heads move on behind all else that it does, so that of several
/// conditions that fail, those of the maker are told first.
#[derive(Debug)]
pub struct Plan<'a> {
    table: &'a Table,
    writes: Vec<Write>,
    /// By the partition key of its head, where each list stood, and where it is to stand.
    heads: BTreeMap<String, (u32, u32)>,
}

impl Plan<'_> {
    /// Whose part of the table it is about.
    pub const fn tenant(&self) -> &Tenant {
        &self.table.tenant
    }

    /// Adds an action, and returns its place.
    pub fn write(&mut self, write: Write) -> usize {
        self.writes.push(write);
        self.writes.len() - 1
    }

    /// The ordinal of one more row in `R`'s list.
    pub fn next<R: Row>(&mut self, of: R::Of) -> u32 {
        let head = list_head(&self.table.tenant, &R::list(of));
        let known = self.table.store.head_guess(&head.pk).unwrap_or_default();
        let (_, to) = self.heads.entry(head.pk).or_insert((known, known));
        *to += 1;
        *to - 1
    }

    /// Puts `row` under its ordinal, which came from [`Plan::next`], and whatever leads to it.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn put<R: Row>(&mut self, id: R::Id, row: &R) -> Result<(), TableError> {
        self.write(Write::put(self.table.item(id, row)?));
        if let Some(pointer) = row.pointer(&self.table.tenant) {
            let mut pointer = pointer.attributes();
            pointer.insert("id".to_owned(), text(row.id()));
            self.write(Write::put(pointer));
        }
        Ok(())
    }

    /// Notes that `origin` has made the record `id`, on condition that it has made none; returns the action's place.
    pub fn made_by(&mut self, origin: Uuid, id: Uuid, now: Timestamp) -> usize {
        let mut marker = made_by(&self.table.tenant, origin).attributes();
        marker.insert("id".to_owned(), text(id));
        marker.insert(TTL.to_owned(), number(now.plus_seconds(REMEMBERED).unix_seconds()));
        self.write(Write::create(marker))
    }
}

/// The transaction's part that moves the head from `from` to `to`.
fn advance(head: Key, from: u32, to: u32) -> Write {
    Write::Update {
        key: head,
        expression: "SET next_ordinal = :to".into(),
        condition: Some(if from == 0 { "attribute_not_exists(pk)" } else { "next_ordinal = :from" }),
        values: if from == 0 {
            values([(":to", number(to))])
        } else {
            values([(":from", number(from)), (":to", number(to))])
        },
    }
}

/// The key of the head of the list at `pk`.
fn head_of(pk: &str) -> Key {
    Key { pk: pk.to_owned(), sk: LIST_HEAD.to_owned() }
}

fn next_of(head: Option<&Item>) -> u32 {
    head.and_then(|head| read(head.get("next_ordinal")?)).unwrap_or_default()
}

fn read(value: &AttributeValue) -> Option<u32> {
    value.as_n().ok()?.parse().ok()
}

/// The counts of blocks in the items of sections: `b0` of the section 2 is that of the block 64.
pub(crate) fn counts_of(sections: &[Item]) -> BTreeMap<u32, u32> {
    let mut counts = BTreeMap::new();
    for item in sections {
        let section: Option<u32> = item.get(SK).and_then(|sk| sk.as_s().ok()?.strip_prefix("SECTION#")?.parse().ok());
        for (name, value) in item {
            let block: Option<u32> = name.strip_prefix('b').and_then(|block| block.parse().ok());
            if let (Some(section), Some(block), Some(count)) = (section, block, read(value)) {
                counts.insert(section * SECTION + block, count);
            }
        }
    }
    counts
}

/// The index in the items of a head's partition: the head itself, then its sections.
fn index_of(items: &[Item]) -> Index {
    let Some((head, sections)) = items.split_first() else { return Index::default() };
    Index { next: next_of(Some(head)), holes: counts_of(sections) }
}

impl Table {
    /// A page of `R`'s list.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn page<R: Row>(&self, of: R::Of, query: &PageQuery) -> Result<Page<R>, TableError> {
        let list = &R::list(of);
        let (offset, size) = (query.offset(), usize::try_from(query.size()).unwrap_or(usize::MAX));
        let (index, mut rows) = if offset == 0 {
            // The first page begins at the first row, wherever that is.
            futures_util::try_join!(self.index(list), self.rows(list, 0, size))?
        } else {
            let index = self.index(list).await?;
            let first = match index.locate(offset) {
                None => None,
                Some(Place::Ordinal(first)) => Some(first),
                Some(Place::Block { block, rank }) => nth_row(block, &self.holes(list, block).await?, rank),
            };
            let rows = match first {
                Some(first) => self.rows(list, first, size).await?,
                None => Vec::new(),
            };
            (index, rows)
        };
        // What was appended since the index was read is not in its total, and so not on its last page either.
        rows.truncate(usize::try_from(index.total().saturating_sub(offset)).unwrap_or(usize::MAX));
        Ok(query.of(rows, index.total()))
    }

    /// Carries out the transaction that `plan` makes, again with other ordinals where others got ahead in one of its lists.
    ///
    /// # Errors
    /// [`Cancelled::Condition`] where a condition of the plan's own failed, with the place of its action.
    pub async fn carry_out<T>(
        &self,
        plan: impl Fn(&mut Plan<'_>) -> Result<T, TableError> + Sync,
    ) -> Result<T, Cancelled> {
        for attempt in 0..ATTEMPTS {
            let mut made = Plan { table: self, writes: Vec::new(), heads: BTreeMap::new() };
            let outcome = plan(&mut made).map_err(Cancelled::Failed)?;
            let Plan { mut writes, heads, .. } = made;
            if self.learn_heads(heads.keys()).await.map_err(Cancelled::Failed)? {
                continue;
            }
            let own = writes.len();
            writes.extend(heads.iter().map(|(pk, (from, to))| advance(head_of(pk), *from, *to)));
            match self.store.transact(&writes).await {
                Ok(()) => {
                    for (pk, (_, to)) in &heads {
                        self.store.learn_head(pk, *to);
                    }
                    return Ok(outcome);
                }
                Err(Cancelled::Condition(at, stood)) if at >= own => {
                    if let Some((pk, _)) = heads.iter().nth(at - own) {
                        self.store.learn_head(pk, next_of(stood.as_ref()));
                    }
                    // The first miss is one that got ahead; from the second on there is a crowd.
                    tokio::time::sleep(CROWD.mul_f64(f64::from(attempt) * fastrand::f64())).await;
                }
                Err(cancelled) => return Err(cancelled),
            }
        }
        Err(Cancelled::Failed(TableError::Unavailable("other appends kept getting ahead".into())))
    }

    /// Reads the heads of lists that this process has not heard of: to be told by a transaction that fails takes longer, and is billed
    /// like one that does not. Whether there were any.
    async fn learn_heads<'a>(&self, lists: impl Iterator<Item = &'a String>) -> Result<bool, TableError> {
        let unknown: Vec<&String> = lists.filter(|pk| self.store.head_guess(pk).is_none()).collect();
        let reads = unknown.iter().map(async |pk| {
            let head = self.store.get(&head_of(pk)).await?;
            self.store.learn_head(pk, next_of(head.as_ref()));
            Ok::<_, TableError>(())
        });
        try_join_all(reads).await?;
        Ok(!unknown.is_empty())
    }

    /// Appends what `make` makes of each of `count` ordinals, at most [`APPEND_LIMIT`]. It may be asked again, for other ordinals.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn append<R: Row<Of = ()>>(
        &self,
        count: u32,
        make: impl Fn(u32) -> R + Sync,
    ) -> Result<Vec<R>, TableError>
    where
        R::Id: From<Uuid>,
    {
        let plan = |plan: &mut Plan<'_>| {
            let rows: Vec<R> = (0..count).map(|_| make(plan.next::<R>(()))).collect();
            rows.iter().try_for_each(|row| plan.put(row.id().into(), row))?;
            Ok(rows)
        };
        Ok(self.carry_out(plan).await?)
    }

    /// Appends what `make` makes of an ordinal, unless `origin` has made a row before: then that one, as it was made, is the answer.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn append_once<R: Row<Of = ()>>(
        &self,
        origin: Option<Uuid>,
        now: Timestamp,
        make: impl Fn(u32) -> R + Sync,
    ) -> Result<R, TableError>
    where
        R::Id: From<Uuid>,
    {
        let plan = |plan: &mut Plan<'_>| {
            let row = make(plan.next::<R>(()));
            if let Some(origin) = origin {
                plan.made_by(origin, row.id(), now);
            }
            plan.put(row.id().into(), &row)?;
            Ok(row)
        };
        match self.carry_out(plan).await {
            Err(Cancelled::Condition(_, Some(marker))) => Ok(make(ordinal(made_id(&marker)?))),
            result => Ok(result?),
        }
    }

    /// The ordinal that the next row gets, which is how many have ever been appended.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn next_ordinal<R: Row>(&self, of: R::Of) -> Result<u32, TableError> {
        Ok(next_of(self.store.get(&list_head(&self.tenant, &R::list(of))).await?.as_ref()))
    }

    /// Removes the rows `ids`, at most [`REMOVE_LIMIT`], and the items that point to them, all or none.
    ///
    /// # Errors
    /// [`TableError::Missing`] where one of them is not there.
    pub async fn remove_rows<R: Row>(&self, of: R::Of, ids: &[R::Id], pointers: &[Key]) -> Result<(), TableError> {
        let list = &R::list(of);
        let mut writes = Vec::new();
        let mut blocks: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for id in ids {
            let proof = R::proof(*id).unwrap_or_default();
            writes.push(Write::Delete {
                key: self.key::<R>(*id),
                condition: Some("id = :id"),
                values: values([(":id", text(proof))]),
            });
            blocks.entry(ordinal(proof) / BLOCK).or_default().push((ordinal(proof) % BLOCK).to_string());
        }
        let pointer = |key: &Key| Write::Delete { key: key.clone(), condition: None, values: Item::new() };
        writes.extend(pointers.iter().map(pointer));
        let mut sections: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
        for (block, holes) in blocks {
            sections.entry(block / SECTION).or_default().push((block % SECTION, holes.len()));
            writes.push(Write::Update {
                key: list_block(&self.tenant, list, block),
                expression: "ADD holes :holes".into(),
                condition: None,
                values: values([(":holes", AttributeValue::Ns(holes))]),
            });
        }
        for (section, counts) in sections {
            let count =
                |(block, holes): &(u32, usize)| ((format!(":b{block}"), number(holes)), format!("b{block} :b{block}"));
            let (values, additions): (Item, Vec<String>) = counts.iter().map(count).unzip();
            writes.push(Write::Update {
                key: list_section(&self.tenant, list, section),
                expression: format!("ADD {}", additions.join(", ")).into(),
                condition: None,
                values,
            });
        }
        Ok(self.store.transact(&writes).await?)
    }

    async fn index(&self, list: &str) -> Result<Index, TableError> {
        let head = list_head(&self.tenant, list);
        let items = self.store.query(&head.pk, &head.sk, None).await?;
        Ok(index_of(&items))
    }

    async fn holes(&self, list: &str, block: u32) -> Result<BTreeSet<u32>, TableError> {
        let item = self.store.get(&list_block(&self.tenant, list, block)).await?.unwrap_or_default();
        let set = item.get("holes").and_then(|value| value.as_ns().ok()).map(Vec::as_slice).unwrap_or_default();
        Ok(set.iter().filter_map(|offset| offset.parse().ok()).collect())
    }

    async fn rows<R: Row>(&self, list: &str, first: u32, limit: usize) -> Result<Vec<R>, TableError> {
        let row = list_row(&self.tenant, list, first);
        self.store.query_records(&row.pk, &row.sk, Some(limit)).await
    }
}

/// The record that a marker says was made.
pub(crate) fn made_id(marker: &Item) -> Result<Uuid, TableError> {
    let id = marker.get("id").and_then(|id| id.as_s().ok()?.parse().ok());
    id.ok_or_else(|| TableError::Broken("a marker without an id".into()))
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
        let index = Index { next, holes: counts };
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
