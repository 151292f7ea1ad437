//! The memory of a process about the table, which saves repeated calls.

use std::any::Any;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use uuid::Uuid;

use crate::table::keys::Key;
use crate::values::id::{OrgId, UserId};
use crate::values::time::Timestamp;

/// The number of lists that a process remembers. It is bounded because callers can make up any parent id.
const LISTS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// The number of settled tokens of a list that it remembers.
const TOKENS: usize = 200;
/// The number of records that a process remembers to exist.
const RECORDS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The number of organisations whose sends it remembers.
const SENDERS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// The number of users without a plan that it remembers.
const PLANLESS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The number of short lists whose rows it remembers.
const SHORT_LISTS: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// The number of organisations whose last page of events it remembers.
const LOGS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// The number of organisations that several processes count for.
const SHARED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The memory of a process. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Recent(Arc<Mutex<Entries>>);

#[derive(Debug)]
struct Entries {
    /// The names of settled tokens, by the partition key of their list's head.
    settled: LruCache<String, BTreeSet<String>>,
    /// Records that existed a while ago, each with the id that was required.
    existing: LruCache<(Key, Option<Uuid>), ()>,
    /// How many sends this process may make for an organisation before it reads their count again, and until when.
    sends: LruCache<OrgId, (u64, Timestamp)>,
    /// Users who had no plan a while ago, and until when that counts.
    planless: LruCache<UserId, Timestamp>,
    /// The rows of short lists, by the partition key of the list's head, and until when they count.
    rows: LruCache<String, (Arc<dyn Any + Send + Sync>, Timestamp)>,
    /// The last known page of the events of an organisation, and from when on it is probably still the last one.
    pages: LruCache<OrgId, (u64, Timestamp)>,
    /// Organisations whose changes other processes count too, and until when that is probable.
    shared: LruCache<OrgId, Timestamp>,
}

impl Default for Recent {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Entries {
            settled: LruCache::new(LISTS),
            existing: LruCache::new(RECORDS),
            sends: LruCache::new(SENDERS),
            planless: LruCache::new(PLANLESS),
            rows: LruCache::new(SHORT_LISTS),
            pages: LruCache::new(LOGS),
            shared: LruCache::new(SHARED),
        })))
    }
}

impl Recent {
    /// Remembers tokens of a list that are settled: each of their ordinals has its row, or is a hole.
    pub(super) fn settle(&self, head: &Key, tokens: impl IntoIterator<Item = String>) {
        let mut entries = self.entries();
        let settled = entries.settled.get_or_insert_mut(head.pk.clone(), BTreeSet::new);
        settled.extend(tokens);
        while settled.len() > TOKENS {
            settled.pop_first();
        }
    }

    /// The settled tokens of a list.
    pub(super) fn settled(&self, head: &Key) -> BTreeSet<String> {
        self.entries().settled.get(&head.pk).cloned().unwrap_or_default()
    }

    /// Forgets tokens that are no longer on the head.
    pub(super) fn forget(&self, head: &Key, tokens: &[String]) {
        if let Some(settled) = self.entries().settled.get_mut(&head.pk) {
            settled.retain(|token| !tokens.contains(token));
        }
    }

    /// Remembers that a record exists at `key`, with this id if one is required.
    pub(super) fn exists(&self, key: &Key, id: Option<Uuid>) {
        self.entries().existing.put((key.clone(), id), ());
    }

    /// Whether such a record existed a while ago.
    pub(super) fn existed(&self, key: &Key, id: Option<Uuid>) -> bool {
        self.entries().existing.get(&(key.clone(), id)).is_some()
    }

    /// Remembers how many sends this process may make until then.
    pub(super) fn allow_sends(&self, org: OrgId, sends: u64, until: Timestamp) {
        self.entries().sends.put(org, (sends, until));
    }

    /// Takes `count` of them; false if there are fewer.
    pub(super) fn take_sends(&self, org: OrgId, count: u64, now: Timestamp) -> bool {
        let mut entries = self.entries();
        let Some((left, _)) = entries.sends.get_mut(&org).filter(|(_, until)| now < *until) else { return false };
        let rest = left.checked_sub(count);
        *left = rest.unwrap_or(*left);
        rest.is_some()
    }

    /// Remembers until then that a user has no plan.
    pub(super) fn note_planless(&self, user: UserId, until: Timestamp) {
        self.entries().planless.put(user, until);
    }

    /// Whether a user had no plan a while ago.
    pub(super) fn is_planless(&self, user: UserId, now: Timestamp) -> bool {
        self.entries().planless.get(&user).is_some_and(|until| now < *until)
    }

    /// Remembers the rows of a short list until then.
    pub(super) fn keep_rows<R: Send + Sync + 'static>(&self, head: &Key, rows: &Arc<Vec<R>>, until: Timestamp) {
        self.entries().rows.put(head.pk.clone(), (Arc::<Vec<R>>::clone(rows), until));
    }

    /// The rows of a short list, if they were read a while ago.
    pub(super) fn rows<R: Send + Sync + 'static>(&self, head: &Key, now: Timestamp) -> Option<Arc<Vec<R>>> {
        let mut entries = self.entries();
        let (rows, _) = entries.rows.get(&head.pk).filter(|(_, until)| now < *until)?;
        Arc::clone(rows).downcast().ok()
    }

    /// Forgets the rows of a list.
    pub(super) fn drop_rows(&self, head: &Key) {
        self.entries().rows.pop(&head.pk);
    }

    /// Remembers the last page of the events of an organisation. Before `from`, others probably write pages, too.
    pub(crate) fn note_page(&self, org: OrgId, page: u64, from: Timestamp) {
        let mut entries = self.entries();
        let from = entries.pages.get(&org).map_or(from, |(_, before)| from.max(*before));
        entries.pages.put(org, (page, from));
    }

    /// The last page of the events of an organisation, as far as this process knows.
    pub(crate) fn last_page(&self, org: OrgId, now: Timestamp) -> Option<u64> {
        self.entries().pages.get(&org).filter(|(_, from)| *from <= now).map(|(page, _)| *page)
    }

    /// Remembers until then that other processes count the changes of an organisation too.
    pub(crate) fn note_shared(&self, org: OrgId, until: Timestamp) {
        self.entries().shared.put(org, until);
    }

    /// Whether other processes probably count the changes of an organisation too.
    pub(crate) fn is_shared(&self, org: OrgId, now: Timestamp) -> bool {
        self.entries().shared.get(&org).is_some_and(|until| now < *until)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
