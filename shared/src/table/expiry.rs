//! Handles rows of lists that DynamoDB has removed by their TTL.
//!
//! DynamoDB leaves the list unchanged, but the stream has a record of each removal. The reaction to it turns the
//! ordinal into a hole. Over years, a list would collect holes only. So sections without rows at the beginning of the
//! list are cut off: the head has the number of their ordinals. Their items are deleted when the next block loses its
//! last row: by then no reader uses a head that it read before the cut.
//!
//! The stream may report a row again, at any time. An ordinal that is a hole or cut off stays so, and a deleted list
//! stays deleted.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::table::error::{TableError, was_done};
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, key_of, number, values};
use crate::table::keys::{Key, SECTION_KEY, list_block, list_head, list_section};
use crate::table::list::{holes_of, index_of};
use crate::table::ordinals::{BLOCK, CUT, NEXT, Ordinals, SECTION, first_ordinal};
use crate::table::part::Table;
use crate::table::reservation::make_holes;

/// The most ordinals that become holes in one transaction: its condition has room for a hundred.
const AT_ONCE: usize = 100;

/// Turns `expired` ordinals, whose rows DynamoDB has removed, into holes of `list`.
///
/// # Errors
/// [`TableError`]: some may be holes already. A repeat does no harm.
pub async fn expire(table: &Table, list: &str, mut expired: BTreeSet<u64>) -> Result<(), TableError> {
    let head = list_head(&table.tenant, list);
    let Some(ordinals) = table.store.get(&head).await?.map(|head| Ordinals::of(Some(&head))) else { return Ok(()) };
    expired.retain(|ordinal| ordinals.place(*ordinal) >= ordinals.cut);
    let blocks: BTreeSet<u64> = expired.iter().map(|ordinal| ordinal / BLOCK).collect();
    let is_emptied = make_holes_once(table, list, ordinals, expired).await?;
    if table.store.get(&head).await?.is_none() {
        let counters =
            |block| [list_block(&table.tenant, list, block), list_section(&table.tenant, list, block / SECTION)];
        // Two keys may be equal, which a batch does not allow.
        let counters: HashSet<Key> = blocks.into_iter().flat_map(counters).collect();
        return table.store.delete_all(&counters.into_iter().collect::<Vec<_>>()).await;
    }
    if is_emptied { cut(table, list).await } else { Ok(()) }
}

/// Turns these ordinals into holes, except ones that are holes already. Returns whether a block has lost its last
/// row.
async fn make_holes_once(
    table: &Table,
    list: &str,
    ordinals: Ordinals,
    mut left: BTreeSet<u64>,
) -> Result<bool, TableError> {
    let (mut round, mut is_emptied) = (table.store.backoff(), false);
    let mut holes = holes_beside(table, list, &left).await?;
    loop {
        let is_hole = |ordinal: &u64| holes.get(&(ordinal / BLOCK)).is_some_and(|set| set.contains(&(ordinal % BLOCK)));
        left.retain(|ordinal| !is_hole(ordinal));
        let next: Vec<u64> = left.iter().copied().take(AT_ONCE).collect();
        if next.is_empty() {
            return Ok(is_emptied);
        }
        if make_holes(table, list, next.iter().copied()).await? {
            for ordinal in next {
                let of_block = holes.entry(ordinal / BLOCK).or_default();
                of_block.insert(ordinal % BLOCK);
                is_emptied |= of_block.len() as u64 == ordinals.of_block(ordinal / BLOCK);
            }
            continue;
        }
        // Another process makes the same holes.
        round.again("the holes").await?;
        holes = holes_beside(table, list, &left).await?;
    }
}

/// The holes of the blocks that contain these ordinals.
async fn holes_beside(
    table: &Table,
    list: &str,
    ordinals: &BTreeSet<u64>,
) -> Result<BTreeMap<u64, BTreeSet<u64>>, TableError> {
    let blocks: BTreeSet<u64> = ordinals.iter().map(|ordinal| ordinal / BLOCK).collect();
    let key = |block: &u64| list_block(&table.tenant, list, *block);
    let found = table.store.get_attributes(&blocks.iter().map(key).collect::<Vec<_>>(), "pk, sk, holes").await?;
    let holes = |block: u64| Some((block, holes_of(found.get(&key(&block))?)));
    Ok(blocks.into_iter().filter_map(holes).collect())
}

/// Deletes the items of sections that are cut off, and cuts off sections that have no rows any more.
async fn cut(table: &Table, list: &str) -> Result<(), TableError> {
    let head = list_head(&table.tenant, list);
    let items = table.store.query(&head.pk, &head.sk, None).await?;
    let index = index_of(&items);
    table.store.delete_all(&cut_off(table, list, index.ordinals, &items)).await?;
    let cut = index.emptied();
    if cut == index.ordinals.cut {
        return Ok(());
    }
    // The list may be deleted, or another process may have cut off as much.
    let less = format!("attribute_exists({NEXT}) AND (attribute_not_exists({CUT}) OR {CUT} < :cut)");
    let less = Condition::new(less, values([(":cut", number(cut))]));
    was_done(table.store.update(&head, &UpdateExpression::new().set(CUT, number(cut)), Some(&less)).await).map(drop)
}

/// The keys of the sections in `items` that are cut off, and the keys of their blocks.
fn cut_off(table: &Table, list: &str, ordinals: Ordinals, items: &[Item]) -> Vec<Key> {
    let of_section = |section: u64| {
        let blocks = (section * SECTION..(section + 1) * SECTION).map(|block| list_block(&table.tenant, list, block));
        blocks.chain([list_section(&table.tenant, list, section)]).collect::<Vec<_>>()
    };
    let is_cut = |section: &u64| ordinals.place(first_ordinal(section * SECTION)) < ordinals.cut;
    let section = |item: &Item| key_of(item)?.sk.strip_prefix(SECTION_KEY)?.parse().ok();
    items.iter().filter_map(section).filter(is_cut).flat_map(of_section).collect()
}
