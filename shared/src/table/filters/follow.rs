//! The sets follow the rows of a list, by the changes that the table's stream tells of.

use std::collections::{BTreeMap, HashMap};

use futures_util::stream::{self, StreamExt as _};

use super::block::{Block, BlockChange, EMPTY};
use super::{Term, sets};
use crate::table::dates::Span;
use crate::table::error::{Cancelled, TableError, was_done};
use crate::table::expression::{Condition, Update};
use crate::table::item::{Item, key_of, number, readable, values};
use crate::table::keys::{Key, TTL, filter_block, filter_section, filter_section_of_volume, filter_volume, row_of};
use crate::table::ordinals::{BLOCK, SECTION};
use crate::table::part::Table;
use crate::table::stored::Listed;
use crate::table::version::version;
use crate::values::id::SPREAD;
use crate::values::time::Timestamp;

/// Blocks of sets that follow at the same time: a batch of changes may concern a thousand.
const CONCURRENT_BLOCKS: usize = 64;
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

/// What a section is told of a block, or a volume of a section.
struct Told {
    /// Its place there.
    place: u64,
    /// Its version.
    version: u64,
    /// How many ordinals it has.
    count: u64,
    /// When their rows were made.
    span: Option<Span>,
}

impl Told {
    /// What the volume of a section is told, which has it at `place`.
    fn of_section(section: &Item, place: u64) -> Self {
        let spans = (0..SECTION).map(|block| Span::read(section, &format!("f{block}"), &format!("l{block}")));
        Self { place, version: version(section), count: sum(section), span: spans.fold(None, Span::around) }
    }

    /// The attributes that say it.
    fn attributes(&self) -> Item {
        let place = self.place;
        let span = self.span.iter().flat_map(|span| span.attributes(&format!("f{place}"), &format!("l{place}")));
        span.chain([(format!("b{place}"), number(self.count))]).collect()
    }
}

/// Whether a volume counts the section of this number: not the first ones, so that a list of up to a million rows is counted by its sections alone. Where
/// rows are spread, their sections have numbers of their own.
const fn has_volume(section: u64) -> bool {
    section % (SPREAD / (BLOCK * SECTION)) >= SECTION
}

/// The ordinals that all blocks of a section have together, or all sections of a volume.
fn sum(counts: &Item) -> u64 {
    let count = |place| counts.get(&format!("b{place}"))?.as_n().ok()?.parse::<u64>().ok();
    (0..SECTION).filter_map(count).sum()
}

/// Has the sets follow the rows of `R` that `changes` tell of. To follow the same changes again, or an older one later, makes no
/// difference.
///
/// # Errors
/// [`TableError`]: some sets may have followed.
pub async fn follow<R: Listed>(table: &Table, changes: &[Move], now: Timestamp) -> Result<(), TableError> {
    follow_rows(table, changes, |item| readable::<R>([item]).pop().map(|row| row.terms()), now).await
}

async fn follow_rows(table: &Table, changes: &[Move], terms_of: TermsOf, now: Timestamp) -> Result<(), TableError> {
    let mut moved: HashMap<Key, Moved> = HashMap::new();
    for Move { key, was, is, made_at } in changes.iter().filter(|change| change.was != change.is) {
        let Some((_, list, ordinal)) = row_of(key) else { continue };
        let row = Moved { list: list.to_owned(), ordinal, made_at: *made_at, had: Vec::new() };
        moved.entry(key.clone()).or_insert(row).had.extend([was, is].into_iter().flatten().cloned());
    }
    let keys: Vec<Key> = moved.keys().cloned().collect();
    let (mut present, mut round) = (terms_at(table, &keys, terms_of).await?, table.store.backoff());
    loop {
        follow_present(table, &moved, &present, now).await?;
        // The change that a row had meanwhile may have been followed before these sets were written.
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

/// The terms of the rows of `keys`.
async fn terms_at(table: &Table, keys: &[Key], terms_of: TermsOf) -> Result<Present, TableError> {
    let items = table.store.get_all(keys).await?;
    Ok(items.into_iter().filter_map(|item| Some((key_of(&item)?, terms_of(item)?))).collect())
}

/// Has each row stand in the sets of its present terms, and in no other of those that it had.
async fn follow_present(
    table: &Table,
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
        blocks.iter().map(|((set, block), change)| follow_block(table, set, *block, change, now)).collect();
    // All are tried, also after a failure: a repeat then has less to do.
    let followed: Vec<_> = stream::iter(follow).buffer_unordered(CONCURRENT_BLOCKS).collect().await;
    followed.into_iter().collect()
}

/// Sets and clears bits of a block, and has its section count them, and the volume of the section.
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
        let stands = |key: &Key| items.iter().find(|item| key_of(item).as_ref() == Some(key));
        let [block_key, first, further @ ..] = &keys[..] else { return Ok(()) };
        let (section, volume) = match further {
            // A section that is older than volumes stays where it is, and no volume counts it.
            [section, volume] if stands(first).is_none() => (section, Some(volume)),
            _ => (first, None),
        };
        let was = stands(block_key).map(Block::read).unwrap_or_default();
        let is = was.changed(change);
        // A block that has expired goes on counting where its section has seen it last: an older version tells the section nothing.
        let place = block % SECTION;
        let seen = stands(block_key).map_or_else(|| last_seen(stands(section), place), version);
        let (current, written) = if is == was {
            (seen, Ok(()))
        } else {
            let unchanged = Condition::of(UNCHANGED, [(":version", number(seen))]);
            (seen + 1, table.store.put_if(&is.item(block_key, seen + 1, now), &unchanged).await)
        };
        match written {
            Ok(()) => {
                // So does a section that has expired.
                let of_volume = volume.map(|volume| last_seen(stands(volume), of_section % SECTION));
                let told = Told { place, version: current, count: is.count(), span: is.span };
                let Some(counts) = tell(table, section, stands(section), &told, of_volume).await? else {
                    return Ok(());
                };
                if let Some(volume) = volume {
                    let told = Told::of_section(&counts, of_section % SECTION);
                    if let Some(counts) = tell(table, volume, stands(volume), &told, None).await? {
                        expire_if_empty(table, volume, &counts, now).await?;
                    }
                }
                return expire_if_empty(table, section, &counts, now).await;
            }
            // The same change is being followed elsewhere, because it came twice.
            Err(Cancelled::Condition(..)) => round.again("a filter").await?,
            Err(cancelled) => return Err(cancelled.into()),
        }
    }
}

/// Has a section repeat what it was `told` of a block, or a volume what it was told of a section. Returns the item as it is then; `None` where it knows of a
/// newer version. A section that has a volume counts its own versions, from the one on that the volume has seen last.
async fn tell(
    table: &Table,
    key: &Key,
    stands: Option<&Item>,
    told: &Told,
    of_volume: Option<u64>,
) -> Result<Option<Item>, TableError> {
    let (place, attributes) = (told.place, told.attributes());
    let counts = stands.cloned().unwrap_or_default();
    // A count that is not there is none. One of an older version may be followed by others, also where it is the same.
    let is_known = last_seen(stands, place) >= told.version
        && attributes.iter().all(|(name, value)| counts.get(name).unwrap_or(&number(0)) == value);
    if is_known {
        return Ok(Some(counts));
    }
    let of_block = format!("v{place}");
    let update = Update::new().set(&of_block, number(told.version)).remove(TTL);
    let update = attributes.into_iter().fold(update, |update, (name, value)| update.set(&name, value));
    let update = match of_volume {
        Some(seen) => update.count_from("version", number(seen)),
        None => update,
    };
    let newer = format!("attribute_not_exists({of_block}) OR {of_block} <= :version");
    let newer = Condition::new(newer, values([(":version", number(told.version))]));
    match table.store.update(key, &update, Some(&newer)).await {
        Ok(item) => Ok(Some(item)),
        Err(Cancelled::Condition(..)) => Ok(None),
        Err(cancelled) => Err(cancelled.into()),
    }
}

/// Has a section expire in which no block has an ordinal any more, or a volume, unless one has got some since `counts` was read: a set of what is
/// gone is not to stay for ever.
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
    let expiring = Update::new().set(TTL, number(now.plus_seconds(EMPTY).unix_seconds()));
    was_done(table.store.update(section, &expiring, Some(&Condition::new(unchanged, values))).await).map(drop)
}

/// The version of the block at `place` that its section has seen last, or of the section that its volume has.
fn last_seen(counts: Option<&Item>, place: u64) -> u64 {
    counts.and_then(|counts| counts.get(&format!("v{place}"))?.as_n().ok()?.parse().ok()).unwrap_or_default()
}

/// The block has not changed since it had this version.
const UNCHANGED: &str = "attribute_not_exists(pk) OR version = :version";
