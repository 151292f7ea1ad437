//! A page of the rows that are in sets, with their total.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::future::BoxFuture;

use super::block::Block;
use super::{Term, sets_of_query};
use crate::table::dates::Dates;
use crate::table::error::TableError;
use crate::table::item::{Item, key_of, readable};
use crate::table::keys::{
    Key, SECTION_KEY, VOLUME_KEY, filter_block, filter_section, filter_section_of_volume, list_row,
};
use crate::table::list::counts_of;
use crate::table::ordinals::SECTION;
use crate::table::page::{ListQuery, Page, PageQuery};
use crate::table::part::Table;
use crate::table::stored::Listed;

impl Table {
    /// A page of the rows that match the filters of `query`.
    pub(in crate::table) async fn filtered<R: Listed>(
        &self,
        of: R::Of,
        query: &ListQuery<R>,
    ) -> Result<Page<R>, TableError> {
        let list = R::list(of);
        let terms: Vec<Term> = query.terms.iter().chain(&query.marks).cloned().collect();
        let sets = sets_of_query(&list, &terms);
        let (items, total) = self.selected((&list, &sets), &query.dates, &query.page).await?;
        let rows: Vec<R> = readable(items);
        // The set may be a moment older than its rows.
        let matching = rows.into_iter().filter(|row| query.matches(row));
        Ok(query.page.of(matching.collect(), total))
    }

    /// The rows that [`Table::select`] finds, in their order. Boxed: otherwise each function with a list would compile
    /// it again.
    fn selected<'a>(
        &'a self,
        of: (&'a str, &'a [String]),
        dates: &'a Dates,
        page: &'a PageQuery,
    ) -> BoxFuture<'a, Result<(Vec<Item>, u64), TableError>> {
        Box::pin(async move {
            let (ordinals, total) = self.select(of, dates, page).await?;
            let keys: Vec<Key> = ordinals.iter().map(|ordinal| list_row(&self.tenant, of.0, *ordinal)).collect();
            let mut items = self.store.get_all(&keys).await?;
            items.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
            Ok((page.order.of(items), total))
        })
    }

    /// The ordinals of a page of the rows that are in all of `sets` and were created within `dates`, and their total.
    async fn select(
        &self,
        (list, sets): (&str, &[String]),
        dates: &Dates,
        page: &PageQuery,
    ) -> Result<(Vec<u64>, u64), TableError> {
        let set = sets.first().map_or(list, |set| set);
        let (mut counts, edges) = self.counts(set, (sets.len() > 1, page), dates).await?;
        let wanted: BTreeSet<u64> = if sets.len() > 1 {
            // Only the bits show how many rows of a block are in several sets.
            counts.iter().filter(|(_, count)| **count > 0).map(|(block, _)| *block).collect()
        } else {
            // The number of rows of the edges is still unknown, so these may be a few blocks more than the page
            // touches.
            let (blocks, _) = blocks_of(page, &counts, &edges);
            blocks.into_iter().chain(edges.iter().copied()).collect()
        };
        let (mut members, within) =
            futures_util::try_join!(self.members(sets, &wanted), self.made_within(list, &edges, dates))?;
        for block in wanted.iter().filter(|block| sets.len() > 1 || edges.contains(block)) {
            let rows = members.entry(*block).or_default();
            if edges.contains(block) {
                let within = within.get(block);
                rows.retain(|ordinal| within.is_some_and(|within| within.contains(ordinal)));
            }
            counts.insert(*block, rows.len() as u64);
        }
        let (blocks, skipped) = blocks_of(page, &counts, &BTreeSet::new());
        let ordinals = blocks.iter().filter_map(|block| members.remove(block)).flat_map(|rows| page.order.of(rows));
        let skip = usize::try_from(page.offset().saturating_sub(skipped)).unwrap_or(usize::MAX);
        let size = usize::try_from(page.size()).unwrap_or(usize::MAX);
        Ok((ordinals.skip(skip).take(size).collect(), counts.values().sum()))
    }

    /// The number of rows in each block of a set, without blocks whose rows are all outside `dates`, and the blocks of
    /// which only some rows may count. A section that a volume counts is represented by its first block, unless the
    /// page may touch it or `every` block is wanted.
    async fn counts(
        &self,
        set: &str,
        (every, page): (bool, &PageQuery),
        dates: &Dates,
    ) -> Result<(BTreeMap<u64, u64>, BTreeSet<u64>), TableError> {
        let first = filter_section(&self.tenant, set, 0);
        let items = self.store.query(&first.pk, &first.sk, None).await?;
        let mut counts = counts_of(&items, SECTION_KEY);
        let mut edges = dates.narrow(&items, SECTION_KEY, &mut counts);
        let mut sections = counts_of(&items, VOLUME_KEY);
        let at_edges = dates.narrow(&items, VOLUME_KEY, &mut sections);
        counts.extend(sections.iter().map(|(section, count)| (section * SECTION, *count)));
        let is_wanted: BTreeSet<u64> = if every {
            counts.iter().filter(|(_, count)| **count > 0).map(|(block, _)| *block).collect()
        } else {
            let edges = edges.iter().copied().chain(at_edges.iter().map(|section| section * SECTION)).collect();
            let (blocks, _) = blocks_of(page, &counts, &edges);
            blocks.into_iter().chain(edges).collect()
        };
        let opened: Vec<u64> =
            sections.into_keys().filter(|section| is_wanted.contains(&(section * SECTION))).collect();
        let key = |section: &u64| filter_section_of_volume(&self.tenant, set, *section);
        let items = self.store.get_all(&opened.iter().map(key).collect::<Vec<_>>()).await?;
        let mut blocks = counts_of(&items, SECTION_KEY);
        edges.extend(dates.narrow(&items, SECTION_KEY, &mut blocks));
        for section in opened {
            counts.remove(&(section * SECTION));
        }
        counts.extend(blocks);
        Ok((counts, edges))
    }

    /// The ordinals in these blocks that are in all of `sets`.
    async fn members(&self, sets: &[String], blocks: &BTreeSet<u64>) -> Result<BTreeMap<u64, Vec<u64>>, TableError> {
        let key = |set: &String, block: &u64| filter_block(&self.tenant, set, *block);
        let keys: Vec<Key> = sets.iter().flat_map(|set| blocks.iter().map(move |block| key(set, block))).collect();
        let items = self.store.get_all(&keys).await?;
        let found: HashMap<Key, Block> =
            items.iter().filter_map(|item| Some((key_of(item)?, Block::read(item)))).collect();
        let members = |block: &u64| {
            let of_sets = sets.iter().map(|set| found.get(&key(set, block)).copied().unwrap_or_default());
            (*block, of_sets.reduce(Block::and).unwrap_or_default().ordinals(*block))
        };
        Ok(blocks.iter().map(members).collect())
    }
}

/// The blocks that a page touches, in its order, and the number of rows before the first of them. Any number of rows of `edges` may
/// count: the result then includes every block that the page may touch.
fn blocks_of(page: &PageQuery, counts: &BTreeMap<u64, u64>, edges: &BTreeSet<u64>) -> (Vec<u64>, u64) {
    let (offset, end) = (page.offset(), page.offset().saturating_add(page.size()));
    let (mut least, mut most, mut blocks, mut skipped) = (0, 0, Vec::new(), None);
    for (block, count) in page.order.of(counts.iter().filter(|(_, count)| **count > 0).collect()) {
        if offset < most + count && least < end {
            skipped.get_or_insert(most);
            blocks.push(*block);
        }
        most += count;
        if !edges.contains(block) {
            least += count;
        }
    }
    (blocks, skipped.unwrap_or_default())
}

fn sort_key(item: &Item) -> Option<&String> {
    item.get("sk").and_then(|sk| sk.as_s().ok())
}
