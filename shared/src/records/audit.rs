//! The audit list: which key has done what to which record, and when.
//!
//! A request [stamps](crate::table::stamp) what it writes. A reaction to the table's stream adds an entry for each stamp.
//! The id of an entry begins with its time and follows from the change, so a change that the stream delivers twice has
//! one entry, at its own time. The entries of an organisation are spread over partitions. In each partition they are in the
//! order of their times.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::input::schema::extended;
use crate::input::{Between, Input, Issues, Source};
use crate::table::dates::Dates;
use crate::table::item::number;
use crate::table::keys::{Key, TTL};
use crate::table::stamp::Stamp;
use crate::table::store::BATCH_WRITE_LIMIT;
use crate::table::stored::{Single, Stored};
use crate::table::{Table, TableError};
use crate::values::hash::sha256;
use crate::values::id::{ApiKeyId, AuditId, RecordId, uuid_v7};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// The partitions of an organisation's entries. Each takes a thousand entries a second.
const SHARDS: u128 = 4;
/// Seconds of a day.
const DAY: i64 = 86_400;
/// The bits of an id after its time.
const AFTER_TIME: u32 = 80;

crate::choice! {
    /// What a request did to a record.
    pub enum AuditAction {
        /// It made it.
        Created = "created",
        /// It changed it.
        Updated = "updated",
        /// It removed it.
        Deleted = "deleted",
    }
}

crate::object! {
    /// An entry of the audit list: what a key has done to a record. It has no value of the record.
    pub struct Audit {
        /// Identifier. It begins with the time.
        pub id: AuditId,
        /// When the request began that made the change.
        pub at: Timestamp,
        /// The key of the request.
        pub key_id: ApiKeyId,
        /// The operation, such as `update-contact`.
        pub operation: String,
        /// What the request did.
        pub action: AuditAction,
        // An attribute `record` would let the stream take the entry for that record.
        /// Kind of the record, such as `Contact`.
        pub record_type: String,
        /// Identifier of the record.
        pub record_id: RecordId,
        /// Identifier of the request, which its answer had in the header `x-request-id`.
        pub request_id: String,
    }
}

crate::object! {
    /// A page of the audit list.
    pub struct AuditPage {
        /// The entries, newest first.
        pub items: Vec<Audit>,
        /// Most entries on a page.
        pub size: u64,
        /// The value of `after` for the next page; null on the last page.
        pub next: Option<AuditId>,
    }
}

crate::input! {
    /// Which page of the audit list.
    pub struct AuditCursor {
        /// Entries on a page.
        pub size: Between<1, 100> = Between::clamped(50),
        /// Identifier of the last entry of the page before: the answer's `next`. Without it, the page begins with the newest entry.
        pub after: Option<AuditId> = None,
    }
}

/// The query for a page of the audit list.
#[derive(Debug)]
pub struct AuditQuery {
    cursor: AuditCursor,
    dates: Dates,
}

impl Input for AuditQuery {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let (cursor, dates) = (AuditCursor::read(source, issues), Dates::read(source, issues));
        Some(Self { cursor: cursor?, dates: dates? })
    }

    fn schema() -> Value {
        extended(AuditCursor::schema(), Dates::members().into())
    }
}

impl AuditQuery {
    /// The lowest and the highest id of the wanted entries, which are not older than `oldest`; `None` if there is none.
    fn range(&self, oldest: Timestamp) -> Option<(Uuid, Uuid)> {
        let Self { cursor: AuditCursor { after, .. }, dates: Dates { from, to } } = self;
        let from = first_id(from.map_or(oldest, |from| from.max(oldest)));
        let end = after.map_or(u128::MAX, |after| after.0.as_u128()).min(to.map_or(u128::MAX, first_id));
        let last = end.checked_sub(1).filter(|last| from <= *last)?;
        Some((Uuid::from_u128(from), Uuid::from_u128(last)))
    }
}

impl Stored for Audit {
    type Id = AuditId;

    fn key(tenant: &Tenant, id: AuditId) -> Key {
        Key { sk: id.to_string(), ..shard(tenant, id.0.as_u128() % SHARDS) }
    }
}

impl Single for Audit {}

/// The partition of some entries.
fn shard(tenant: &Tenant, shard: u128) -> Key {
    Key::of(tenant, format_args!("AUDIT#{shard}"), "")
}

/// The lowest id of an entry of this time. The times before 1970 have the same one.
fn first_id(at: Timestamp) -> u128 {
    u128::try_from(at.unix_millis()).unwrap_or_default() << AFTER_TIME
}

/// The attributes of a stamped item: of a row, or of an item that counts removed rows.
#[derive(Debug, Deserialize)]
pub struct StampedItem {
    stamp: Option<String>,
    record: Option<String>,
    id: Option<Uuid>,
    removed: Option<String>,
}

/// The entries of a change after which an item `is` stamped: one for each record that the item shows.
pub fn entries(is_new: bool, is: &StampedItem) -> Vec<Audit> {
    let Some(stamp) = is.stamp.as_deref().and_then(Stamp::parse) else { return Vec::new() };
    let one = |action, record: &str, id| entry(&stamp, action, record, id);
    match (&is.removed, &is.record) {
        (Some(removed), _) => {
            let (record, ids) = removed.split_once(' ').unwrap_or_default();
            ids.split(' ').filter_map(|id| Some(one(AuditAction::Deleted, record, id.parse().ok()?))).collect()
        }
        (None, Some(record)) => {
            let action = if is_new { AuditAction::Created } else { AuditAction::Updated };
            is.id.map(|id| one(action, record, id)).into_iter().collect()
        }
        (None, None) => Vec::new(),
    }
}

/// The entry of what the request of `stamp` did to a record.
fn entry(stamp: &Stamp, action: AuditAction, record: &str, record_id: Uuid) -> Audit {
    let Stamp { key, at, operation, request } = stamp.clone();
    let same = [request.as_str(), " ", action.as_str(), " ", record, " "].map(str::as_bytes);
    let same = same.into_iter().chain([record_id.as_bytes().as_slice()]);
    let mut random = [0; 10];
    random.copy_from_slice(&sha256(same)[..10]);
    let id = AuditId(uuid_v7(at, random));
    let (record_type, record_id, request_id) = (record.to_owned(), RecordId(record_id), request);
    Audit { id, at, key_id: key, operation, action, record_type, record_id, request_id }
}

/// Stores entries for `days`. Entries that are stored already stay as they are.
///
/// # Errors
/// [`TableError`]: some may have been stored.
pub async fn store(table: &Table, entries: impl Iterator<Item = Audit> + Send, days: u32) -> Result<(), TableError> {
    if days == 0 {
        return Ok(());
    }
    // A batch of the stream may contain a change twice, but a batch write must not contain a key twice.
    let entries: BTreeMap<AuditId, Audit> = entries.map(|entry| (entry.id, entry)).collect();
    let item = |entry: &Audit| {
        let mut item = table.item(entry.id, entry)?;
        let until = entry.at.plus_seconds(i64::from(days) * DAY);
        item.insert(TTL.to_owned(), number(until.unix_seconds()));
        Ok(item)
    };
    let items = entries.values().map(item).collect::<Result<Vec<_>, TableError>>()?;
    let batches = items.chunks(BATCH_WRITE_LIMIT).map(|batch| table.store.put_batch(batch.to_vec()));
    try_join_all(batches).await.map(drop)
}

/// A page of the entries of the last `days`: DynamoDB removes older ones some time later.
///
/// # Errors
/// [`TableError`].
pub async fn list(table: &Table, query: &AuditQuery, days: u32, now: Timestamp) -> Result<AuditPage, TableError> {
    let size = query.cursor.size.get().unsigned_abs();
    let most = usize::try_from(size).unwrap_or(usize::MAX);
    let Some((from, last)) = query.range(now.plus_seconds(-i64::from(days) * DAY)) else {
        return Ok(AuditPage { items: Vec::new(), size, next: None });
    };
    let (from, last) = (from.to_string(), last.to_string());
    // Each partition may have all entries of the page, and one more shows that there is another page.
    let read = async |number| {
        let partition = shard(&table.tenant, number).pk;
        table.store.records_between::<Audit>(&partition, [&from, &last], most + 1, false).await
    };
    let found = try_join_all((0..SHARDS).map(read)).await?;
    let mut items: Vec<Audit> = found.into_iter().flat_map(|found| found.records).collect();
    items.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.id));
    let is_last = items.len() <= most;
    items.truncate(most);
    let next = items.last().filter(|_| !is_last).map(|entry| entry.id);
    Ok(AuditPage { items, size, next })
}
