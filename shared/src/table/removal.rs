//! Removes rows of lists together with their pointers: one row, or many rows with few transactions.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use crate::table::error::{Cancelled, NotChanged, TableError};
use crate::table::item::from_item;
use crate::table::ordinals::BLOCK;
use crate::table::part::Table;
use crate::table::retry::LostAnswer;
use crate::table::store::TRANSACTION_LIMIT;
use crate::table::stored::{Listed, is_proven};
use crate::table::transaction::{Transaction, Write};
use crate::values::id::{Id, ordinal};

/// What became of each row: true if it was removed, false if there was none, or why it stays.
pub type Removals<I, E> = BTreeMap<I, Result<bool, E>>;

/// Rows that one transaction removes.
struct RowGroup<R: Listed> {
    rows: Vec<(R::Id, R)>,
    writes: usize,
    blocks: BTreeSet<u64>,
}

impl<R: Listed<Of = (), Id: Id>> RowGroup<R> {
    const fn new() -> Self {
        Self { rows: Vec::new(), writes: 0, blocks: BTreeSet::new() }
    }

    /// Counts the writes for a row with so many pointers; false, and nothing is counted, if there is no room for them.
    fn admits(&mut self, id: R::Id, row: &R, pointers: usize) -> bool {
        let block = ordinal(id.into()) / BLOCK;
        let writes = self.writes + 1 + pointers + row.unique().len();
        let blocks = self.blocks.len() + usize::from(!self.blocks.contains(&block));
        // Each block may be in a section of its own, and the rows of a list use the same quotas.
        if writes + 2 * blocks + row.uses().len() > TRANSACTION_LIMIT {
            return false;
        }
        self.writes = writes;
        self.blocks.insert(block);
        true
    }
}

impl Table {
    /// Removes the row `id` with its pointers, and returns it as it was. The row is read first: an unreadable row
    /// cannot be answered and stays.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn remove<R: Listed>(&self, id: R::Id) -> Result<R, TableError> {
        Ok(self.remove_if(id, |_| Ok::<_, Infallible>(())).await?)
    }

    /// The same, unless `check` refuses.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none, [`TableError::Unavailable`] where it is unknown who has removed it,
    /// and the error of `check`.
    pub async fn remove_if<R: Listed, E>(
        &self,
        id: R::Id,
        check: impl Fn(&R) -> Result<(), E> + Sync,
    ) -> Result<R, NotChanged<E>> {
        self.remove_with(id, check, |_| None).await
    }

    /// The same, together with the write that follows from the row.
    ///
    /// # Errors
    /// The same as for [`Table::remove_if`].
    pub async fn remove_with<R: Listed, E>(
        &self,
        id: R::Id,
        check: impl Fn(&R) -> Result<(), E> + Sync,
        with: impl Fn(&R) -> Option<Write> + Sync,
    ) -> Result<R, NotChanged<E>> {
        let mut row: R = self.get(id).await?;
        let (mut round, lost) = (self.store.backoff(), LostAnswer::default());
        loop {
            check(&row).map_err(NotChanged::Refused)?;
            let uuid = R::proof(id).unwrap_or_default();
            let mut transaction = Transaction::new(self);
            transaction.remove(id, &row);
            transaction.holes_of::<R>(&R::list_of(id), [uuid]);
            transaction.write_all(with(&row));
            match transaction.commit_noting(&lost).await {
                Ok(()) => return Ok(row),
                Err(Cancelled::Condition((), existing)) => {
                    let existing = existing.filter(|item| is_proven::<R>(item, id)).ok_or_else(|| lost.missing())?;
                    row = from_item(existing)?;
                }
                Err(cancelled) => return Err(NotChanged::Failed(cancelled.into())),
            }
            round.again("the record").await?;
        }
    }

    /// Removes the rows `ids` of the organisation's list, each as [`Table::remove_if`] does, unless `check` refuses.
    ///
    /// The transactions follow one another, because all of them count holes in the same items. If a row has changed since
    /// it was read, the rows of its transaction are removed one by one.
    ///
    /// # Errors
    /// [`TableError`]: some rows may have been removed.
    pub async fn remove_many<R: Listed<Of = (), Id: Id>, E: Send>(
        &self,
        ids: &BTreeSet<R::Id>,
        check: impl Fn(&R) -> Result<(), E> + Sync,
    ) -> Result<Removals<R::Id, E>, TableError> {
        let mut removals: Removals<R::Id, E> = ids.iter().map(|id| (*id, Ok(false))).collect();
        let mut rows = Vec::new();
        for item in self.items_of::<R>(ids).await? {
            let row: R = from_item(item)?;
            let id = R::Id::from(row.uuid());
            match check(&row) {
                Ok(()) => rows.push((id, row)),
                Err(refused) => drop(removals.insert(id, Err(refused))),
            }
        }
        for group in self.groups(rows) {
            let lost = LostAnswer::default();
            match self.removal_of(&group).commit_noting(&lost).await {
                Ok(()) => removals.extend(group.iter().map(|(id, _)| (*id, Ok(true)))),
                Err(Cancelled::Condition(..)) => {
                    for (id, _) in group {
                        removals.insert(id, self.remove_alone(id, &check, &lost).await?);
                    }
                }
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
        Ok(removals)
    }

    /// The rows in groups. Neighbours are together, because they share the items that count their holes.
    fn groups<R: Listed<Of = (), Id: Id>>(&self, mut rows: Vec<(R::Id, R)>) -> Vec<Vec<(R::Id, R)>> {
        rows.sort_by_key(|(id, _)| ordinal((*id).into()));
        let (mut groups, mut group) = (Vec::new(), RowGroup::new());
        for (id, row) in rows {
            let pointers = row.pointers(&self.tenant).len();
            if !group.admits(id, &row, pointers) {
                groups.push(std::mem::replace(&mut group, RowGroup::new()).rows);
                group.admits(id, &row, pointers);
            }
            group.rows.push((id, row));
        }
        groups.push(group.rows);
        groups.retain(|rows| !rows.is_empty());
        groups
    }

    /// The transaction that removes these rows.
    fn removal_of<R: Listed<Of = (), Id: Id>>(&self, rows: &[(R::Id, R)]) -> Transaction<'_> {
        let mut transaction = Transaction::new(self);
        for (id, row) in rows {
            transaction.remove(*id, row);
        }
        transaction.holes_of::<R>(&R::list(()), rows.iter().map(|(id, _)| (*id).into()));
        transaction
    }

    /// Removes a row by itself, after a transaction that did not remove it; `lost` has noted the answers to that one.
    async fn remove_alone<R: Listed<Of = (), Id: Id>, E>(
        &self,
        id: R::Id,
        check: impl Fn(&R) -> Result<(), E> + Sync,
        lost: &LostAnswer,
    ) -> Result<Result<bool, E>, TableError> {
        match self.remove_if(id, check).await {
            Ok(_) => Ok(Ok(true)),
            Err(NotChanged::Refused(refused)) => Ok(Err(refused)),
            Err(NotChanged::Failed(TableError::Missing)) if !lost.happened() => Ok(Ok(false)),
            Err(NotChanged::Failed(TableError::Missing)) => Err(lost.missing()),
            Err(NotChanged::Failed(error)) => Err(error),
        }
    }
}

impl<M> Transaction<'_, M> {
    /// Removes the row `id`, if it still has the version of `was`, with its pointers. Its ordinal becomes a hole by
    /// [`Transaction::holes_of`].
    pub(super) fn remove<R: Listed>(&mut self, id: R::Id, was: &R) {
        let (uuid, table) = (R::proof(id).unwrap_or_default(), self.table());
        self.write(Write::delete(table.key::<R>(id)).when(was.version().unchanged(uuid)));
        self.write_all(was.pointers(&table.tenant).into_iter().map(Write::delete));
        self.update_unique_values(id, Some(was), None);
        self.count(Some(was), None, false);
    }
}
