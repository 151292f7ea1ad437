//! Reservations: ordinals at the end of a list, taken before their rows are written.
//!
//! For an append, a process first increases the head's ordinal by a plain update, which DynamoDB never refuses because
//! of other plain updates, however many processes append. Then it writes the row. It may crash in between. So the
//! update also leaves a *token* on the head, which names the ordinals. The same process removes the token with its next
//! reservation.
//!
//! A token does not mean that a row is missing: it only says where one may be missing. A reader that finds a token
//! checks whether the rows exist ([`list`](crate::table::list)), so totals and pages are exact at every moment, even
//! after a process has crashed. A process remembers tokens whose rows it has seen: it skips the check for them, and its
//! next reservation removes them.
//!
//! If the database reports that nothing was written, the ordinals are returned at once. If an answer was lost, the
//! process checks the rows; a missing row may still be written, so the token stays. Ten minutes after the reservation
//! no row can be written any more. Then the next process that appends turns the ordinals into holes, and removes the
//! token (`tidy`).
//!
//! Each attempt of a request has reservations of its own, even if it repeats another one: the rows of an earlier
//! attempt are found by their marker ([`Transaction::made_by`]).

mod tidy;
mod token;

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::table::error::{Cancelled, TableError, was_done};
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, number, values};
use crate::table::keys::{Key, list_head};
use crate::table::ordinals::{NEXT, Ordinals, SPREAD_FROM};
use crate::table::part::Table;
use crate::table::retry::LostAnswer;
use crate::table::stored::Listed;
use crate::table::transaction::Transaction;
use crate::values::id::SPREAD;
pub use tidy::remove_tokens;
pub(super) use tidy::{make_holes, missing};
pub(crate) use token::Token;

/// The time after its reservation within which a row is written: somewhat longer than a group of a campaign's contacts
/// waits for its turn. The attempts at the write take some seconds more.
const WRITABLE: Duration = Duration::from_mins(1);
/// The time after its reservation within which an ordinal is returned. After that its token is left to expire: a sent
/// call may arrive up to five minutes later.
const GIVEN_BACK: Duration = Duration::from_mins(2);
/// The most tokens that one reservation removes, so that its expression stays within 4 KB.
const REMOVED_AT_ONCE: usize = 100;

/// The length from which on the rows of a list are spread: a shorter list can be read with fewer calls.
pub const LONG: u64 = 1024;

/// Ordinals that one process has reserved. It writes their rows, or returns the ordinals.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    head: Key,
    list: String,
    token: Token,
    /// The other tokens on the head, in the order of their ordinals.
    others: Vec<Token>,
    begun: Instant,
    /// Whether the list is long enough now that its next rows must be spread.
    is_to_be_spread: bool,
}

impl Reservation {
    /// The reserved ordinals.
    pub fn ordinals(&self) -> Range<u64> {
        self.token.ordinals()
    }

    /// The first reserved ordinal.
    pub const fn first(&self) -> u64 {
        self.token.first
    }
}

impl<M> Transaction<'_, M> {
    /// Commits the transaction that writes the reserved rows. If nothing was written, the ordinals are returned.
    ///
    /// # Errors
    /// The same as for [`Transaction::commit`].
    pub(crate) async fn commit_reserved(
        self,
        reserved: impl IntoIterator<Item = Reservation> + Send,
    ) -> Result<(), Cancelled<M>> {
        self.commit_with(reserved.into_iter().collect(), &LostAnswer::default(), true).await
    }

    /// The same, without a retry after a conflict with another transaction, and records in `lost` whether an answer was
    /// lost.
    ///
    /// # Errors
    /// The same as for [`Transaction::commit`].
    pub(crate) async fn commit_reserved_once(
        self,
        reserved: impl IntoIterator<Item = Reservation> + Send,
        lost: &LostAnswer,
    ) -> Result<(), Cancelled<M>> {
        self.commit_with(reserved.into_iter().collect(), lost, false).await
    }

    /// Commits the transaction that writes the rows of `reserved`. With `again` it retries after a conflict.
    async fn commit_with(self, reserved: Vec<Reservation>, lost: &LostAnswer, again: bool) -> Result<(), Cancelled<M>> {
        let table = self.table();
        if reserved.iter().any(|reservation| reservation.begun.elapsed() > WRITABLE) {
            table.give_back(reserved).await;
            return Err(Cancelled::Failed(TableError::Unavailable("a reserved row came too late".into())));
        }
        let tidy =
            join_all(reserved.iter().map(async |Reservation { head, list, others, is_to_be_spread, .. }| {
                tidy::tidy(table, head, list, others).await;
                if *is_to_be_spread {
                    spread(table, head).await;
                }
            }));
        let commit = async { if again { self.commit_noting(lost).await } else { self.commit_once(lost).await } };
        let (written, _) = futures_util::join!(commit, tidy);
        // If an answer was lost, the transaction may have been committed, or may still be.
        if written.is_ok() || (lost.happened() && are_written(table, &reserved).await) {
            for Reservation { head, token, .. } in &reserved {
                table.store.recent.settle(head, [token.name.clone()]);
            }
            return Ok(());
        }
        if !lost.happened() {
            table.give_back(reserved).await;
        }
        written
    }
}

impl Table {
    /// Reserves the next `count` ordinals of `R`'s list.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn reserve<R: Listed>(&self, of: R::Of, count: u64) -> Result<Reservation, TableError> {
        let (list, begun) = (R::list(of), Instant::now());
        let (head, name) = (list_head(&self.tenant, &list), Token::name(count));
        let removed: Vec<String> = self.store.recent.settled(&head).into_iter().take(REMOVED_AT_ONCE).collect();
        let reserving =
            UpdateExpression::new().copy(&name, NEXT, number(0)).add(NEXT, number(count)).remove_all(&removed);
        // The token exists if the answer to an earlier attempt was lost.
        let absent = Condition::new(format!("attribute_not_exists(#{name})"), Item::new());
        let head_is = match self.store.update(&head, &reserving, Some(&absent)).await {
            Ok(item) => {
                self.store.recent.forget(&head, &removed);
                item
            }
            Err(Cancelled::Condition((), Some(item))) => item,
            Err(cancelled) => return Err(cancelled.into()),
        };
        let (own, others): (Vec<_>, Vec<_>) = Token::all(&head_is).into_iter().partition(|token| token.name == name);
        let token = own.into_iter().next().ok_or_else(|| TableError::Broken("a reservation left no token".into()))?;
        let is_to_be_spread = R::SPREADS && (LONG..SPREAD).contains(&Ordinals::of(Some(&head_is)).next);
        Ok(Reservation { head, list, token, others, begun, is_to_be_spread })
    }

    /// Returns ordinals without a row: the list gets them back, or if other ordinals follow, they become holes. A
    /// failure is only logged: the token stays then, and readers check it.
    pub async fn give_back(&self, reserved: impl IntoIterator<Item = Reservation> + Send) {
        let reserved: Vec<Reservation> = reserved.into_iter().collect();
        for given in join_all(reserved.iter().map(|reservation| give_one_back(self, reservation))).await {
            if let Err(error) = given {
                tracing::warn!(%error, "ordinals were not given back");
            }
        }
    }
}

/// Spreads the new rows of a list over several partitions from now on. Nothing depends on it, so a failure is only
/// logged: the next append attempts it again.
async fn spread(table: &Table, head: &Key) {
    let spreading = UpdateExpression::new().copy(SPREAD_FROM, NEXT, number(0)).set(NEXT, number(SPREAD));
    let is_shorter = Condition::new(format!("{NEXT} < :spread"), values([(":spread", number(SPREAD))]));
    if let Err(error) = was_done(table.store.update(head, &spreading, Some(&is_shorter)).await) {
        tracing::warn!(%error, "a list is not spread yet");
    }
}

/// Whether the rows of these reservations were found. One transaction writes all of them.
async fn are_written(table: &Table, reserved: &[Reservation]) -> bool {
    let Some(Reservation { list, token, .. }) = reserved.first() else { return false };
    let missing = missing(table, list, std::slice::from_ref(token), &BTreeSet::new(), |_| false).await;
    missing.is_ok_and(|missing| missing.is_empty())
}

async fn give_one_back(table: &Table, reservation: &Reservation) -> Result<(), TableError> {
    let Reservation { head, list, token, begun, .. } = reservation;
    if begun.elapsed() > GIVEN_BACK {
        return Ok(());
    }
    let (ordinals, lost) = (token.ordinals(), LostAnswer::default());
    let values = values([(":first", number(ordinals.start)), (":end", number(ordinals.end))]);
    let at_the_end = Condition::new(format!("{NEXT} = :end AND #{} = :first", token.name), values);
    let returning = UpdateExpression::new().set(NEXT, number(ordinals.start)).remove(&token.name);
    match table.store.update_noting(head, &returning, Some(&at_the_end), &lost).await {
        Err(Cancelled::Condition((), existing))
            if !lost.happened() && Ordinals::of(existing.as_ref()).next >= ordinals.end => {}
        // The list is deleted. Or an attempt without an answer has reset the head, or may still do so: the ordinals
        // must not become holes then.
        Ok(_) | Err(Cancelled::Condition(..)) => return Ok(()),
        Err(cancelled) => return Err(cancelled.into()),
    }
    if make_holes(table, list, ordinals).await? {
        table.store.recent.settle(head, [token.name.clone()]);
    }
    Ok(())
}
