//! The ordinals that a list has assigned, and the blocks and sections that contain them.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::table::item::Item;
use crate::values::id::SPREAD;

/// Ordinals of a block: its set stays under 1 KB, a write unit, until a third of the rows are removed.
pub(crate) const BLOCK: u64 = 1024;
/// Blocks of a section, and sections of a volume.
pub(crate) const SECTION: u64 = 32;
/// The attribute of a head with the ordinal of the next row.
pub(super) const NEXT: &str = "next_ordinal";
/// The attribute of a head with the ordinal at which the rows in one partition end.
pub(super) const SPREAD_FROM: &str = "spread_from";
/// The attribute of a head with the number of ordinals that are cut off.
pub(super) const CUT: &str = "cut";
/// The attribute of a head with the longest time, in seconds, from the time of a row until it was appended, if that was
/// noted. It has not the form of a token, so an older version does not take it for one.
pub(super) const LATENESS: &str = "longest_lateness";

/// The ordinals that a list has assigned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ordinals {
    /// The ordinal that the next row gets.
    pub next: u64,
    /// If the rows are spread: the ordinal after the last row that is not.
    pub(super) spread_from: Option<u64>,
    /// The number of ordinals that are cut off: the first ones, which have no rows any more. They fill whole sections.
    pub(super) cut: u64,
}

impl Ordinals {
    /// Reads them from a head.
    pub fn of(head: Option<&Item>) -> Self {
        let number = |name: &str| head.and_then(|head| read(head.get(name)?));
        let (next, cut) = (number(NEXT).unwrap_or_default(), number(CUT).unwrap_or_default());
        Self { next, spread_from: number(SPREAD_FROM), cut }
    }

    /// The number of ordinals.
    pub fn count(self) -> u64 {
        self.place(self.next)
    }

    /// The number of ordinals that are cut off.
    pub const fn cut(self) -> u64 {
        self.cut
    }

    /// The number of ordinals before this one.
    pub fn place(self, ordinal: u64) -> u64 {
        match self.spread_from {
            Some(from) if ordinal >= SPREAD => ordinal - SPREAD + from,
            Some(from) => ordinal.min(from),
            None => ordinal,
        }
    }

    /// The number of ordinals in this block, once all of them are assigned.
    pub(super) fn of_block(self, block: u64) -> u64 {
        self.place(first_ordinal(block + 1)) - self.place(first_ordinal(block))
    }

    /// The ordinal that has so many before it.
    pub fn nth(self, place: u64) -> u64 {
        match self.spread_from {
            Some(from) if place >= from => SPREAD + place - from,
            _ => place,
        }
    }
}

/// The ordinal at which `block` begins.
pub(crate) const fn first_ordinal(block: u64) -> u64 {
    block * BLOCK
}

fn read(value: &AttributeValue) -> Option<u64> {
    value.as_n().ok()?.parse().ok()
}
