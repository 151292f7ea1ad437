//! Filters of lists: which rows have the same value in a field, so that those alone are listed, with a total.
//!
//! The rows with one value are a *set* of ordinals, and so are the rows that match several filters at once: a record with the terms
//! `status=closed` and `assistant_id=A` stands in the sets `status=closed`, `assistant_id=A`, and both together. An ordinal is a bit. A
//! *block* of 1024 ordinals is an item of sixteen numbers of 64 bits each. A *section* counts the
//! ordinals of 32 blocks, so that a page is found by the counts, then by the bits of the few blocks that it lies in.
//!
//! A request writes its row and no set: all requests of an organisation would meet there. The sets follow the table's stream
//! ([`Table::follow`]), many changes at once, a moment later. So a total may be a moment old; a page never has a row that does not match.

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _};

use crate::request::error::Issues;
use crate::request::input::{Parse, Source, member};
use crate::request::page::{ListQuery, Page};
use crate::table::keys::{Key, TTL, filter_block, filter_section, list_row, row_of};
use crate::table::list::{BLOCK, SECTION, counts_of};
use crate::table::rows::version;
use crate::table::store::{Item, key_of, number, values};
use crate::table::stored::Listed;
use crate::table::transaction::Cancelled;
use crate::table::{Table, TableError, readable};
use crate::values::id::Id;
use crate::values::schema::{Member, Schema};
use crate::values::time::Timestamp;

/// Blocks of sets that follow at the same time: a batch of changes may concern a thousand.
const CONCURRENT_BLOCKS: usize = 64;
/// Seconds after which an empty set goes: longer than a change stays in the stream, so that none that is older comes behind.
const EMPTY: i64 = 3 * 86_400;
/// Bits of one number: DynamoDB's have 38 digits, and these take 20.
const WORD: u32 = 64;

/// The ordinals of a block, bit by bit.
type Bits = [u64; (BLOCK / WORD) as usize];

/// A field with a value: what a list is filtered by, or what a row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    field: &'static str,
    value: String,
}

/// A value that lists can be filtered by.
pub trait FilterValue {
    /// What the query has.
    type Asked: Parse + Schema + FilterValue;

    /// The value in words; none where there is no value.
    fn text(&self) -> Option<String>;
}

impl<T: Id> FilterValue for T {
    type Asked = T;

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl<T: Id> FilterValue for Option<T> {
    type Asked = T;

    fn text(&self) -> Option<String> {
        self.as_ref().and_then(FilterValue::text)
    }
}

impl Term {
    /// The term of a row whose `field` has this value; none where it has no value.
    pub fn of<T: FilterValue>(field: &'static str, value: &T) -> Option<Self> {
        value.text().map(|value| Self { field, value })
    }

    /// The term that a query asks for; inside, none where it does not. None after an issue.
    pub fn read<T: FilterValue>(field: &'static str, source: &Source<'_>, issues: &mut Issues) -> Option<Option<Self>> {
        let asked = source.optional::<Option<T::Asked>>(field, issues, || None)?;
        Some(asked.as_ref().and_then(FilterValue::text).map(|value| Self { field, value }))
    }

    /// The field.
    pub(super) const fn field(&self) -> &'static str {
        self.field
    }

    /// The value, in words.
    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// The member of a query's schema.
    pub fn member<T: FilterValue>(field: &'static str, doc: &str) -> Member {
        member::<T::Asked>(field, false, doc)
    }
}

/// The set of the rows of `list` that match all of `terms`.
fn set(list: &str, terms: &[&Term]) -> String {
    let terms: Vec<String> = terms.iter().map(|term| format!("{}={}", term.field, term.value)).collect();
    format!("{list}#{}", terms.join("&"))
}

/// All sets that a row with these terms stands in: one for each choice of at least one of them.
fn sets(list: &str, terms: &[Term]) -> Vec<String> {
    let chosen = |mask: u32| {
        let terms: Vec<&Term> =
            (0..).zip(terms).filter(|(bit, _)| mask & 1 << bit != 0).map(|(_, term)| term).collect();
        set(list, &terms)
    };
    (1..1_u32 << terms.len()).map(chosen).collect()
}

/// A row of a list whose terms may have changed.
#[derive(Debug)]
pub struct Move {
    /// Its key.
    pub key: Key,
    /// Its terms before; none where it is new.
    pub was: Vec<Term>,
    /// Its terms after; none where it was removed.
    pub is: Vec<Term>,
}

impl Table {
    /// Has the sets follow `changes`, which are in their order. To follow the same changes again makes no difference.
    ///
    /// # Errors
    /// [`TableError`]: some sets may have followed.
    pub async fn follow(&self, changes: &[Move], now: Timestamp) -> Result<(), TableError> {
        // By block of a set: which bits are to be there, and which are not.
        let mut blocks: BTreeMap<(String, u32), BTreeMap<u32, bool>> = BTreeMap::new();
        for Move { key, was, is } in changes.iter().filter(|change| change.was != change.is) {
            let Some((_, list, ordinal)) = row_of(key) else { continue };
            let mut note = |set, there| {
                blocks.entry((set, ordinal / BLOCK)).or_default().insert(ordinal % BLOCK, there);
            };
            for (sets, there) in [(sets(list, was), false), (sets(list, is), true)] {
                for set in sets {
                    note(set, there);
                }
            }
        }
        // Collected first: the compiler does not accept a stream over a lazy iterator of borrowing futures as `Send`.
        let follow: Vec<_> =
            blocks.iter().map(|((set, block), bits)| self.follow_block(set, *block, bits, now)).collect();
        // All are tried, also after a failure: a repeat then has less to do.
        let followed: Vec<_> = stream::iter(follow).buffer_unordered(CONCURRENT_BLOCKS).collect().await;
        followed.into_iter().collect()
    }

    /// Sets and clears bits of a block, and has its section count them.
    async fn follow_block(
        &self,
        set: &str,
        block: u32,
        changed: &BTreeMap<u32, bool>,
        now: Timestamp,
    ) -> Result<(), TableError> {
        let keys = [filter_block(&self.tenant, set, block), filter_section(&self.tenant, set, block / SECTION)];
        let [block_key, section] = &keys;
        let (count, of_version) = (format!("b{}", block % SECTION), format!("v{}", block % SECTION));
        let mut round = self.store.backoff();
        loop {
            let items = self.store.get_all(&keys).await?;
            let stands = |key: &Key| items.iter().find(|item| key_of(item).as_ref() == Some(key));
            let was = stands(block_key).map(bits).unwrap_or_default();
            let mut is = was;
            for (bit, there) in changed {
                let (word, mask) = ((bit / WORD) as usize, 1 << (bit % WORD));
                if *there { is[word] |= mask } else { is[word] &= !mask }
            }
            let seen = stands(block_key).map(version).unwrap_or_default();
            let (current, written) = if is == was {
                (seen, Ok(()))
            } else {
                let values = values([(":version", number(seen))]);
                let item = block_item(block_key, &is, seen + 1, now);
                (seen + 1, self.store.put_if(&item, UNCHANGED, &values).await)
            };
            match written {
                Ok(()) => {
                    let ordinals: u32 = is.iter().map(|word| word.count_ones()).sum();
                    let mut counts = stands(section).cloned().unwrap_or_default();
                    if counts.get(&count).cloned().unwrap_or_else(|| number(0)) != number(ordinals) {
                        let expression = format!("SET {count} = :ordinals, {of_version} = :version REMOVE #{TTL}");
                        let newer = format!("attribute_not_exists({of_version}) OR {of_version} <= :version");
                        let values = values([(":ordinals", number(ordinals)), (":version", number(current))]);
                        match self.store.update(section, &expression, Some(&newer), &values).await {
                            Ok(item) => counts = item,
                            Err(Cancelled::Condition(..)) => return Ok(()),
                            Err(cancelled) => return Err(cancelled.into()),
                        }
                    }
                    return self.expire_if_empty(section, &counts, now).await;
                }
                // The same change is being followed elsewhere, because it came twice.
                Err(Cancelled::Condition(..)) if round.wait().await => {}
                Err(Cancelled::Condition(..)) => {
                    return Err(TableError::Unavailable("others kept changing a filter".into()));
                }
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
    }

    /// Has a section expire in which no block has an ordinal any more, unless one has got some since `counts` was read: a set of what is gone
    /// is not to stay for ever.
    async fn expire_if_empty(&self, section: &Key, counts: &Item, now: Timestamp) -> Result<(), TableError> {
        if counts.contains_key(TTL) || counts_of(std::slice::from_ref(counts)).values().any(|count| *count > 0) {
            return Ok(());
        }
        let mut values = values([(":ttl", number(now.plus_seconds(EMPTY).unix_seconds()))]);
        let unchanged = (0..SECTION).map(|block| match counts.get(&format!("v{block}")) {
            Some(version) => {
                values.insert(format!(":v{block}"), version.clone());
                format!("v{block} = :v{block}")
            }
            None => format!("attribute_not_exists(v{block})"),
        });
        let condition = unchanged.collect::<Vec<_>>().join(" AND ");
        match self.store.update(section, &format!("SET #{TTL} = :ttl"), Some(&condition), &values).await {
            Ok(_) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// A page of the rows that match the filters of `query`.
    pub(super) async fn filtered<R: Listed>(&self, of: R::Of, query: &ListQuery<R>) -> Result<Page<R>, TableError> {
        let list = R::list(of);
        let set = set(&list, &query.terms.iter().collect::<Vec<_>>());
        let (ordinals, total) = self.select(&set, query.page.offset(), query.page.size()).await?;
        let keys: Vec<Key> = ordinals.iter().map(|ordinal| list_row(&self.tenant, &list, *ordinal)).collect();
        let mut items: Vec<Item> = self.store.get_all(&keys).await?;
        items.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
        let rows: Vec<R> = readable(items);
        // The set may be a moment behind its rows.
        let matching = rows.into_iter().filter(|row| query.matches(row));
        Ok(query.page.of(matching.collect(), total))
    }

    /// The ordinals of `set`: `size` of them behind the first `offset`, and how many there are altogether.
    async fn select(&self, set: &str, offset: u64, size: u64) -> Result<(Vec<u32>, u64), TableError> {
        let first = filter_section(&self.tenant, set, 0);
        let counts = counts_of(&self.store.query(&first.pk, &first.sk, None).await?);
        let total = counts.values().copied().map(u64::from).sum();

        let (mut before, mut blocks, mut skipped) = (0, Vec::new(), None);
        for (block, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            if before + u64::from(count) > offset && before < offset.saturating_add(size) {
                skipped.get_or_insert(before);
                blocks.push(block);
            }
            before += u64::from(count);
        }
        let keys: Vec<Key> = blocks.iter().map(|block| filter_block(&self.tenant, set, *block)).collect();
        let items = self.store.get_all(&keys).await?;
        let of_key = |key: &Key| items.iter().find(|item| key_of(item).as_ref() == Some(key)).map(bits);
        let ordinals = blocks.iter().zip(&keys).flat_map(|(block, key)| {
            let members = of_key(key).unwrap_or_default();
            (0..BLOCK).filter(move |bit| has(&members, *bit)).map(move |bit| block * BLOCK + bit)
        });
        let skip = usize::try_from(offset - skipped.unwrap_or(offset)).unwrap_or(usize::MAX);
        Ok((ordinals.skip(skip).take(usize::try_from(size).unwrap_or(usize::MAX)).collect(), total))
    }
}

/// The block has not changed since it had this version.
const UNCHANGED: &str = "attribute_not_exists(pk) OR version = :version";

/// A block as an item: a word without a bit is left out, and without any it expires.
fn block_item(key: &Key, bits: &Bits, version: u64, now: Timestamp) -> Item {
    let mut item = key.attributes();
    let words = bits.iter().enumerate().filter(|(_, word)| **word > 0);
    item.extend(words.map(|(place, word)| (format!("w{place}"), number(word))));
    item.insert("version".to_owned(), number(version));
    if *bits == Bits::default() {
        item.insert(TTL.to_owned(), number(now.plus_seconds(EMPTY).unix_seconds()));
    }
    item
}

fn sort_key(item: &Item) -> Option<&String> {
    item.get("sk").and_then(|sk| sk.as_s().ok())
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
