//! Sets of a list's ordinals: which of its rows have something in common, so that those alone are listed, with an exact total.
//!
//! An ordinal is a bit. A *block* of 1024 ordinals is an item of sixteen numbers of 64 bits each; to put an ordinal in is to add its
//! power of two, which nobody may do twice: the transaction that does it has a condition that holds once. A *section* counts the
//! ordinals of 32 blocks, so that a page is found by the counts, then by the bits of the few blocks that it lies in.

use std::collections::BTreeMap;

use crate::table::keys::{Key, set_block, set_section};
use crate::table::list::{BLOCK, Plan, SECTION, counts_of, first_ordinal};
use crate::table::store::{Item, Write, number, values};
use crate::table::{Table, TableError};

/// Bits of one number: DynamoDB's have 38 digits, and these take 20.
const WORD: u32 = 64;

/// The ordinals of a block, bit by bit.
type Bits = [u64; (BLOCK / WORD) as usize];

/// Rows of a list: all, or those of a set; and of these, where a second set is named, those that are not in it.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The set; all rows where there is none.
    pub of: Option<String>,
    /// A subset of it that is left out.
    pub without: Option<String>,
}

impl Plan<'_> {
    /// Puts `ordinal` into `set`, where it is not yet.
    pub fn insert(&mut self, set: &str, ordinal: u32) {
        let (block, bit) = (ordinal / BLOCK, ordinal % BLOCK);
        let tenant = *self.tenant();
        let add = |key: Key, name: String, value: u64| Write::Update {
            key,
            expression: format!("ADD {name} :value").into(),
            condition: None,
            values: values([(":value", number(value))]),
        };
        self.write(add(set_block(&tenant, set, block), format!("w{}", bit / WORD), 1 << (bit % WORD)));
        self.write(add(set_section(&tenant, set, block / SECTION), format!("b{}", block % SECTION), 1));
    }
}

impl Table {
    /// The ordinals of `selection`, of a list in which `next` comes next: `size` of them behind the first `offset`, and how many there
    /// are altogether.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn select(
        &self,
        selection: &Selection,
        next: impl Future<Output = Result<u32, TableError>>,
        offset: u64,
        size: u64,
    ) -> Result<(Vec<u32>, u64), TableError> {
        let (of, without) = (self.counts(selection.of.as_deref()), self.counts(selection.without.as_deref()));
        let (next, of, without) = futures_util::try_join!(next, of, without)?;
        let all = || (0..next.div_ceil(BLOCK)).map(|block| (block, (next - block * BLOCK).min(BLOCK))).collect();
        let counts: BTreeMap<u32, u32> = if selection.of.is_some() { of } else { all() };
        // The two are read side by side, so the subset may be a moment ahead of the set.
        let left = |(block, count): (&u32, &u32)| {
            (*block, u64::from(count.saturating_sub(without.get(block).copied().unwrap_or_default())))
        };
        let counts: Vec<(u32, u64)> = counts.iter().map(left).collect();
        let total = counts.iter().map(|(_, count)| count).sum();

        let (mut before, mut blocks, mut skipped) = (0, Vec::new(), None);
        for (block, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            if before + count > offset && before < offset.saturating_add(size) {
                skipped.get_or_insert(before);
                blocks.push(block);
            }
            before += count;
        }
        let (of, without) = futures_util::try_join!(
            self.blocks(selection.of.as_deref(), &blocks),
            self.blocks(selection.without.as_deref(), &blocks),
        )?;
        let ordinals = blocks.iter().flat_map(|block| {
            let members =
                if selection.of.is_some() { of.get(block).copied().unwrap_or_default() } else { until(*block, next) };
            let left_out = without.get(block).copied().unwrap_or_default();
            (0..BLOCK)
                .filter(move |bit| has(&members, *bit) && !has(&left_out, *bit))
                .map(move |bit| block * BLOCK + bit)
        });
        let skip = usize::try_from(offset - skipped.unwrap_or(offset)).unwrap_or(usize::MAX);
        Ok((ordinals.skip(skip).take(usize::try_from(size).unwrap_or(usize::MAX)).collect(), total))
    }

    async fn counts(&self, set: Option<&str>) -> Result<BTreeMap<u32, u32>, TableError> {
        let Some(set) = set else { return Ok(BTreeMap::new()) };
        let first = set_section(&self.tenant, set, 0);
        Ok(counts_of(&self.store.query(&first.pk, &first.sk, None).await?))
    }

    async fn blocks(&self, set: Option<&str>, blocks: &[u32]) -> Result<BTreeMap<u32, Bits>, TableError> {
        let Some(set) = set else { return Ok(BTreeMap::new()) };
        let keys: Vec<Key> = blocks.iter().map(|block| set_block(&self.tenant, set, *block)).collect();
        let items = self.store.get_all(&keys).await?;
        let block = |item: &Item| Some((item.get("sk")?.as_s().ok()?.parse().ok()?, bits(item)));
        Ok(items.iter().filter_map(block).collect())
    }
}

fn bits(item: &Item) -> Bits {
    let mut bits = Bits::default();
    for (word, bits) in bits.iter_mut().enumerate() {
        let value = item.get(&format!("w{word}")).and_then(|value| value.as_n().ok()?.parse().ok());
        *bits = value.unwrap_or_default();
    }
    bits
}

fn has(bits: &Bits, bit: u32) -> bool {
    bits[(bit / WORD) as usize] & (1 << (bit % WORD)) != 0
}

/// All ordinals of `block` below `next`.
fn until(block: u32, next: u32) -> Bits {
    let mut bits = Bits::default();
    for bit in (0..BLOCK).take_while(|bit| first_ordinal(block) + u64::from(*bit) < u64::from(next)) {
        bits[(bit / WORD) as usize] |= 1 << (bit % WORD);
    }
    bits
}
