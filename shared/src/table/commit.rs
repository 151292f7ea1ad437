//! A transaction that also appends to lists, and is made again with other ordinals where other appends came first.
//!
//! To append, the head moves on, on condition that it stands where this process last saw it, and the rows are put. Where it stands
//! elsewhere, the failure tells where. A process that has not seen the head yet reads it first.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::try_join_all;
use uuid::Uuid;

use crate::request::tenant::Tenant;
use crate::table::keys::{Key, LIST_HEAD, TTL, list_head, made_by};
use crate::table::list::next_of;
use crate::table::store::{number, text, values};
use crate::table::stored::Listed;
use crate::table::transaction::{Cancelled, Write};
use crate::table::{ATTEMPTS, Table, TableError};
use crate::values::id::ordinal;
use crate::values::time::Timestamp;

/// Seconds for which it is remembered what made a record: longer than a change stays in the stream, or a keyed request may come again
/// ([`MARKED`](crate::records::claim::MARKED)).
const REMEMBERED: i64 = 3 * 86_400;
/// How much longer an append waits, at most, for each that came before it.
const CROWD: Duration = Duration::from_millis(8);

/// A transaction in the making. The heads of its lists move on behind all else that it does: of several conditions that fail, those of
/// the maker are told first.
#[derive(Debug)]
pub struct Transaction<'a> {
    pub(crate) table: &'a Table,
    pub(crate) writes: Vec<Write>,
    /// By the partition key of its head, where each list stood, and where it is to stand.
    heads: BTreeMap<String, (u32, u32)>,
}

impl<'a> Transaction<'a> {
    /// A transaction without a write yet.
    pub(crate) const fn new(table: &'a Table) -> Self {
        Self { table, writes: Vec::new(), heads: BTreeMap::new() }
    }
}

impl Transaction<'_> {
    /// Whose part of the table it is about.
    pub const fn tenant(&self) -> &Tenant {
        &self.table.tenant
    }

    /// Adds an action, and returns its place.
    pub fn write(&mut self, write: Write) -> usize {
        self.writes.push(write);
        self.writes.len() - 1
    }

    /// The ordinal of one more row in `R`'s list.
    pub fn next<R: Listed>(&mut self, of: R::Of) -> u32 {
        let head = list_head(&self.table.tenant, &R::list(of));
        let known = self.table.store.head_guess(&head.pk).unwrap_or_default();
        let (_, to) = self.heads.entry(head.pk).or_insert((known, known));
        *to += 1;
        *to - 1
    }

    /// Puts the row `id`, whose ordinal came from [`Transaction::next`], with its filters and what leads to it.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be an item.
    pub fn insert<R: Listed>(&mut self, of: R::Of, id: R::Id, row: &R) -> Result<(), TableError> {
        self.write(Write::put(self.table.item(id, row)?));
        let uuid = R::proof(id).unwrap_or_default();
        for pointer in row.pointers(&self.table.tenant) {
            self.point(&pointer, uuid);
        }
        self.select(&R::list(of), ordinal(uuid), &[], &row.terms());
        Ok(())
    }

    /// Puts an item that leads to the row `id`.
    pub(crate) fn point(&mut self, pointer: &Key, id: Uuid) {
        let mut item = pointer.attributes();
        item.insert("id".to_owned(), text(id));
        self.write(Write::put(item));
    }

    /// Notes that `origin` has made the record `id`, on condition that it has made none; returns the action's place.
    pub fn made_by(&mut self, origin: Uuid, id: Uuid, now: Timestamp) -> usize {
        let mut marker = made_by(&self.table.tenant, origin).attributes();
        marker.insert("id".to_owned(), text(id));
        marker.insert(TTL.to_owned(), number(now.plus_seconds(REMEMBERED).unix_seconds()));
        self.write(Write::create(marker))
    }
}

/// The transaction's part that moves the head from `from` to `to`.
fn advance(head: Key, from: u32, to: u32) -> Write {
    Write::Update {
        key: head,
        expression: "SET next_ordinal = :to".into(),
        condition: Some(if from == 0 { "attribute_not_exists(pk)" } else { "next_ordinal = :from" }),
        values: if from == 0 {
            values([(":to", number(to))])
        } else {
            values([(":from", number(from)), (":to", number(to))])
        },
    }
}

/// The key of the head of the list at `pk`.
fn head_of(pk: &str) -> Key {
    Key { pk: pk.to_owned(), sk: LIST_HEAD.to_owned() }
}

impl Table {
    /// Carries out the transaction that `make` makes, again with other ordinals where others got ahead in one of its lists.
    ///
    /// # Errors
    /// [`Cancelled::Condition`] where a condition of the plan's own failed, with the place of its action.
    pub async fn commit<T>(
        &self,
        make: impl Fn(&mut Transaction<'_>) -> Result<T, TableError> + Sync,
    ) -> Result<T, Cancelled> {
        for attempt in 0..ATTEMPTS {
            let mut plan = Transaction::new(self);
            let outcome = make(&mut plan).map_err(Cancelled::Failed)?;
            let Transaction { mut writes, heads, .. } = plan;
            if self.learn_heads(heads.keys()).await.map_err(Cancelled::Failed)? {
                continue;
            }
            let own = writes.len();
            writes.extend(heads.iter().map(|(pk, (from, to))| advance(head_of(pk), *from, *to)));
            match self.store.transact(&writes).await {
                Ok(()) => {
                    for (pk, (_, to)) in &heads {
                        self.store.learn_head(pk, *to);
                    }
                    return Ok(outcome);
                }
                Err(Cancelled::Condition(at, stood)) if at >= own => {
                    if let Some((pk, _)) = heads.iter().nth(at - own) {
                        self.store.learn_head(pk, next_of(stood.as_ref()));
                    }
                    // The first miss is one that got ahead; from the second on there is a crowd.
                    tokio::time::sleep(CROWD.mul_f64(f64::from(attempt) * fastrand::f64())).await;
                }
                Err(cancelled) => return Err(cancelled),
            }
        }
        Err(Cancelled::Failed(TableError::Unavailable("other appends kept getting ahead".into())))
    }

    /// Reads the head of `R`'s list, unless this process has heard of it.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn learn_head<R: Listed>(&self, of: R::Of) -> Result<(), TableError> {
        let head = list_head(&self.tenant, &R::list(of));
        self.learn_heads(std::iter::once(&head.pk)).await.map(drop)
    }

    /// Reads the heads of lists that this process has not heard of: to be told by a transaction that fails takes longer, and is billed
    /// like one that does not. Whether there were any.
    async fn learn_heads<'a>(&self, lists: impl Iterator<Item = &'a String>) -> Result<bool, TableError> {
        let unknown: Vec<&String> = lists.filter(|pk| self.store.head_guess(pk).is_none()).collect();
        let reads = unknown.iter().map(async |pk| {
            let head = self.store.get(&head_of(pk)).await?;
            self.store.learn_head(pk, next_of(head.as_ref()));
            Ok::<_, TableError>(())
        });
        try_join_all(reads).await?;
        Ok(!unknown.is_empty())
    }
}
