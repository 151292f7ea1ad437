//! Updates the sets from the rows of a list, by the changes that the table's stream reports.

use std::collections::{BTreeMap, HashMap};

use futures_util::stream::{self, StreamExt as _};

use super::block::{Block, BlockChange, EMPTY};
use super::{Term, sets};
use crate::table::dates::Span;
use crate::table::error::{Cancelled, TableError, was_done};
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, key_of, number, readable, values};
use crate::table::keys::{Key, TTL, filter_block, filter_section, filter_section_of_volume, filter_volume, row_of};
use crate::table::ordinals::{BLOCK, SECTION};
use crate::table::part::Table;
use crate::table::stored::Listed;
use crate::table::version::version;
use crate::values::id::SPREAD;
use crate::values::time::Timestamp;

/// Blocks of sets that are updated at the same time: a batch of changes may concern a thousand.
const CONCURRENT_BLOCKS: usize = 64;
/// A row of a list whose terms may have changed.
#[derive(Debug)]
pub struct Move {
    /// Its key.
    pub key: Key,
    /// Its terms before this change; `None` if it was new.
    pub was: Option<Vec<Term>>,
    /// Its terms after this change; `None` if it was removed.
    pub is: Option<Vec<Term>>,
    /// When the row was created, if lists can be filtered by that.
    pub made_at: Option<Timestamp>,
}

/// A row whose terms may have changed.
#[derive(Debug)]
pub(super) struct Moved {
    /// Its list.
    pub(super) list: String,
    /// Its ordinal there.
    pub(super) ordinal: u64,
    /// When it was created, if lists can be filtered by that.
    pub(super) made_at: Option<Timestamp>,
    /// Whether its own fields are its terms. If not, another row puts it into a single set.
    pub(super) is_own: bool,
    /// The terms that it had before, one list for each change.
    pub(super) had: Vec<Vec<Term>>,
}

/// The current terms of rows, by their keys. A missing row has none.
type Present = HashMap<Key, Vec<Term>>;

/// The terms of the row in an item; `None` if it cannot be read. Functions that take this argument are compiled once
/// for all kinds of rows.
type TermsOf = fn(Item) -> Option<Vec<Term>>;

/// The values that a section stores for a block, or a volume for a section.
struct StoredCount {
    /// The position of the block in its section, or of the section in its volume.
    place: u64,
    /// Its version.
    version: u64,
    /// The number of ordinals in it.
    count: u64,
    /// The creation times of their rows.
    span: Option<Span>,
}

impl StoredCount {
    /// The values that a volume stores for a section at `place`.
    fn of_section(section: &Item, place: u64) -> Self {
        let spans = (0..SECTION).map(|block| Span::read(section, &format!("f{block}"), &format!("l{block}")));
        Self { place, version: version(section), count: sum(section), span: spans.fold(None, Span::around) }
    }

    /// The attributes with these values.
    fn attributes(&self) -> Item {
        let place = self.place;
        let span = self.span.iter().flat_map(|span| span.attributes(&format!("f{place}"), &format!("l{place}")));
        span.chain([(format!("b{place}"), number(self.count))]).collect()
    }
}

/// Whether a volume counts the section with this number: the first sections have none, so that a list of up to a
/// million rows is counted by its sections alone. The sections of spread rows have numbers of their own.
const fn has_volume(section: u64) -> bool {
    section % (SPREAD / (BLOCK * SECTION)) >= SECTION
}

/// The number of ordinals in all blocks of a section, or in all sections of a volume.
fn sum(counts: &Item) -> u64 {
    let count = |place| counts.get(&format!("b{place}"))?.as_n().ok()?.parse::<u64>().ok();
    (0..SECTION).filter_map(count).sum()
}

/// Updates the sets from the rows of `R` in `changes`. Handling the same changes again, or older ones later, makes
/// no difference.
///
/// # Errors
/// [`TableError`]: some sets may be up to date.
pub async fn follow<R: Listed>(table: &Table, changes: &[Move], now: Timestamp) -> Result<(), TableError> {
    follow_rows(table, changes, |item| readable::<R>([item]).pop().map(|row| row.terms()), now).await
}

async fn follow_rows(table: &Table, changes: &[Move], terms_of: TermsOf, now: Timestamp) -> Result<(), TableError> {
    let mut moved: HashMap<Key, Moved> = HashMap::new();
    // A row that matches no filter is in no set, unless its list can be filtered by dates.
    let has_set = |change: &Move| {
        change.made_at.is_some() || [&change.was, &change.is].into_iter().flatten().any(|terms| !terms.is_empty())
    };
    for Move { key, was, is, made_at } in changes.iter().filter(|change| change.was != change.is && has_set(change)) {
        let Some((_, list, ordinal)) = row_of(key) else { continue };
        let row = Moved { list: list.to_owned(), ordinal, made_at: *made_at, is_own: true, had: Vec::new() };
        moved.entry(key.clone()).or_insert(row).had.extend([was, is].into_iter().flatten().cloned());
    }
    follow_moved(table, moved, terms_of, now).await
}

/// Updates the sets of `moved` rows. Each has the key of the row whose item has its terms.
pub(super) async fn follow_moved(
    table: &Table,
    mut moved: HashMap<Key, Moved>,
    terms_of: TermsOf,
    now: Timestamp,
) -> Result<(), TableError> {
    let keys: Vec<Key> = moved.keys().cloned().collect();
    let (mut present, mut round) = (terms_at(table, &keys, terms_of).await?, table.store.backoff());
    loop {
        follow_present(table, &moved, &present, now).await?;
        // A change that a row had in the meantime may have been handled before these sets were written.
        let later = terms_at(table, &keys, terms_of).await?;
        if later == present {
            return Ok(());
        }
        for (key, terms) in std::mem::replace(&mut present, later) {
            moved.entry(key).and_modify(|row| row.had.push(terms));
        }
        round.again("a row").await?;
    }
}

/// The current terms of the rows of `keys`.
async fn terms_at(table: &Table, keys: &[Key], terms_of: TermsOf) -> Result<Present, TableError> {
    let items = table.store.get_all(keys).await?;
    Ok(items.into_iter().filter_map(|item| Some((key_of(&item)?, terms_of(item)?))).collect())
}

/// Puts each row into the sets of its current terms, and removes it from all other sets in which it was.
async fn follow_present(
    table: &Table,
    moved: &HashMap<Key, Moved>,
    present: &Present,
    now: Timestamp,
) -> Result<(), TableError> {
    let mut blocks: BTreeMap<(String, u64), BlockChange> = BTreeMap::new();
    for (key, Moved { list, ordinal, made_at, is_own, had }) in moved {
        let had = had.iter().map(|terms| (terms, false));
        for (terms, there) in had.chain(present.get(key).map(|terms| (terms, true))) {
            for set in sets(list, terms, *is_own && made_at.is_some()) {
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
        blocks.iter().map(|((set, block), change)| follow_block(table, set, *block, change, now)).collect();
    // All are attempted, even after a failure: a repeat then has less to do.
    let followed: Vec<_> = stream::iter(follow).buffer_unordered(CONCURRENT_BLOCKS).collect().await;
    followed.into_iter().collect()
}

/// Sets and clears bits of a block, and updates the counts of its section and of the section's volume.
async fn follow_block(
    table: &Table,
    set: &str,
    block: u64,
    change: &BlockChange,
    now: Timestamp,
) -> Result<(), TableError> {
    let of_section = block / SECTION;
    let mut keys = vec![filter_block(&table.tenant, set, block), filter_section(&table.tenant, set, of_section)];
    if has_volume(of_section) {
        keys.push(filter_section_of_volume(&table.tenant, set, of_section));
        keys.push(filter_volume(&table.tenant, set, of_section / SECTION));
    }
    let mut round = table.store.backoff();
    loop {
        let items = table.store.get_all(&keys).await?;
        let existing = |key: &Key| items.iter().find(|item| key_of(item).as_ref() == Some(key));
        let [block_key, first, further @ ..] = &keys[..] else { return Ok(()) };
        let (section, volume) = match further {
            // A section that is older than volumes stays where it is, and no volume counts it.
            [section, volume] if existing(first).is_none() => (section, Some(volume)),
            _ => (first, None),
        };
        let was = existing(block_key).map(Block::read).unwrap_or_default();
        let is = was.changed(change);
        // After a block has expired, its versions continue from the one that its section saw last: the section
        // ignores older versions.
        let place = block % SECTION;
        let seen = existing(block_key).map_or_else(|| last_seen(existing(section), place), version);
        let (current, written) = if is == was {
            (seen, Ok(()))
        } else {
            let unchanged = Condition::of(UNCHANGED, [(":version", number(seen))]);
            (seen + 1, table.store.put_if(&is.item(block_key, seen + 1, now), &unchanged).await)
        };
        match written {
            Ok(()) => {
                // The same is true of a section that has expired.
                let of_volume = volume.map(|volume| last_seen(existing(volume), of_section % SECTION));
                let count = StoredCount { place, version: current, count: is.count(), span: is.span };
                let Some(counts) = store_count(table, section, existing(section), &count, of_volume).await? else {
                    return Ok(());
                };
                if let Some(volume) = volume {
                    let count = StoredCount::of_section(&counts, of_section % SECTION);
                    if let Some(counts) = store_count(table, volume, existing(volume), &count, None).await? {
                        expire_if_empty(table, volume, &counts, now).await?;
                    }
                }
                return expire_if_empty(table, section, &counts, now).await;
            }
            // Another process handles the same change, which came twice.
            Err(Cancelled::Condition(..)) => round.again("a filter").await?,
            Err(cancelled) => return Err(cancelled.into()),
        }
    }
}

/// Stores in a section the values of a block, or in a volume the values of a section. Returns the item after that;
/// `None` if it has a newer version already. A section that has a volume counts its own versions, starting with the
/// one that the volume saw last.
async fn store_count(
    table: &Table,
    key: &Key,
    existing: Option<&Item>,
    stored: &StoredCount,
    of_volume: Option<u64>,
) -> Result<Option<Item>, TableError> {
    let (place, attributes) = (stored.place, stored.attributes());
    let counts = existing.cloned().unwrap_or_default();
    // A missing count is zero. An equal count of an older version is still replaced, since other versions may come
    // after it.
    let is_known = last_seen(existing, place) >= stored.version
        && attributes.iter().all(|(name, value)| counts.get(name).unwrap_or(&number(0)) == value);
    if is_known {
        return Ok(Some(counts));
    }
    let of_block = format!("v{place}");
    let update = UpdateExpression::new().set(&of_block, number(stored.version)).remove(TTL);
    let update = attributes.into_iter().fold(update, |update, (name, value)| update.set(&name, value));
    let update = match of_volume {
        Some(seen) => update.count_from("version", number(seen)),
        None => update,
    };
    let newer = format!("attribute_not_exists({of_block}) OR {of_block} <= :version");
    let newer = Condition::new(newer, values([(":version", number(stored.version))]));
    match table.store.update(key, &update, Some(&newer)).await {
        Ok(item) => Ok(Some(item)),
        Err(Cancelled::Condition(..)) => Ok(None),
        Err(cancelled) => Err(cancelled.into()),
    }
}

/// Lets a section expire if all its blocks are empty, or a volume if all its sections are, unless one got an
/// ordinal since `counts` was read: the set of a deleted record must not stay for ever.
async fn expire_if_empty(table: &Table, section: &Key, counts: &Item, now: Timestamp) -> Result<(), TableError> {
    if counts.contains_key(TTL) || sum(counts) > 0 {
        return Ok(());
    }
    let mut values = Item::new();
    let unchanged = (0..SECTION).map(|block| match counts.get(&format!("v{block}")) {
        Some(version) => {
            values.insert(format!(":v{block}"), version.clone());
            format!("v{block} = :v{block}")
        }
        None => format!("attribute_not_exists(v{block})"),
    });
    let unchanged = unchanged.collect::<Vec<_>>().join(" AND ");
    let expiring = UpdateExpression::new().set(TTL, number(now.plus_seconds(EMPTY).unix_seconds()));
    was_done(table.store.update(section, &expiring, Some(&Condition::new(unchanged, values))).await).map(drop)
}

/// The version of the block at `place` that its section saw last, or of the section that its volume saw last.
fn last_seen(counts: Option<&Item>, place: u64) -> u64 {
    counts.and_then(|counts| counts.get(&format!("v{place}"))?.as_n().ok()?.parse().ok()).unwrap_or_default()
}

/// The condition that the block still has this version.
const UNCHANGED: &str = "attribute_not_exists(pk) OR version = :version";
