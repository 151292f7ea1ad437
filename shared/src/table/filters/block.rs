//! A block of a set: the ordinals of the block that are in the set.

use std::collections::BTreeMap;

use crate::table::dates::Span;
use crate::table::item::{Item, number};
use crate::table::keys::{Key, TTL};
use crate::table::ordinals::BLOCK;
use crate::values::time::Timestamp;

/// Seconds after which an empty set expires: longer than a change stays in the stream, so that no older change comes
/// after it.
pub(super) const EMPTY: i64 = 3 * 86_400;
/// Bits of one number: DynamoDB's have 38 digits, and these take 20.
const WORD: u64 = 64;

/// The ordinals of a block, bit by bit.
type Bits = [u64; (BLOCK / WORD) as usize];

/// A block of a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// Its ordinals.
    bits: Bits,
    /// When its rows were made.
    pub span: Option<Span>,
}

/// A change of a block.
#[derive(Debug, Default)]
pub(super) struct BlockChange {
    /// The bits to set, and the bits to clear.
    pub bits: BTreeMap<u64, bool>,
    /// The creation times of the rows whose bits are set.
    pub span: Option<Span>,
}

impl Block {
    /// The block in an item.
    pub(super) fn read(item: &Item) -> Self {
        let mut bits = Bits::default();
        for (word, bits) in bits.iter_mut().enumerate() {
            let value = item.get(&format!("w{word}")).and_then(|value| value.as_n().ok()?.parse().ok());
            *bits = value.unwrap_or_default();
        }
        Self { bits, span: Span::read(item, "first", "last") }
    }

    /// The block as an item: a word without a bit is left out, and a block without any bit expires.
    pub(super) fn item(&self, key: &Key, version: u64, now: Timestamp) -> Item {
        let mut item = key.attributes();
        let words = self.bits.iter().enumerate().filter(|(_, word)| **word > 0);
        item.extend(words.map(|(place, word)| (format!("w{place}"), number(word))));
        item.extend(self.span.iter().flat_map(|span| span.attributes("first", "last")));
        item.insert("version".to_owned(), number(version));
        if self.bits == Bits::default() {
            item.insert(TTL.to_owned(), number(now.plus_seconds(EMPTY).unix_seconds()));
        }
        item
    }

    pub(super) fn changed(mut self, change: &BlockChange) -> Self {
        for (bit, there) in &change.bits {
            let (word, mask) = ((bit / WORD) as usize, 1 << (bit % WORD));
            if *there { self.bits[word] |= mask } else { self.bits[word] &= !mask }
        }
        Self { span: Span::around(self.span, change.span), ..self }
    }

    /// The common ordinals of both.
    pub(super) fn and(mut self, other: Self) -> Self {
        for (word, of_other) in self.bits.iter_mut().zip(other.bits) {
            *word &= of_other;
        }
        self
    }

    /// The number of its ordinals.
    pub(super) fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The ordinals of its rows, if this is the block with this number.
    pub(super) fn ordinals(&self, number: u64) -> Vec<u64> {
        let has = |bit: &u64| self.bits[(bit / WORD) as usize] & (1 << (bit % WORD)) != 0;
        (0..BLOCK).filter(has).map(|bit| number * BLOCK + bit).collect()
    }
}
