//! Cascades: when a record was removed, its belongings are removed too, in steps of bounded size.
//!
//! A record [owns](Owner) lists of its own, rows that link it to other records, or partitions. Each [`Step`] removes
//! some of them. A repeated step makes no difference, so a cascade that crashed continues where it stopped. The table's
//! stream runs the cascades: see [`reactions`](crate::reactions).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::table::declaration::Reference;
use crate::table::error::{TableError, was_done};
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, from_item, has_id, key_of, number, readable, target_id, text};
use crate::table::keys::{Key, RECORD, list_block, list_head, list_rows, list_shards};
use crate::table::ordinals::{BLOCK, SECTION};
use crate::table::part::Table;
use crate::table::quota::{Amounts, Quota};
use crate::table::store::TRANSACTION_LIMIT;
use crate::table::stored::{Listed, Of as _, Single, Stored};
use crate::table::transaction::{Transaction, Write};
use crate::values::id::{Id, ordinal};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// The most items of one step: the stream's other changes wait for it.
pub(crate) const AT_ONCE: usize = 250;

/// Removes some belongings of the record with this id. Returns whether none is left.
pub type Step = for<'a> fn(&'a Table, Uuid, Timestamp) -> BoxFuture<'a, Result<bool, TableError>>;

/// A record to which others belong.
pub trait Owner: Listed {
    /// The steps that remove its belongings, in this order.
    const STEPS: &'static [Step];
}

/// A record that belongs to others: it is removed together with any of them.
pub trait Owned: Listed {
    /// The records to which it belongs.
    fn owners(&self, tenant: &Tenant) -> Vec<Reference>;
}

/// A row that links an `O` to another record. The pointers to such rows share a partition. The sort key of a pointer is
/// the parent of the row's list, unless the list belongs to the organisation.
pub trait Links<O>: Listed {
    /// The partition, without the organisation before it.
    fn partition(owner: Uuid) -> String;

    /// The pointer to the row in the list of another record, which links it to `owner`.
    fn pointer_of(tenant: &Tenant, owner: Uuid, of: Self::Of) -> Key {
        Key::of(tenant, Self::partition(owner), of.id())
    }
}

/// A record with items in partitions of its own.
pub trait Partitions: Listed {
    /// The partitions, in the order of their removal.
    fn partitions(tenant: &Tenant, id: Uuid) -> Vec<String>;
}

/// The pointers to the row in an item. Functions that take this argument are compiled once for all kinds of rows.
type PointersOf = fn(&Tenant, Item) -> Result<Vec<Key>, TableError>;

/// What the row in an item uses of the quotas, as far as the counters include it; nothing if it is unreadable.
type UsesOf = fn(Item) -> Amounts;

/// The key of the row with this id, and its list, by the sort key of its pointer.
type Target = fn(&Tenant, &str, Uuid) -> Option<(Key, String)>;

/// The step that removes the rows of the owner's own list of `R`, with their pointers, and then the list.
pub fn rows<R: Listed<Of: Id>>(table: &Table, owner: Uuid, _: Timestamp) -> BoxFuture<'_, Result<bool, TableError>> {
    let list = R::list(owner.into());
    Box::pin(async move { remove_first(table, first_of::<R>(table, list).await?).await })
}

/// The step that removes the rows of `R` that link the owner, an `O`, to other records.
pub fn links<R: Links<O>, O: 'static>(
    table: &Table,
    owner: Uuid,
    _: Timestamp,
) -> BoxFuture<'_, Result<bool, TableError>> {
    Box::pin(remove_links(table, R::partition(owner), target::<R, O>, pointers_of::<R>))
}

fn pointers_of<R: Listed>(tenant: &Tenant, item: Item) -> Result<Vec<Key>, TableError> {
    from_item::<R>(item).map(|row| row.pointers(tenant))
}

fn uses_of<R: Listed>(item: Item) -> Amounts {
    from_item::<R>(item).map(|row| row.counted_uses()).unwrap_or_default()
}

fn target<R: Links<O>, O>(tenant: &Tenant, sk: &str, id: Uuid) -> Option<(Key, String)> {
    let at = R::id_at(R::Of::of_sort_key(sk)?, id, ordinal(id));
    Some((R::key(tenant, at), R::list_of(at)))
}

/// The step that removes the items of the partitions of an `O`.
pub fn items<O: Partitions>(table: &Table, owner: Uuid, _: Timestamp) -> BoxFuture<'_, Result<bool, TableError>> {
    Box::pin(async move {
        for partition in O::partitions(&table.tenant, owner) {
            if !remove_items(table, &partition).await? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// The rest of a cascade: belongings of a removed record that still exist. Each change of this item makes the stream
/// run another step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Removal {
    /// The name of the removed record's kind.
    pub removed: String,
    /// Its id.
    pub id: Uuid,
    /// The number of steps so far: if two processes continue the same step, only one succeeds.
    pub step: u64,
}

impl Removal {
    /// The record name by which the stream recognises it.
    pub const NAME: &'static str = "Removal";
}

impl Stored for Removal {
    type Id = Uuid;
    const RECORD: Option<&'static str> = Some(Self::NAME);

    fn key(tenant: &Tenant, id: Uuid) -> Key {
        Key::of(tenant, format_args!("REMOVAL#{id}"), "REMOVAL")
    }
}

impl Single for Removal {}

/// The first rows of a list.
pub(crate) struct FirstRows {
    list: String,
    items: Vec<Item>,
    more: bool,
    pointers_of: PointersOf,
    uses_of: UsesOf,
}

impl FirstRows {
    /// The records in them, without unreadable ones.
    pub(crate) fn records<R: Listed>(&self) -> Vec<R> {
        readable(self.items.iter().cloned())
    }
}

/// A row to remove, with its pointers.
struct LinkedRow {
    id: Uuid,
    key: Key,
    list: String,
    pointers: Vec<Key>,
}

impl Table {
    /// Removes the row that links `owner`, an `O`, to another record, and returns it as it was.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn unlink<R: Links<O>, O>(&self, owner: impl Id, of: R::Of) -> Result<R, TableError> {
        self.remove_pointed(of, &R::pointer_of(&self.tenant, owner.into(), of)).await
    }
}

/// Begins the cascade of the record `id` of the kind `removed`; a [`Removal`] continues it after the first step.
///
/// # Errors
/// [`TableError`]: the next call continues.
pub async fn begin(table: &Table, removed: &str, steps: &[Step], id: Uuid, now: Timestamp) -> Result<(), TableError> {
    if run_steps(table, steps, id, now).await? { Ok(()) } else { leave(table, removed, id).await }
}

/// Leaves the whole cascade of the record `id` of the kind `removed` to the stream.
///
/// # Errors
/// [`TableError`].
pub async fn leave(table: &Table, removed: &str, id: Uuid) -> Result<(), TableError> {
    // If another cascade of the record is under way, this one replaces it.
    let next =
        UpdateExpression::new().set(RECORD, text(Removal::NAME)).set("removed", text(removed)).set("id", text(id));
    table.store.update(&table.key::<Removal>(id), &next.add("step", number(1)), None).await?;
    Ok(())
}

/// Continues a cascade.
///
/// # Errors
/// [`TableError`]: the next call continues.
pub async fn resume(
    table: &Table,
    Removal { id, step, .. }: &Removal,
    steps: &[Step],
    now: Timestamp,
) -> Result<(), TableError> {
    let (key, over) = (table.key::<Removal>(*id), run_steps(table, steps, *id, now).await?);
    let as_seen = Condition::of("step = :seen", [(":seen", number(step))]);
    let written = if over {
        table.store.transact(&[Write::delete(key).when(as_seen)]).await
    } else {
        table.store.update(&key, &UpdateExpression::new().add("step", number(1)), Some(&as_seen)).await.map(drop)
    };
    // Or another process has continued it.
    was_done(written).map(drop)
}

async fn run_steps(table: &Table, steps: &[Step], id: Uuid, now: Timestamp) -> Result<bool, TableError> {
    for step in steps {
        if !step(table, id, now).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the records of `records` that do not exist.
///
/// # Errors
/// [`TableError`].
pub async fn missing_records(table: &Table, records: Vec<Reference>) -> Result<Vec<Reference>, TableError> {
    let owners: HashMap<(Key, Option<Uuid>), Reference> =
        records.into_iter().map(|owner| ((owner.key.clone(), owner.proof), owner)).collect();
    let keys: Vec<Key> = owners.values().map(|owner| owner.key.clone()).collect();
    let found = table.store.get_attributes(&keys, "pk, sk, id").await?;
    let there = |owner: &Reference| found.get(&owner.key).is_some_and(|item| has_id(item, owner.proof));
    Ok(owners.into_values().filter(|owner| !there(owner)).collect())
}

/// The first rows of a list, as many as one step handles.
///
/// # Errors
/// [`TableError`].
pub(crate) async fn first_rows<R: Listed>(table: &Table, of: R::Of) -> Result<FirstRows, TableError> {
    first_of::<R>(table, R::list(of)).await
}

/// The first rows of a list. The shards are read even without a head: a row may be written after the head was
/// removed.
async fn first_of<R: Listed>(table: &Table, list: String) -> Result<FirstRows, TableError> {
    let (items, more) = first_items(table, &list, R::SPREADS).await?;
    Ok(FirstRows { list, items, more, pointers_of: pointers_of::<R>, uses_of: uses_of::<R> })
}

/// The items of the first rows of a list, and whether there are more.
async fn first_items(table: &Table, list: &str, spreads: bool) -> Result<(Vec<Item>, bool), TableError> {
    let (mut items, mut more) = table.store.some_of(&list_rows(&table.tenant, list), None, AT_ONCE).await?;
    for shard in list_shards(&table.tenant, list).filter(|_| spreads) {
        if more {
            break;
        }
        // If there is no room left, one more row is read, to know whether there are more.
        let (found, further) = table.store.some_of(&shard, None, (AT_ONCE - items.len()).max(1)).await?;
        let fits = AT_ONCE - items.len();
        more |= further || found.len() > fits;
        items.extend(found.into_iter().take(fits));
    }
    Ok((items, more))
}

/// Removes these rows with their pointers; if they are the last ones, the list too. Returns whether nothing is
/// left.
///
/// # Errors
/// [`TableError`].
pub(crate) async fn remove_first(table: &Table, rows: FirstRows) -> Result<bool, TableError> {
    let FirstRows { list, items, more, pointers_of, uses_of } = rows;
    let (mut keys, mut counted) = (Vec::new(), Vec::new());
    for item in items {
        let uses = uses_of(item.clone());
        let own: Vec<Key> = key_of(&item).into_iter().collect();
        // An unreadable row is removed too.
        let of_row = own.into_iter().chain(pointers_of(&table.tenant, item).unwrap_or_default());
        if uses.is_empty() { keys.extend(of_row) } else { counted.push((of_row.collect(), uses)) }
    }
    table.store.delete_all(&keys).await?;
    if !remove_counted(table, &counted).await? || more {
        return Ok(false);
    }
    let (head, holes) = (list_head(&table.tenant, &list), list_block(&table.tenant, &list, 0));
    Ok(remove_items(table, &head.pk).await? && remove_items(table, &holes.pk).await?)
}

/// Removes rows that the counters include, each with its pointers, and subtracts what they use. Returns false if another
/// process has removed one of them: the next step handles the rest.
async fn remove_counted(table: &Table, rows: &[(Vec<Key>, Amounts)]) -> Result<bool, TableError> {
    let most = rows.iter().map(|(keys, _)| keys.len()).max().unwrap_or(1).max(1);
    // A transaction also changes a counter for each quota.
    for rows in rows.chunks((TRANSACTION_LIMIT - Quota::WORDS.len()) / most) {
        let mut transaction = Transaction::new(table);
        for (keys, uses) in rows {
            for (place, key) in keys.iter().enumerate() {
                let removal = Write::delete(key.clone());
                transaction.write(if place == 0 { removal.when(Condition::exists()) } else { removal });
            }
            transaction.uncount(uses);
        }
        if !was_done(transaction.commit().await)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes items of a partition. Returns whether none is left.
async fn remove_items(table: &Table, partition: &str) -> Result<bool, TableError> {
    let (items, more) = table.store.some_of(partition, Some("pk, sk"), AT_ONCE).await?;
    table.store.delete_all(&items.iter().filter_map(key_of).collect::<Vec<_>>()).await?;
    Ok(!more)
}

async fn remove_links(
    table: &Table,
    partition: String,
    target: Target,
    pointers_of: PointersOf,
) -> Result<bool, TableError> {
    let partition = Key::of(&table.tenant, partition, "").pk;
    let (pointers, more) = table.store.some_of(&partition, None, AT_ONCE).await?;
    let target = |item: &Item| {
        let (pointer, id) = (key_of(item)?, target_id(item).ok()?);
        let (key, list) = target(&table.tenant, &pointer.sk, id)?;
        Some(LinkedRow { id, key, list, pointers: vec![pointer] })
    };
    let targets: Vec<LinkedRow> = pointers.iter().filter_map(target).collect();
    let keys: Vec<Key> = targets.iter().map(|row| row.key.clone()).collect();
    let mut found: HashMap<Key, Item> = HashMap::new();
    for item in table.store.get_all(&keys).await? {
        found.extend(key_of(&item).map(|key| (key, item)));
    }
    let (mut rows, mut all) = (Vec::new(), true);
    for row in targets {
        match found.get(&row.key).filter(|item| has_id(item, Some(row.id))) {
            // An unreadable row is removed with the one pointer that is known.
            Some(item) => rows.push(LinkedRow {
                pointers: pointers_of(&table.tenant, item.clone()).unwrap_or_else(|_| row.pointers.clone()),
                ..row
            }),
            // Another process has removed the row just now. A pointer that it left behind is removed alone.
            None => all &= remove_pointers(table, row).await?,
        }
    }
    // Neighbours share the items that count their holes.
    rows.sort_by(|a, b| (&a.key.pk, &a.key.sk).cmp(&(&b.key.pk, &b.key.sk)));
    for transaction in removals(table, &rows) {
        // If another process has removed one of the rows, the next step handles the rest.
        all &= was_done(transaction.commit().await)?;
    }
    Ok(all && !more)
}

/// Removes the pointers to a row that is gone; false if one of them leads to another row by now.
async fn remove_pointers(table: &Table, row: LinkedRow) -> Result<bool, TableError> {
    let its_own = Condition::of("attribute_not_exists(pk) OR id = :id", [(":id", text(row.id))]);
    let removal = |key| Write::delete(key).when(its_own.clone());
    let removals: Vec<Write> = row.pointers.into_iter().map(removal).collect();
    was_done(table.store.transact(&removals).await)
}

/// The transactions that remove these rows with their pointers, as many as fit into each.
fn removals<'a>(table: &'a Table, rows: &[LinkedRow]) -> Vec<Transaction<'a>> {
    let mut transactions = Vec::new();
    let (mut transaction, mut holes) = (Transaction::new(table), BTreeMap::<String, BTreeSet<u64>>::new());
    for LinkedRow { id, key, list, pointers } in rows {
        // At most one block and one section more.
        if transaction.len() + counters(&holes) + pointers.len() + 3 > TRANSACTION_LIMIT {
            transactions.push(std::mem::replace(&mut transaction, Transaction::new(table)).with_holes(&holes));
            holes.clear();
        }
        let same = Condition::of("id = :id", [(":id", text(id))]);
        transaction.write(Write::delete(key.clone()).when(same));
        transaction.write_all(pointers.iter().cloned().map(Write::delete));
        holes.entry(list.clone()).or_default().insert(ordinal(*id));
    }
    if !holes.is_empty() {
        transactions.push(transaction.with_holes(&holes));
    }
    transactions
}

impl Transaction<'_> {
    fn with_holes(mut self, holes: &BTreeMap<String, BTreeSet<u64>>) -> Self {
        for (list, ordinals) in holes {
            self.holes(list, ordinals.iter().copied());
        }
        self
    }
}

/// The number of items that count these holes.
fn counters(holes: &BTreeMap<String, BTreeSet<u64>>) -> usize {
    let of = |ordinals: &BTreeSet<u64>, size: u64| {
        ordinals.iter().map(|ordinal| ordinal / size).collect::<BTreeSet<_>>().len()
    };
    holes.values().map(|ordinals| of(ordinals, BLOCK) + of(ordinals, BLOCK * SECTION)).sum()
}
