//! Filters of lists: which rows have the same value in a field, so that those alone are listed, with a total.
//!
//! The rows with one value are a *set* of ordinals, and so are the rows that match several filters at once: a record with the terms
//! `status=closed` and `assistant_id=A` stands in the sets `status=closed`, `assistant_id=A`, and both together. Where a value is *sparse*, few
//! rows have it, and its set stands alone: each set with it would be one more to write for each row, and what two sets have in common is
//! soon found where one of them is small. An ordinal is a bit. A
//! *block* of 1024 ordinals is an item of sixteen numbers of 64 bits each. A *section* counts the
//! ordinals of 32 blocks, so that a page is found by the counts, then by the bits of the few blocks that it lies in.
//!
//! A list that can be asked for the rows of some days has a set of all its rows too, and each block of its sets a span: see
//! [`dates`](crate::table::dates).
//!
//! A request writes its row and no set: all requests of an organisation would meet there. The sets follow the table's stream
//! ([`Table::follow`]), many changes at once, a moment later. So a total may be a moment old; a page never has a row that does not match.
//! A change says only which rows to read. A row is put into the sets of the terms that it has now. So a change that is handled late or twice does
//! no harm.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};

use crate::request::error::Issues;
use crate::request::input::{Parse, Source, member};
use crate::request::page::{ListQuery, Page, PageQuery};
use crate::table::dates::{Dates, Span};
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
const WORD: u64 = 64;

/// The ordinals of a block, bit by bit.
type Bits = [u64; (BLOCK / WORD) as usize];

/// A field with a value: what a list is filtered by, or what a row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    field: &'static str,
    value: String,
    /// Whether few rows have this value.
    sparse: bool,
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
        value.text().map(|value| Self { field, value, sparse: false })
    }

    /// The term that a query asks for; inside, none where it does not. None after an issue.
    pub fn read<T: FilterValue>(field: &'static str, source: &Source<'_>, issues: &mut Issues) -> Option<Option<Self>> {
        let asked = source.optional::<Option<T::Asked>>(field, issues, || None)?;
        Some(asked.as_ref().and_then(|asked| Self::of(field, asked)))
    }

    /// This term, of a value that few rows have.
    #[must_use]
    pub fn sparse(self) -> Self {
        Self { sparse: true, ..self }
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

/// All sets that a row with these terms stands in: one for each choice of at least one of those that are not sparse, one for each that is,
/// and where it is `dated`, that of all rows.
fn sets(list: &str, terms: &[Term], dated: bool) -> Vec<String> {
    let (sparse, others): (Vec<&Term>, Vec<&Term>) = terms.iter().partition(|term| term.sparse);
    let chosen = |mask: u32| {
        let terms: Vec<&Term> =
            (0..).zip(&others).filter(|(bit, _)| mask & 1 << bit != 0).map(|(_, term)| *term).collect();
        set(list, &terms)
    };
    let alone = sparse.iter().map(|term| set(list, &[term]));
    (u32::from(!dated)..1_u32 << others.len()).map(chosen).chain(alone).collect()
}

/// The sets whose common ordinals are the rows that match all of `terms`, the smallest first.
fn sets_of_query(list: &str, terms: &[Term]) -> Vec<String> {
    let (sparse, others): (Vec<&Term>, Vec<&Term>) = terms.iter().partition(|term| term.sparse);
    let together = (sparse.is_empty() || !others.is_empty()).then(|| set(list, &others));
    sparse.iter().map(|term| set(list, &[term])).chain(together).collect()
}

/// A row of a list whose terms may have changed.
#[derive(Debug)]
pub struct Move {
    /// Its key.
    pub key: Key,
    /// Its terms before this change; `None` where it was new.
    pub was: Option<Vec<Term>>,
    /// Its terms after this change; `None` where it was removed.
    pub is: Option<Vec<Term>>,
    /// When the row was made, where lists can be filtered by that.
    pub made_at: Option<Timestamp>,
}

/// A row whose terms may have changed.
#[derive(Debug)]
struct Moved {
    list: String,
    ordinal: u64,
    made_at: Option<Timestamp>,
    /// The terms that it had, one list for each state that a change told of.
    had: Vec<Vec<Term>>,
}

/// The terms of rows as they are now, by their keys. What is not there has none.
type Present = HashMap<Key, Vec<Term>>;

/// The terms of the row in an item; none where it cannot be read. The functions that take one are compiled once, and not for each kind of row.
type TermsOf = fn(Item) -> Option<Vec<Term>>;

/// A block of a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Block {
    /// Its ordinals.
    bits: Bits,
    /// When its rows were made.
    span: Option<Span>,
}

/// What is to become of a block.
#[derive(Debug, Default)]
struct BlockChange {
    /// Which bits are to be there, and which are not.
    bits: BTreeMap<u64, bool>,
    /// When the rows were made whose bits are to be there.
    span: Option<Span>,
}

impl Table {
    /// Has the sets follow the rows of `R` that `changes` tell of. To follow the same changes again, or an older one later, makes no
    /// difference.
    ///
    /// # Errors
    /// [`TableError`]: some sets may have followed.
    pub async fn follow<R: Listed>(&self, changes: &[Move], now: Timestamp) -> Result<(), TableError> {
        self.follow_rows(changes, |item| readable::<R>([item]).pop().map(|row| row.terms()), now).await
    }

    async fn follow_rows(&self, changes: &[Move], terms_of: TermsOf, now: Timestamp) -> Result<(), TableError> {
        let mut moved: HashMap<Key, Moved> = HashMap::new();
        for Move { key, was, is, made_at } in changes.iter().filter(|change| change.was != change.is) {
            let Some((_, list, ordinal)) = row_of(key) else { continue };
            let row = Moved { list: list.to_owned(), ordinal, made_at: *made_at, had: Vec::new() };
            moved.entry(key.clone()).or_insert(row).had.extend([was, is].into_iter().flatten().cloned());
        }
        let keys: Vec<Key> = moved.keys().cloned().collect();
        let (mut present, mut round) = (self.present(&keys, terms_of).await?, self.store.backoff());
        loop {
            self.follow_present(&moved, &present, now).await?;
            // The change that a row had meanwhile may have been followed before these sets were written.
            let later = self.present(&keys, terms_of).await?;
            if later == present {
                return Ok(());
            }
            for (key, terms) in std::mem::replace(&mut present, later) {
                moved.entry(key).and_modify(|row| row.had.push(terms));
            }
            if !round.wait().await {
                return Err(TableError::Unavailable("others kept changing a row".into()));
            }
        }
    }

    /// The terms of the rows of `keys`.
    async fn present(&self, keys: &[Key], terms_of: TermsOf) -> Result<Present, TableError> {
        let items = self.store.get_all(keys).await?;
        Ok(items.into_iter().filter_map(|item| Some((key_of(&item)?, terms_of(item)?))).collect())
    }

    /// Has each row stand in the sets of its present terms, and in no other of those that it had.
    async fn follow_present(
        &self,
        moved: &HashMap<Key, Moved>,
        present: &Present,
        now: Timestamp,
    ) -> Result<(), TableError> {
        let mut blocks: BTreeMap<(String, u64), BlockChange> = BTreeMap::new();
        for (key, Moved { list, ordinal, made_at, had }) in moved {
            let had = had.iter().map(|terms| (terms, false));
            for (terms, there) in had.chain(present.get(key).map(|terms| (terms, true))) {
                for set in sets(list, terms, made_at.is_some()) {
                    let change = blocks.entry((set, ordinal / BLOCK)).or_default();
                    change.bits.insert(ordinal % BLOCK, there);
                    if there {
                        change.span = Span::around(change.span, made_at.map(Span::of));
                    }
                }
            }
        }
        // Collected first: the compiler does not accept a stream over a lazy iterator of borrowing futures as `Send`.
        let follow: Vec<_> =
            blocks.iter().map(|((set, block), change)| self.follow_block(set, *block, change, now)).collect();
        // All are tried, also after a failure: a repeat then has less to do.
        let followed: Vec<_> = stream::iter(follow).buffer_unordered(CONCURRENT_BLOCKS).collect().await;
        followed.into_iter().collect()
    }

    /// Sets and clears bits of a block, and has its section count them.
    async fn follow_block(
        &self,
        set: &str,
        block: u64,
        change: &BlockChange,
        now: Timestamp,
    ) -> Result<(), TableError> {
        let keys = [filter_block(&self.tenant, set, block), filter_section(&self.tenant, set, block / SECTION)];
        let [block_key, section] = &keys;
        let place = block % SECTION;
        let mut round = self.store.backoff();
        loop {
            let items = self.store.get_all(&keys).await?;
            let stands = |key: &Key| items.iter().find(|item| key_of(item).as_ref() == Some(key));
            let was = stands(block_key).map(Block::read).unwrap_or_default();
            let is = was.changed(change);
            // A block that has expired goes on counting where its section has seen it last: an older version tells the section nothing.
            let seen = stands(block_key).map_or_else(|| last_seen(stands(section), place), version);
            let (current, written) = if is == was {
                (seen, Ok(()))
            } else {
                let values = values([(":version", number(seen))]);
                let item = is.item(block_key, seen + 1, now);
                (seen + 1, self.store.put_if(&item, UNCHANGED, &values).await)
            };
            match written {
                Ok(()) => {
                    let told = is.told(place);
                    let mut counts = stands(section).cloned().unwrap_or_default();
                    // A count that is not there is none.
                    if told.iter().any(|(name, value)| counts.get(name).unwrap_or(&number(0)) != value) {
                        let set: Vec<String> = told.keys().map(|name| format!("{name} = :{name}")).collect();
                        let expression = format!("SET {}, v{place} = :version REMOVE #{TTL}", set.join(", "));
                        let newer = format!("attribute_not_exists(v{place}) OR v{place} <= :version");
                        let mut values = values([(":version", number(current))]);
                        values.extend(told.into_iter().map(|(name, value)| (format!(":{name}"), value)));
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
        let sets = sets_of_query(&list, &query.terms);
        let (items, total) = self.selected((&list, &sets), &query.dates, &query.page).await?;
        let rows: Vec<R> = readable(items);
        // The set may be a moment behind its rows.
        let matching = rows.into_iter().filter(|row| query.matches(row));
        Ok(query.page.of(matching.collect(), total))
    }

    /// The rows that [`Table::select`] finds, in their order. In a box: without one, each function with a list compiles it again.
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
            Ok((items, total))
        })
    }

    /// The ordinals of a page of the rows that stand in all of `sets` and were made within `dates`, and how many there are altogether.
    async fn select(
        &self,
        (list, sets): (&str, &[String]),
        dates: &Dates,
        page: &PageQuery,
    ) -> Result<(Vec<u64>, u64), TableError> {
        let first = filter_section(&self.tenant, sets.first().map_or(list, |set| set), 0);
        let sections = self.store.query(&first.pk, &first.sk, None).await?;
        let mut counts = counts_of(&sections);
        let edges = dates.narrow(&sections, &mut counts);
        let wanted: BTreeSet<u64> = if sets.len() > 1 {
            // How many rows a block of several sets has, only its bits tell.
            counts.iter().filter(|(_, count)| **count > 0).map(|(block, _)| *block).collect()
        } else {
            // How many rows of the edges count is not known yet, so perhaps these are a few blocks more than the page lies in.
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
        let ordinals = blocks.iter().filter_map(|block| members.get(block)).flatten().copied();
        let skip = usize::try_from(page.offset().saturating_sub(skipped)).unwrap_or(usize::MAX);
        let size = usize::try_from(page.size()).unwrap_or(usize::MAX);
        Ok((ordinals.skip(skip).take(size).collect(), counts.values().sum()))
    }

    /// The ordinals that all of `sets` have in these blocks.
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

/// The blocks that a page lies in, and how many rows are before the first of them. Of the rows of `edges` any number may count: then also
/// the blocks that it perhaps lies in.
fn blocks_of(page: &PageQuery, counts: &BTreeMap<u64, u64>, edges: &BTreeSet<u64>) -> (Vec<u64>, u64) {
    let (offset, end) = (page.offset(), page.offset().saturating_add(page.size()));
    let (mut least, mut most, mut blocks, mut skipped) = (0, 0, Vec::new(), None);
    for (block, count) in counts.iter().filter(|(_, count)| **count > 0) {
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

impl Block {
    /// The block in an item.
    fn read(item: &Item) -> Self {
        let mut bits = Bits::default();
        for (word, bits) in bits.iter_mut().enumerate() {
            let value = item.get(&format!("w{word}")).and_then(|value| value.as_n().ok()?.parse().ok());
            *bits = value.unwrap_or_default();
        }
        Self { bits, span: Span::read(item, "first", "last") }
    }

    /// The block as an item: a word without a bit is left out, and without any it expires.
    fn item(&self, key: &Key, version: u64, now: Timestamp) -> Item {
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

    fn changed(mut self, change: &BlockChange) -> Self {
        for (bit, there) in &change.bits {
            let (word, mask) = ((bit / WORD) as usize, 1 << (bit % WORD));
            if *there { self.bits[word] |= mask } else { self.bits[word] &= !mask }
        }
        Self { span: Span::around(self.span, change.span), ..self }
    }

    /// The ordinals that both have.
    fn and(mut self, other: Self) -> Self {
        for (word, of_other) in self.bits.iter_mut().zip(other.bits) {
            *word &= of_other;
        }
        self
    }

    /// What its section tells of it, as the block at `place`.
    fn told(&self, place: u64) -> Item {
        let count: u32 = self.bits.iter().map(|word| word.count_ones()).sum();
        let span = self.span.iter().flat_map(|span| span.attributes(&format!("f{place}"), &format!("l{place}")));
        span.chain([(format!("b{place}"), number(count))]).collect()
    }

    /// The ordinals of the rows in it, as the block of this number.
    fn ordinals(&self, number: u64) -> Vec<u64> {
        let has = |bit: &u64| self.bits[(bit / WORD) as usize] & (1 << (bit % WORD)) != 0;
        (0..BLOCK).filter(has).map(|bit| number * BLOCK + bit).collect()
    }
}

/// The version of the block at `place` that its section has seen last.
fn last_seen(section: Option<&Item>, place: u64) -> u64 {
    section.and_then(|section| section.get(&format!("v{place}"))?.as_n().ok()?.parse().ok()).unwrap_or_default()
}

/// The block has not changed since it had this version.
const UNCHANGED: &str = "attribute_not_exists(pk) OR version = :version";

fn sort_key(item: &Item) -> Option<&String> {
    item.get("sk").and_then(|sk| sk.as_s().ok())
}
