//! Selects the rows of a set that were created within dates.
//!
//! Rows are in the order of their ordinals, and their creation times are nearly in that order, but not quite: a request
//! takes its time first and its ordinal a moment later, and a request that is executed again keeps its time. So each
//! block of a set has a *span*, the earliest and the latest time of all rows that were ever in it, and its section
//! repeats the span next to the count. A block whose span is within the dates counts completely, and one whose span is
//! outside does not count at all. For the other blocks, which are hardly more than the two at the edges, the times of
//! the rows themselves are read.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Deserialize;

use crate::table::dates::Dates;
use crate::table::dates::Span;
use crate::table::error::TableError;
use crate::table::item::{Item, readable, text};
use crate::table::keys::{Key, NEIGHBOURS, list_row};
use crate::table::list::numbers_of;
use crate::table::meter::Unit;
use crate::table::ordinals::BLOCK;
use crate::table::part::Table;
use crate::table::retry::failure;
use crate::table::store::{Store, units};
use crate::values::time::Timestamp;

/// Rows of a block that one query reads, all in the same partition: together they are smaller than the megabyte that a
/// query reads at once, if each row has less than 8 KB.
const PART: u64 = NEIGHBOURS;
/// How many parts are read at the same time: all parts of two blocks.
const CONCURRENT_PARTS: usize = 16;

impl Dates {
    /// Removes the blocks from `counts` that have no row within the dates. Returns the blocks of which only some rows
    /// may be within the dates. The items are sections, or volumes, by the beginning of their sort keys; for volumes,
    /// it handles sections in the same way.
    pub(super) fn narrow(&self, items: &[Item], key: &str, counts: &mut BTreeMap<u64, u64>) -> BTreeSet<u64> {
        if self.are_unbounded() {
            return BTreeSet::new();
        }
        let (firsts, lasts) = (numbers_of::<i64>(items, key, 'f'), numbers_of::<i64>(items, key, 'l'));
        let span = |block: &u64| {
            let time = |times: &BTreeMap<u64, i64>| times.get(block).copied().map(Timestamp::from_unix_millis);
            Some(Span { first: time(&firsts)?, last: time(&lasts)? })
        };
        counts.retain(|block, count| *count > 0 && span(block).is_none_or(|span| self.overlap(span)));
        let whole = |block: &u64| span(block).is_some_and(|span| self.contain(span.first) && self.contain(span.last));
        counts.keys().copied().filter(|block| !whole(block)).collect()
    }
}

impl Table {
    /// The ordinals of the rows in these blocks of `list` that were created within `dates`, block by block.
    pub(super) async fn made_within(
        &self,
        list: &str,
        blocks: &BTreeSet<u64>,
        dates: &Dates,
    ) -> Result<BTreeMap<u64, BTreeSet<u64>>, TableError> {
        let parts = blocks.iter().flat_map(|block| (0..BLOCK / PART).map(move |part| (*block, part * PART)));
        // Collected first: the compiler does not accept a stream over a lazy iterator of borrowing futures as `Send`.
        let parts: Vec<_> = parts.map(|(block, first)| self.part_made_within(list, block, first, dates)).collect();
        let mut within: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        let mut parts = stream::iter(parts).buffer_unordered(CONCURRENT_PARTS);
        while let Some((block, ordinals)) = parts.try_next().await? {
            within.entry(block).or_default().extend(ordinals);
        }
        Ok(within)
    }

    /// The same for the rows of a part of a block.
    async fn part_made_within(
        &self,
        list: &str,
        block: u64,
        first: u64,
        dates: &Dates,
    ) -> Result<(u64, Vec<u64>), TableError> {
        #[derive(Deserialize)]
        struct Made {
            sk: String,
            created_at: Timestamp,
        }
        let key = |offset: u64| list_row(&self.tenant, list, block * BLOCK + offset);
        let rows = self.store.query_attributes(&key(first), &key(first + PART - 1), "sk, created_at").await?;
        let made: Vec<Made> = readable(rows);
        let within = made.into_iter().filter(|made| dates.contain(made.created_at));
        Ok((block, within.filter_map(|made| made.sk.parse().ok()).collect()))
    }
}

impl Store {
    /// These attributes of the items of a partition from one key to another. The read may miss an item that was written
    /// in the last second, and costs half as much.
    async fn query_attributes(&self, from: &Key, to: &Key, attributes: &'static str) -> Result<Vec<Item>, TableError> {
        let (mut items, mut start) = (Vec::new(), None);
        loop {
            let call = self.client.query().table_name(&*self.table_name).projection_expression(attributes);
            let call = call.key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to");
            let call = call.expression_attribute_values(":pk", text(&from.pk));
            let call = call.expression_attribute_values(":from", text(&from.sk));
            let call = call.expression_attribute_values(":to", text(&to.sk)).set_exclusive_start_key(start.take());
            let under_way = self.calls.begin(&self.meter).await;
            let result = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
            let consumed = result.as_ref().ok().and_then(|output| output.consumed_capacity.as_ref());
            under_way.end(Unit::Read, units(consumed));
            let output = result.map_err(|error| failure(&error))?;
            items.extend(output.items.unwrap_or_default());
            start = output.last_evaluated_key;
            if start.is_none() {
                return Ok(items);
            }
        }
    }
}
