//! Cleans up tokens that other processes left on the head of a list: readers check where rows are missing, and appends
//! turn missing ordinals into holes.

use std::collections::{BTreeMap, BTreeSet};

use super::{REMOVED_AT_ONCE, Token};
use crate::table::error::{TableError, was_done};
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, number};
use crate::table::keys::{Key, list_block, list_head, list_row};
use crate::table::list::holes_of;
use crate::table::ordinals::BLOCK;
use crate::table::part::Table;
use crate::table::stored::Listed;
use crate::table::transaction::Transaction;

/// The number of tokens on a head above which some of them are removed or merged. With this many the head is under 1
/// KB, a write unit.
const CROWD: usize = 40;
/// The number of the youngest tokens that stay then: most of their rows are just being written.
const YOUNGEST: usize = 16;
/// The most ordinals that one append checks and turns into holes, and the most that a merged token covers.
const AT_ONCE: u64 = 64;
/// An update that saves every reader the check of this many ordinals is worth its write unit. Fewer wait for the next
/// reservation.
const WORTH_AN_UPDATE: usize = 4;

/// The tokens that an append checks: expired ones, and the `oldest` ones, if each covers a single reservation. For an
/// expired token each ordinal is checked: some of its rows may have been written, and have expired since.
fn tokens_to_check(tokens: &[Token], oldest: usize) -> Vec<Token> {
    let mut ordinals = 0_u64;
    let worth = |(place, token): &(usize, &Token)| token.is_expired() || (*place < oldest && !token.is_merged);
    let few = |token: &Token| {
        ordinals += token.ordinals_to_check().count() as u64;
        ordinals <= AT_ONCE
    };
    let each_alone = |(_, token): (usize, &Token)| {
        let mut token = token.clone();
        token.is_merged |= token.is_expired();
        token
    };
    tokens.iter().enumerate().filter(worth).map(each_alone).take_while(few).collect()
}

/// The ordinals of `tokens` that have no row and are no hole: their rows may still be written, or never will be.
/// The caller has seen the rows at the ordinals `there`, and knows which blocks `may_have_holes`.
///
/// # Errors
/// [`TableError`].
pub(crate) async fn missing(
    table: &Table,
    list: &str,
    tokens: &[Token],
    there: &BTreeSet<u64>,
    may_have_holes: impl Fn(u64) -> bool,
) -> Result<BTreeSet<u64>, TableError> {
    let head = &list_head(&table.tenant, list);
    let settled = table.store.recent.settled(head);
    let unknown: Vec<&Token> = tokens.iter().filter(|token| !settled.contains(&token.name)).collect();
    let mut absent: BTreeSet<u64> = unknown.iter().flat_map(|token| token.ordinals_to_check()).collect();
    absent.retain(|ordinal| !there.contains(ordinal));
    if !absent.is_empty() {
        let row = |ordinal: u64| list_row(&table.tenant, list, ordinal);
        // A row that was written and then removed is a hole by now, and is counted as one.
        let blocks: BTreeSet<u64> = absent.iter().map(|ordinal| ordinal / BLOCK).collect();
        let blocks = blocks.into_iter().filter(|block| may_have_holes(*block));
        let blocks: BTreeMap<u64, Key> = blocks.map(|block| (block, list_block(&table.tenant, list, block))).collect();
        let keys: Vec<Key> = absent.iter().map(|ordinal| row(*ordinal)).chain(blocks.values().cloned()).collect();
        let found = table.store.get_attributes(&keys, "pk, sk, holes").await?;
        absent.retain(|ordinal| !found.contains_key(&row(*ordinal)));
        for (block, key) in blocks {
            let holes = found.get(&key).map(holes_of).unwrap_or_default();
            absent.retain(|ordinal| ordinal / BLOCK != block || !holes.contains(&(ordinal % BLOCK)));
        }
    }
    let (missing, seen): (Vec<&Token>, Vec<&Token>) =
        unknown.into_iter().partition(|token| token.missing(&absent).next().is_some());
    table.store.recent.settle(head, seen.into_iter().map(|token| token.name.clone()));
    Ok(missing.into_iter().flat_map(|token| token.missing(&absent)).collect())
}

/// Cleans up a head on which other processes have left these tokens, in the order of their ordinals. Nothing
/// depends on it, so a failure is only logged.
pub(super) async fn tidy(table: &Table, head: &Key, list: &str, others: &[Token]) {
    let oldest = if others.len() > CROWD { others.len() - YOUNGEST } else { 0 };
    let to_check = tokens_to_check(others, oldest);
    let checked = check(table, head, list, &to_check).await;
    let settled = table.store.recent.settled(head);
    let (gone, left): (Vec<&Token>, Vec<&Token>) = others.iter().partition(|token| settled.contains(&token.name));
    let removed = if gone.iter().map(|token| token.ordinals_to_check().count()).sum::<usize>() >= WORTH_AN_UPDATE {
        remove_settled(table, head, gone.iter().map(|token| token.name.clone()).collect()).await
    } else {
        Ok(())
    };
    let merged = if left.len() > CROWD { merge(table, head, &left[..left.len() - YOUNGEST]).await } else { Ok(()) };
    for error in [checked, removed, merged].into_iter().filter_map(Result::err) {
        tracing::warn!(%error, "tokens of a list");
    }
}

/// Checks whether the rows of these tokens exist. A missing row that can no longer be written becomes a hole.
async fn check(table: &Table, head: &Key, list: &str, tokens: &[Token]) -> Result<(), TableError> {
    let missing = missing(table, list, tokens, &BTreeSet::new(), |_| true).await?;
    let (mut holes, mut dead) = (Vec::new(), Vec::new());
    for token in tokens.iter().filter(|token| token.is_expired()) {
        let of_token: Vec<u64> = token.ordinals().filter(|ordinal| missing.contains(ordinal)).collect();
        if !of_token.is_empty() && (holes.is_empty() || (holes.len() + of_token.len()) as u64 <= AT_ONCE) {
            holes.extend(of_token);
            dead.push(token.name.clone());
        }
    }
    if !holes.is_empty() && make_holes(table, list, holes).await? {
        table.store.recent.settle(head, dead);
    }
    Ok(())
}

/// Turns ordinals into holes, which never get a row. Returns false if one of them is a hole already: another
/// process cleans up as well.
pub(crate) async fn make_holes(
    table: &Table,
    list: &str,
    ordinals: impl IntoIterator<Item = u64> + Send,
) -> Result<bool, TableError> {
    let mut transaction = Transaction::new(table);
    transaction.new_holes(list, ordinals);
    was_done(transaction.commit().await)
}

async fn remove_settled(table: &Table, head: &Key, tokens: Vec<String>) -> Result<(), TableError> {
    table.store.update(head, &UpdateExpression::new().remove_all(&tokens), None).await?;
    table.store.recent.forget(head, &tokens);
    Ok(())
}

/// Replaces several close tokens with one, as long as all of them exist: then each ordinal between them belongs to
/// one of them, has its row, or is a hole.
async fn merge(table: &Table, head: &Key, tokens: &[&Token]) -> Result<(), TableError> {
    let mut groups: Vec<Vec<&Token>> = Vec::new();
    for &token in tokens {
        match groups.last_mut() {
            Some(group) if token.ordinals().end - group[0].first <= AT_ONCE => group.push(token),
            _ => groups.push(vec![token]),
        }
    }
    for group in groups.iter().filter(|group| group.len() > 1) {
        let Some(merged) = Token::merged(group) else { continue };
        let gone = group.iter().map(|token| &token.name).filter(|name| **name != merged.name);
        let merging = UpdateExpression::new().set(&merged.name, number(merged.first)).remove_all(gone);
        let there: Vec<String> = group.iter().map(|token| format!("attribute_exists(#{})", token.name)).collect();
        // If one of them is gone, the next append checks again.
        let there = Condition::new(there.join(" AND "), Item::new());
        was_done(table.store.update(head, &merging, Some(&there)).await)?;
    }
    Ok(())
}

/// Removes the tokens of this process from `R`'s list, as its next reservation would: for a process that loads many
/// rows and then ends.
///
/// # Errors
/// [`TableError`].
pub async fn remove_tokens<R: Listed>(table: &Table, of: R::Of) -> Result<(), TableError> {
    let head = list_head(&table.tenant, &R::list(of));
    let settled: Vec<String> = table.store.recent.settled(&head).into_iter().take(REMOVED_AT_ONCE).collect();
    if settled.is_empty() { Ok(()) } else { remove_settled(table, &head, settled).await }
}
