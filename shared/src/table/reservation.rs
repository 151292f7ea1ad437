//! Reservations: ordinals at the end of a list, taken before their rows are written.
//!
//! To append, a process first moves the head on by a plain update, which DynamoDB never refuses because of other plain updates, however
//! many processes append. Then it writes the row. It may die in between. So the update also leaves a *token* on the head, which names
//! the ordinals. The same process removes it with its next reservation.
//!
//! A token is no sign that a row is missing: it only says where one may be missing. A reader that finds a token looks whether the
//! rows are there ([`list`](crate::table::list)), so totals and pages are exact at every moment, also after a process has died. A process
//! remembers tokens whose rows it has seen (`Recent`): it need not look again, and its next reservation removes them.
//!
//! A token of a process that died stays until another process appends. Then its ordinals become holes, two days after the
//! reservation: nobody can still write the row. A request that may be repeated names its token itself: a repeat finds the token, and goes on
//! with the same ordinals.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::types::AttributeValue;
use lru::LruCache;
use uuid::Uuid;

use crate::request::context::Clock;
use crate::table::keys::{Key, list_block, list_head, list_row};
use crate::table::list::{BLOCK, holes_of};
use crate::table::store::{Item, number, values};
use crate::table::stored::Listed;
use crate::table::transaction::{Cancelled, Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::time::Timestamp;

/// The attributes of a head that are no tokens.
const OTHERS: [&str; 3] = ["pk", "sk", "next_ordinal"];
/// Digits of the minute in the name of a token, and of what tells it from others of that minute.
const DIGITS: (u32, u32) = (3, 7);
/// Minutes of which the name of a token tells one from another: 32 days.
const MINUTES: i64 = 36_i64.pow(DIGITS.0);
/// Minutes after which another process looks at a token.
const OLD: i64 = 2;
/// Minutes after which nobody writes a reserved row any more: a function runs for fifteen at most, and a keyed request can be repeated for a day.
const EXPIRED: i64 = 2 * 24 * 60;
/// The most tokens that one reservation removes, so that its expression stays within 4 KB.
const REMOVED_AT_ONCE: usize = 100;
/// How many lists a process remembers. It is bounded: whose list it is may be any id that a caller makes up.
const LISTS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// How many records a process remembers to exist.
const RECORDS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Ordinals of a list that belong to nobody else.
#[derive(Debug)]
pub struct Reservation {
    head: Key,
    list: String,
    token: Token,
    /// Tokens of other processes that are worth a look.
    old: Vec<Token>,
}

impl Reservation {
    /// The reserved ordinals.
    pub fn ordinals(&self) -> Range<u32> {
        self.token.ordinals()
    }

    /// The first of them.
    pub const fn first(&self) -> u32 {
        self.token.first
    }
}

/// What a request that may be executed again has of its own.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// The same id in every execution, and in no other request.
    pub id: Uuid,
    /// When the first execution began.
    pub at: Timestamp,
}

/// What a reservation leaves on the head of its list: an attribute `<minute><what tells it from others>_<count>`, whose value is the first
/// ordinal. Names are short, so that a head with the tokens of 64 processes is still one write unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    name: String,
    first: u32,
    count: u32,
}

impl Token {
    pub(crate) fn ordinals(&self) -> Range<u32> {
        self.first..self.first.saturating_add(self.count)
    }

    /// The tokens on a head.
    pub(crate) fn all(head: &Item) -> Vec<Self> {
        let token = |(name, value): (&String, &AttributeValue)| {
            let count = name.split_once('_').map_or(Ok(1), |(_, count)| count.parse());
            Some(Self { name: name.clone(), first: value.as_n().ok()?.parse().ok()?, count: count.ok()? })
        };
        head.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str())).filter_map(token).collect()
    }

    /// The name of a new token.
    fn name(count: u32, origin: Option<Origin>) -> String {
        let (minute, own) = match origin {
            // The last 32 bits are an ordinal's.
            Some(Origin { id, at }) => {
                (minute_of(at), u64::try_from((id.as_u128() >> 32) & u128::from(u64::MAX)).unwrap_or_default())
            }
            None => (minute_of(Clock::System.now()), fastrand::u64(..)),
        };
        let of_several = if count == 1 { String::new() } else { format!("_{count}") };
        format!("{}{}{of_several}", base36(minute.cast_unsigned(), DIGITS.0), base36(own, DIGITS.1))
    }

    /// How many minutes ago it was left, as far as its name tells.
    fn minutes(&self) -> i64 {
        let digits = self.name.get(..DIGITS.0 as usize).unwrap_or_default();
        let now = minute_of(Clock::System.now());
        let minutes = i64::from_str_radix(digits, 36).map_or(0, |minute| (now - minute).rem_euclid(MINUTES));
        // The clock of the process that left it may be ahead of ours.
        if minutes > MINUTES / 2 { 0 } else { minutes }
    }
}

/// The minute that `at` is in.
const fn minute_of(at: Timestamp) -> i64 {
    at.unix_seconds() / 60
}

/// The last digits of `number`.
fn base36(number: u64, digits: u32) -> String {
    let digit = |place: u32| char::from_digit((number / 36_u64.pow(place) % 36) as u32, 36).unwrap_or('0');
    (0..digits).rev().map(digit).collect()
}

/// What a process remembers of the table, so that it need not ask again.
#[derive(Debug, Clone)]
pub(crate) struct Recent(Arc<Mutex<Entries>>);

#[derive(Debug)]
struct Entries {
    /// By the partition key of its list's head: tokens whose rows have been seen.
    settled: LruCache<String, BTreeSet<String>>,
    /// Records that existed a while ago, each with the id that was asked for.
    existing: LruCache<(Key, Option<Uuid>), ()>,
}

impl Default for Recent {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Entries { settled: LruCache::new(LISTS), existing: LruCache::new(RECORDS) })))
    }
}

impl Recent {
    fn settle(&self, head: &Key, tokens: impl IntoIterator<Item = String>) {
        let mut entries = self.entries();
        let settled = entries.settled.get_or_insert_mut(head.pk.clone(), BTreeSet::new);
        settled.extend(tokens);
        while settled.len() > 2 * REMOVED_AT_ONCE {
            settled.pop_first();
        }
    }

    fn settled(&self, head: &Key) -> BTreeSet<String> {
        self.entries().settled.get(&head.pk).cloned().unwrap_or_default()
    }

    fn forget(&self, head: &Key, tokens: &[String]) {
        if let Some(settled) = self.entries().settled.get_mut(&head.pk) {
            settled.retain(|token| !tokens.contains(token));
        }
    }

    /// Remembers that there is a record at `key`, with this id where one is asked for.
    pub(crate) fn exists(&self, key: &Key, id: Option<Uuid>) {
        self.entries().existing.put((key.clone(), id), ());
    }

    /// Whether there was such a record a while ago.
    pub(crate) fn existed(&self, key: &Key, id: Option<Uuid>) -> bool {
        self.entries().existing.get(&(key.clone(), id)).is_some()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Reserves the next `count` ordinals of `R`'s list; for a request that may be executed again the same ones, as long as it is not known
    /// to be done.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn reserve<R: Listed>(
        &self,
        of: R::Of,
        count: u32,
        origin: Option<Origin>,
    ) -> Result<Reservation, TableError> {
        let list = R::list(of);
        let head = list_head(&self.tenant, &list);
        let name = Token::name(count, origin);
        let mut removed = self.store.recent.settled(&head);
        removed.retain(|other| *other != name);
        let removed: Vec<String> = removed.into_iter().take(REMOVED_AT_ONCE).collect();
        let names = removed.iter().map(|name| format!("#{name}")).collect::<Vec<_>>().join(", ");
        let expression = format!(
            "SET next_ordinal = if_not_exists(next_ordinal, :none) + :count, \
             #{name} = if_not_exists(next_ordinal, :none){}{names}",
            if names.is_empty() { "" } else { " REMOVE " },
        );
        let values = values([(":none", number(0)), (":count", number(count))]);
        // The token is there where an attempt's answer was lost, or an earlier execution left it.
        let absent = format!("attribute_not_exists(#{name})");
        let head_is = match self.store.update(&head, &expression, Some(&absent), &values).await {
            Ok(item) => {
                self.store.recent.forget(&head, &removed);
                item
            }
            Err(Cancelled::Condition(_, Some(item))) => item,
            Err(cancelled) => return Err(cancelled.into()),
        };
        let (own, others): (Vec<_>, Vec<_>) = Token::all(&head_is).into_iter().partition(|token| token.name == name);
        let token = own.into_iter().next().ok_or_else(|| TableError::Broken("a reservation left no token".into()))?;
        let old = others.into_iter().filter(|token| token.minutes() >= OLD).collect();
        Ok(Reservation { head, list, token, old })
    }

    /// Removes the tokens of this process from `R`'s list, as its next reservation would: for who loads many rows, and then ends.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn remove_tokens<R: Listed>(&self, of: R::Of) -> Result<(), TableError> {
        let head = list_head(&self.tenant, &R::list(of));
        let removed: Vec<String> = self.store.recent.settled(&head).into_iter().take(REMOVED_AT_ONCE).collect();
        if !removed.is_empty() {
            let names = removed.iter().map(|name| format!("#{name}")).collect::<Vec<_>>().join(", ");
            self.store.update(&head, &format!("REMOVE {names}"), None, &Item::new()).await?;
            self.store.recent.forget(&head, &removed);
        }
        Ok(())
    }

    /// Carries out `transaction`, which writes the reserved rows, and all that it is to do besides.
    ///
    /// # Errors
    /// [`Cancelled::Condition`] where a condition failed: then the ordinals are given back.
    pub(crate) async fn commit(
        &self,
        transaction: Transaction<'_>,
        reserved: impl IntoIterator<Item = Reservation> + Send,
    ) -> Result<(), Cancelled> {
        let reserved: Vec<Reservation> = reserved.into_iter().collect();
        let write = async {
            match &transaction.writes[..] {
                [Write::Put { item, condition: None, .. }] => {
                    self.store.put(item.clone()).await.map_err(Cancelled::Failed)
                }
                writes => self.store.transact(writes).await,
            }
        };
        let look = async {
            for reservation in reserved.iter().filter(|reservation| !reservation.old.is_empty()) {
                self.look_at_old(reservation).await;
            }
        };
        let (written, ()) = futures_util::join!(write, look);
        match &written {
            Ok(()) => {
                for Reservation { head, token, .. } in &reserved {
                    self.store.recent.settle(head, [token.name.clone()]);
                }
            }
            Err(Cancelled::Condition(..)) => {
                for reservation in &reserved {
                    self.give_back_unless_used(reservation).await.map_err(Cancelled::Failed)?;
                }
            }
            // Nobody knows whether the rows were written, or there was no time left. Readers look.
            Err(Cancelled::Conflict(_) | Cancelled::Failed(_)) => {}
        }
        written
    }

    /// Gives ordinals back, unless another execution of the same request has used them.
    pub(crate) async fn give_back_unless_used(&self, reservation: &Reservation) -> Result<(), TableError> {
        let Reservation { list, token, .. } = reservation;
        let missing = self.missing(list, std::slice::from_ref(token), &BTreeSet::new(), |_| true).await?;
        if missing.is_empty() { Ok(()) } else { self.give_back(reservation).await }
    }

    /// Gives ordinals back for which no row was written: to the list, or where others came behind, as holes.
    ///
    /// # Errors
    /// [`TableError`]. The token stays then, and readers look.
    pub async fn give_back(&self, reservation: &Reservation) -> Result<(), TableError> {
        let Reservation { head, list, token, .. } = reservation;
        let end = token.ordinals().end;
        let values = values([(":first", number(token.first)), (":end", number(end))]);
        let last = format!("next_ordinal = :end AND #{} = :first", token.name);
        let expression = format!("SET next_ordinal = :first REMOVE #{}", token.name);
        match self.store.update(head, &expression, Some(&last), &values).await {
            Ok(_) => Ok(()),
            Err(Cancelled::Condition(..)) => self.abandon(head, list, token).await,
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Turns the ordinals of a token into holes, and removes the token.
    async fn abandon(&self, head: &Key, list: &str, token: &Token) -> Result<(), TableError> {
        let mut transaction = Transaction::new(self);
        transaction.write(Write::Update {
            key: head.clone(),
            expression: format!("REMOVE #{}", token.name).into(),
            condition: Some(format!("#{} = :first", token.name).into()),
            values: values([(":first", number(token.first))]),
        });
        transaction.holes(list, token.ordinals());
        match self.store.transact(&transaction.writes).await {
            // Another process was faster.
            Ok(()) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Looks at the tokens of processes that have not appended for a while. Nothing depends on it, so a failure is only logged.
    async fn look_at_old(&self, Reservation { head, list, old, .. }: &Reservation) {
        let looked = async {
            let missing = self.missing(list, old, &BTreeSet::new(), |_| true).await?;
            let dead = |token: &&Token| token.minutes() >= EXPIRED && missing.contains(&token.first);
            for token in old.iter().filter(dead) {
                self.abandon(head, list, token).await?;
            }
            Ok::<_, TableError>(())
        };
        if let Err(error) = looked.await {
            tracing::warn!(%error, "tokens of a list");
        }
    }

    /// The ordinals of `tokens` that have no row and are no hole: those whose rows are still to come, or never will. The caller has seen
    /// the rows at the ordinals `there`, and knows which blocks `may_have_holes`.
    ///
    /// The rows of one token are written all or none, and so are its holes: its first ordinal says it of all.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn missing(
        &self,
        list: &str,
        tokens: &[Token],
        there: &BTreeSet<u32>,
        may_have_holes: impl Fn(u32) -> bool,
    ) -> Result<BTreeSet<u32>, TableError> {
        let head = &list_head(&self.tenant, list);
        let (seen, others): (Vec<&Token>, Vec<&Token>) = tokens.iter().partition(|token| there.contains(&token.first));
        let settled = self.store.recent.settled(head);
        let unknown: Vec<&Token> = others.into_iter().filter(|token| !settled.contains(&token.name)).collect();
        self.store.recent.settle(head, seen.into_iter().map(|token| token.name.clone()));
        if unknown.is_empty() {
            return Ok(BTreeSet::new());
        }
        let row = |token: &Token| list_row(&self.tenant, list, token.first);
        let block = |token: &Token| list_block(&self.tenant, list, token.first / BLOCK);
        // A row that was written and removed since is a hole by now, and counted as one.
        let blocks = unknown.iter().filter(|token| may_have_holes(token.first / BLOCK)).map(|token| block(token));
        let keys: Vec<Key> = unknown.iter().map(|token| row(token)).chain(blocks).collect();
        let found = self.store.get_attributes(&keys, "pk, sk, holes").await?;
        let is_hole = |token: &Token| {
            found.get(&block(token)).is_some_and(|block| holes_of(block).contains(&(token.first % BLOCK)))
        };
        let (written, missing): (Vec<&Token>, Vec<&Token>) =
            unknown.into_iter().partition(|token| found.contains_key(&row(token)) || is_hole(token));
        self.store.recent.settle(head, written.into_iter().map(|token| token.name.clone()));
        Ok(missing.into_iter().flat_map(Token::ordinals).collect())
    }
}
