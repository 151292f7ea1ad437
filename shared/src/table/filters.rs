//! Filters of lists: which rows have the same value in a field, so that those alone are listed, with an exact total.
//!
//! The rows with one value are a *set* of ordinals, and so are the rows that match several filters at once: a record with the terms
//! `status=closed` and `assistant_id=A` stands in the sets `status=closed`, `assistant_id=A`, and both together. An ordinal is a bit. A
//! *block* of 1024 ordinals is an item of sixteen numbers of 64 bits each; to put an ordinal in is to add its power of two, to take it out
//! is to subtract it, which nobody may do twice: the transaction that does it has a condition that holds once. A *section* counts the
//! ordinals of 32 blocks, so that a page is found by the counts, then by the bits of the few blocks that it lies in.
//!
//! The value that nearly all rows begin with can do without sets (`filter except …`): they are what the other values leave.

use std::collections::BTreeMap;

use crate::request::error::Issues;
use crate::request::input::{Parse, Source, member};
use crate::request::page::{ListQuery, Page};
use crate::table::commit::Transaction;
use crate::table::keys::{Key, filter_block, filter_section, list_row};
use crate::table::list::{BLOCK, SECTION, counts_of, first_ordinal};
use crate::table::store::{Item, number, values};
use crate::table::stored::Listed;
use crate::table::transaction::Write;
use crate::table::{Table, TableError, readable};
use crate::values::id::Id;
use crate::values::schema::{Member, Schema};

/// Bits of one number: DynamoDB's have 38 digits, and these take 20.
const WORD: u32 = 64;

/// The ordinals of a block, bit by bit.
type Bits = [u64; (BLOCK / WORD) as usize];

/// A field with a value: what a list is filtered by, or what a row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    field: &'static str,
    value: String,
    /// All other values of the field, where this is the one without a set.
    except: Option<&'static [&'static str]>,
}

/// A value that lists can be filtered by.
pub trait FilterValue {
    /// What the query has.
    type Asked: Parse + Schema + FilterValue;

    /// The value in words; none where there is no value.
    fn text(&self) -> Option<String>;

    /// All values that there are, where there is a list of them.
    fn words() -> &'static [&'static str] {
        &[]
    }
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
    /// The term of a row whose `field` has this value; none where it has no set.
    pub fn of<T: FilterValue>(field: &'static str, value: &T, except: Option<&T>) -> Option<Self> {
        let value = value.text()?;
        let excepted = except.and_then(FilterValue::text).is_some_and(|except| except == value);
        (!excepted).then_some(Self { field, value, except: None })
    }

    /// The term that a query asks for; inside, none where it does not. None after an issue.
    pub fn read<T: FilterValue>(
        field: &'static str,
        source: &Source<'_>,
        issues: &mut Issues,
        except: Option<&T>,
    ) -> Option<Option<Self>> {
        let asked = source.optional::<Option<T::Asked>>(field, issues, || None)?;
        let Some(value) = asked.as_ref().and_then(FilterValue::text) else { return Some(None) };
        let excepted = except.and_then(FilterValue::text).is_some_and(|except| except == value);
        Some(Some(Self { field, value, except: excepted.then(T::words) }))
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

/// Rows of a list: all, or those of a set; without those of others.
#[derive(Debug)]
struct Selection {
    /// The set; all rows where there is none.
    of: Option<String>,
    /// Subsets of it that are left out; they have nothing in common.
    without: Vec<String>,
}

impl Selection {
    /// The rows of `list` that match `asked`, of which at most one term has no set.
    fn of(list: &str, asked: &[Term]) -> Self {
        let with_set: Vec<&Term> = asked.iter().filter(|term| term.except.is_none()).collect();
        let excepted = asked.iter().find_map(|term| Some((term, term.except?)));
        let without = excepted.map(|(term, words)| {
            let others = words.iter().filter(|word| **word != term.value);
            let instead = |word: &&str| Term { field: term.field, value: (*word).to_owned(), except: None };
            let combined = |other: Term| {
                let terms = asked.iter().map(|term| if term.field == other.field { &other } else { term });
                set(list, &terms.collect::<Vec<_>>())
            };
            others.map(instead).map(combined).collect()
        });
        Self { of: (!with_set.is_empty()).then(|| set(list, &with_set)), without: without.unwrap_or_default() }
    }
}

impl Transaction<'_> {
    /// Moves the row at `ordinal` of `list` from the sets of one choice of terms to those of another.
    pub fn select(&mut self, list: &str, ordinal: u32, was: &[Term], is: &[Term]) {
        let (was, is) = (sets(list, was), sets(list, is));
        was.iter().filter(|set| !is.contains(set)).for_each(|set| self.add_to_set(set, ordinal, -1));
        is.iter().filter(|set| !was.contains(set)).for_each(|set| self.add_to_set(set, ordinal, 1));
    }

    fn add_to_set(&mut self, set: &str, ordinal: u32, sign: i128) {
        let (block, bit) = (ordinal / BLOCK, ordinal % BLOCK);
        let tenant = *self.tenant();
        let add = |key: Key, name: String, value: i128| Write::Update {
            key,
            expression: format!("ADD {name} :value").into(),
            condition: None,
            values: values([(":value", number(value))]),
        };
        self.write(add(filter_block(&tenant, set, block), format!("w{}", bit / WORD), sign << (bit % WORD)));
        self.write(add(filter_section(&tenant, set, block / SECTION), format!("b{}", block % SECTION), sign));
    }
}

impl Table {
    /// A page of the rows that match the filters of `query`.
    pub(super) async fn filtered<R: Listed>(&self, of: R::Of, query: &ListQuery<R>) -> Result<Page<R>, TableError> {
        let list = R::list(of);
        let selection = Selection::of(&list, &query.terms);
        let next = async { if selection.of.is_none() { self.next_ordinal::<R>(of).await } else { Ok(0) } };
        let (ordinals, total) = self.select(&selection, next, query.page.offset(), query.page.size()).await?;
        let keys: Vec<Key> = ordinals.iter().map(|ordinal| list_row(&self.tenant, &list, *ordinal)).collect();
        let mut items: Vec<Item> = self.store.get_all(&keys).await?;
        items.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
        let rows: Vec<R> = readable(items);
        // A row may have changed since its set was read.
        let matching = rows.into_iter().filter(|row| {
            let has = row.terms();
            query.terms.iter().all(|asked| match asked.except {
                None => has.contains(asked),
                Some(_) => has.iter().all(|term| term.field != asked.field),
            })
        });
        Ok(query.page.of(matching.collect(), total))
    }

    /// The ordinals of `selection`, of a list in which `next` comes next: `size` of them behind the first `offset`, and how many there
    /// are altogether.
    async fn select(
        &self,
        selection: &Selection,
        next: impl Future<Output = Result<u32, TableError>>,
        offset: u64,
        size: u64,
    ) -> Result<(Vec<u32>, u64), TableError> {
        let of = selection.of.as_deref();
        let without = futures_util::future::try_join_all(selection.without.iter().map(|set| self.counts(Some(set))));
        let (next, counts, without) = futures_util::try_join!(next, self.counts(of), without)?;
        let all = || (0..next.div_ceil(BLOCK)).map(|block| (block, (next - block * BLOCK).min(BLOCK))).collect();
        let counts: BTreeMap<u32, u32> = if of.is_some() { counts } else { all() };
        // They are read side by side, so a subset may be a moment ahead of the set.
        let left = |(block, count): (&u32, &u32)| {
            let out = without.iter().filter_map(|counts| counts.get(block)).sum::<u32>();
            (*block, u64::from(count.saturating_sub(out)))
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
        let without = selection.without.iter().map(|set| self.blocks(Some(set), &blocks));
        let (of_blocks, without) =
            futures_util::try_join!(self.blocks(of, &blocks), futures_util::future::try_join_all(without))?;
        let ordinals = blocks.iter().flat_map(|block| {
            let members =
                if of.is_some() { of_blocks.get(block).copied().unwrap_or_default() } else { until(*block, next) };
            let out: Vec<Bits> = without.iter().filter_map(|blocks| blocks.get(block).copied()).collect();
            (0..BLOCK)
                .filter(move |bit| has(&members, *bit) && !out.iter().any(|out| has(out, *bit)))
                .map(move |bit| block * BLOCK + bit)
        });
        let skip = usize::try_from(offset - skipped.unwrap_or(offset)).unwrap_or(usize::MAX);
        Ok((ordinals.skip(skip).take(usize::try_from(size).unwrap_or(usize::MAX)).collect(), total))
    }

    async fn counts(&self, set: Option<&str>) -> Result<BTreeMap<u32, u32>, TableError> {
        let Some(set) = set else { return Ok(BTreeMap::new()) };
        let first = filter_section(&self.tenant, set, 0);
        Ok(counts_of(&self.store.query(&first.pk, &first.sk, None).await?))
    }

    async fn blocks(&self, set: Option<&str>, blocks: &[u32]) -> Result<BTreeMap<u32, Bits>, TableError> {
        let Some(set) = set else { return Ok(BTreeMap::new()) };
        let keys: Vec<Key> = blocks.iter().map(|block| filter_block(&self.tenant, set, *block)).collect();
        let items = self.store.get_all(&keys).await?;
        let block = |item: &Item| Some((item.get("sk")?.as_s().ok()?.parse().ok()?, bits(item)));
        Ok(items.iter().filter_map(block).collect())
    }
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

/// All ordinals of `block` below `next`.
fn until(block: u32, next: u32) -> Bits {
    let mut bits = Bits::default();
    for bit in (0..BLOCK).take_while(|bit| first_ordinal(block) + u64::from(*bit) < u64::from(next)) {
        bits[(bit / WORD) as usize] |= 1 << (bit % WORD);
    }
    bits
}
