//! Rows of lists: inserted and changed together with their list and their pointers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::table::declaration::Reference;
use crate::table::error::{Cancelled, NotChanged, TableError, was_done};
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, from_item, has_id, number, target_id, text};
use crate::table::keys::{Key, list_block, list_section};
use crate::table::metering::Metering;
use crate::table::ordinals::{BLOCK, SECTION};
use crate::table::part::Table;
use crate::table::secrets::seal;
use crate::table::store::TRANSACTION_LIMIT;
use crate::table::stored::{Listed, is_proven};
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::values::id::ordinal;
use crate::values::time::Timestamp;

/// The most rows that one call inserts, each with two pointers or unique values.
pub const INSERT_LIMIT: usize = TRANSACTION_LIMIT / 3;

/// The place of a new row, and the values for its creation.
#[derive(Debug, Clone, Copy)]
pub struct NewRow<Of> {
    /// The list.
    pub of: Of,
    /// A fresh id; its last bits become the row's ordinal.
    pub id: Uuid,
    /// If the request may be repeated: the mark by which its repeat finds the row.
    pub origin: Option<Uuid>,
    /// The time.
    pub now: Timestamp,
}

/// The attributes that show that a record exists.
const IDENTITY: &str = "pk, sk, id";

/// The records that a new row names, by their keys, with the attributes that were asked for.
pub(crate) type NamedItems = HashMap<Key, Item>;

/// A record that must exist.
pub(super) struct Required {
    key: Key,
    proof: Option<Uuid>,
    /// The field that names it; `None` if the path names it.
    field: Option<&'static str>,
}

impl Required {
    /// The parent first, then the records that the fields name.
    pub(super) fn all(parent: Option<Reference>, fields: Vec<Reference>) -> Vec<Self> {
        let parent = parent.map(|Reference { key, proof, .. }| Self { key, proof, field: None });
        let named = |Reference { field, key, proof, .. }| Self { key, proof, field: Some(field) };
        parent.into_iter().chain(fields.into_iter().map(named)).collect()
    }
}

impl Table {
    /// Inserts the row that `make` makes of an id, on condition that its parent and all records that it names exist. A
    /// repeat of `origin` inserts nothing, and gets the row as it was created.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the parent does not exist, [`TableError::Unknown`] where a named record does not,
    /// [`TableError::Taken`] where another row has a unique value.
    pub async fn insert<R: Listed>(
        &self,
        new: NewRow<R::Of>,
        make: impl Fn(R::Id) -> R + Sync,
    ) -> Result<R, TableError> {
        self.insert_metered(new, None, make).await
    }

    /// The same, and counts it for a user.
    ///
    /// # Errors
    /// The errors of [`Table::insert`], and [`TableError::Exceeded`] where the plan of the user leaves no room.
    pub async fn insert_metered<R: Listed>(
        &self,
        new: NewRow<R::Of>,
        metering: Option<Metering>,
        make: impl Fn(R::Id) -> R + Sync,
    ) -> Result<R, TableError> {
        Ok(self.insert_with(new, metering, make, |_, _| Ok(())).await?)
    }

    /// The same, together with the actions that `with` adds to the transaction before the new row.
    ///
    /// # Errors
    /// [`Cancelled::Condition`] where a condition of these actions fails, and the errors of [`Table::insert_metered`].
    pub(crate) async fn insert_with<R: Listed>(
        &self,
        new: NewRow<R::Of>,
        metering: Option<Metering>,
        make: impl Fn(R::Id) -> R + Sync,
        with: impl Fn(&mut Transaction<'_, Unmet>, &R) -> Result<(), TableError> + Sync,
    ) -> Result<R, Cancelled<Unmet>> {
        self.insert_taking(new, metering, (IDENTITY, |id, _: &NamedItems| make(id)), with).await
    }

    /// The same for a row that takes over values of the records that it names: they are read anyway. The `attributes`
    /// have the keys and the ids among them.
    ///
    /// # Errors
    /// The same as for [`Table::insert_with`].
    pub(crate) async fn insert_taking<R: Listed>(
        &self,
        new: NewRow<R::Of>,
        metering: Option<Metering>,
        (attributes, make): (&'static str, impl Fn(R::Id, &NamedItems) -> R + Sync),
        with: impl Fn(&mut Transaction<'_, Unmet>, &R) -> Result<(), TableError> + Sync,
    ) -> Result<R, Cancelled<Unmet>> {
        let NewRow { of, id, origin, now } = new;
        // The references do not depend on the ordinal, nor on what the row takes over.
        let mut sample = make(R::id_at(of, id, 0), &NamedItems::new());
        let key = self.sealing_key(&mut sample).await?;
        let required: Vec<Required> = Required::all(R::parent(&self.tenant, of), sample.references(&self.tenant));
        let there = self.named_items(&required, attributes);
        let (reserved, named) = if required.iter().all(|one| self.store.recent.existed(&one.key, one.proof)) {
            let (reserved, there) = futures_util::join!(self.reserve::<R>(of, 1), there);
            let reserved = reserved?;
            match there {
                Ok(named) => (reserved, named),
                Err(error) => {
                    self.give_back([reserved]).await;
                    return Err(error.into());
                }
            }
        } else {
            // A request that names a missing record must leave nothing behind.
            let named = there.await?;
            (self.reserve::<R>(of, 1).await?, named)
        };
        let at = R::id_at(of, id, reserved.first());
        let mut row = make(at, &named);
        seal(key.as_ref(), &mut row)?;
        let mut transaction = Transaction::of_request(self);
        transaction.once(origin, row.uuid(), now);
        with(&mut transaction, &row)?;
        transaction.insert(at, &row)?;
        transaction.meter(metering);
        match transaction.commit_reserved([reserved]).await {
            Err(Cancelled::Condition(Unmet::Repeated, Some(marker))) => {
                Ok(make(R::id_at(of, id, ordinal(target_id(&marker)?)), &named))
            }
            Err(cancelled) => Err(cancelled),
            Ok(()) => Ok(row),
        }
    }

    /// Inserts at most [`INSERT_LIMIT`] rows at once, which `make` makes of one id each. The records that they name
    /// must exist.
    ///
    /// # Errors
    /// [`TableError::Taken`] where another row has a unique value.
    pub async fn insert_all<R: Listed>(
        &self,
        of: R::Of,
        ids: &[Uuid],
        make: impl Fn(usize, R::Id) -> R + Sync,
    ) -> Result<Vec<R>, TableError> {
        let reserved = self.reserve::<R>(of, ids.len() as u64).await?;
        let mut transaction = Transaction::new(self);
        let mut rows = Vec::with_capacity(ids.len());
        for ((index, id), ordinal) in ids.iter().enumerate().zip(reserved.ordinals()) {
            let at = R::id_at(of, *id, ordinal);
            let mut row = make(index, at);
            self.seal(&mut row).await?;
            transaction.insert(at, &row)?;
            rows.push(row);
        }
        transaction.commit_reserved([reserved]).await?;
        Ok(rows)
    }

    /// Requires records, by one strongly consistent read. A condition in the transaction would make any two appends
    /// that name the same record conflict.
    pub(super) async fn require(&self, required: &[Required]) -> Result<(), TableError> {
        self.named_items(required, IDENTITY).await.map(drop)
    }

    /// The same, and returns the records with these attributes.
    async fn named_items(&self, required: &[Required], attributes: &'static str) -> Result<NamedItems, TableError> {
        if required.is_empty() {
            return Ok(NamedItems::new());
        }
        let keys: Vec<Key> = required.iter().map(|required| required.key.clone()).collect();
        let found = self.store.get_attributes(&keys, attributes).await?;
        for Required { key, proof, field } in required {
            if !found.get(key).is_some_and(|item| has_id(item, *proof)) {
                return Err(field.map_or(TableError::Missing, TableError::Unknown));
            }
            self.store.recent.exists(key, *proof);
        }
        Ok(found)
    }

    /// Requires the parent of the rows of this list.
    ///
    /// # Errors
    /// [`TableError::Missing`] where it does not exist.
    pub async fn require_parent<R: Listed>(&self, of: R::Of) -> Result<(), TableError> {
        self.require(&Required::all(R::parent(&self.tenant, of), Vec::new())).await
    }

    /// Changes the row `id` by `change`, on condition that the records that it newly names exist; retries if others
    /// change it at the same time. A request `by` makes its change once; a repeat gets the row as it is.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such row, [`TableError::Unknown`] where a named record does not exist,
    /// [`TableError::Taken`] where another row has a unique value.
    pub async fn change<R: Listed>(
        &self,
        id: R::Id,
        by: Uuid,
        change: impl Fn(&mut R) + Sync,
    ) -> Result<R, TableError> {
        let change = |row: &mut R| {
            change(row);
            Ok::<_, Infallible>(())
        };
        Ok(self.try_change(id, by, change).await?)
    }

    /// The same, unless `change` refuses.
    ///
    /// # Errors
    /// The errors of [`Table::change`], and the error of `change`.
    pub async fn try_change<R: Listed, E>(
        &self,
        id: R::Id,
        by: Uuid,
        change: impl Fn(&mut R) -> Result<(), E> + Sync,
    ) -> Result<R, NotChanged<E>> {
        self.try_change_with(id, by, change, |_, _| None).await
    }

    /// The same, together with the write that follows from the row before and after the change.
    ///
    /// # Errors
    /// The same as for [`Table::try_change`].
    pub async fn try_change_with<R: Listed, E>(
        &self,
        id: R::Id,
        by: Uuid,
        change: impl Fn(&mut R) -> Result<(), E> + Sync,
        with: impl Fn(&R, &R) -> Option<Write> + Sync,
    ) -> Result<R, NotChanged<E>> {
        self.try_change_opened(id, by, false, change, with).await
    }

    /// The same. `change` gets the row with its secrets `opened` if it needs them.
    ///
    /// # Errors
    /// The same as for [`Table::try_change`].
    pub(crate) async fn try_change_opened<R: Listed, E>(
        &self,
        id: R::Id,
        by: Uuid,
        opened: bool,
        change: impl Fn(&mut R) -> Result<(), E> + Sync,
        with: impl Fn(&R, &R) -> Option<Write> + Sync,
    ) -> Result<R, NotChanged<E>> {
        let row: R = self.get(id).await?;
        self.change_read(row, id, (Some(by), opened), change, with).await
    }

    /// The same for the row `id`, which was read already. Without a request `by`, every call makes the change.
    pub(crate) async fn change_read<R: Listed, E>(
        &self,
        mut was: R,
        id: R::Id,
        (by, opened): (Option<Uuid>, bool),
        change: impl Fn(&mut R) -> Result<(), E> + Sync,
        with: impl Fn(&R, &R) -> Option<Write> + Sync,
    ) -> Result<R, NotChanged<E>> {
        let mut round = self.store.backoff();
        loop {
            if by.is_some_and(|by| was.version().is_by(by)) {
                return Ok(was);
            }
            let mut is = was.clone();
            if opened {
                self.open(&mut is).await.map_err(TableError::from)?;
            }
            change(&mut is).map_err(NotChanged::Refused)?;
            self.seal(&mut is).await?;
            // Two ids may end in the same ordinal, and so have the same key: only the whole id identifies the record.
            let (known, mut named) = (was.references(&self.tenant), is.references(&self.tenant));
            named.retain(|new| !known.iter().any(|old| (&old.key, old.proof) == (&new.key, new.proof)));
            self.require(&Required::all(None, named)).await?;
            let mut transaction = Transaction::new(self);
            let is = transaction.replace(id, &was, is, by)?;
            transaction.write_all(with(&was, &is));
            match transaction.commit().await {
                Ok(()) => return Ok(is),
                Err(Cancelled::Condition((), existing)) => {
                    let existing = existing.filter(|item| is_proven::<R>(item, id)).ok_or(TableError::Missing)?;
                    was = from_item(existing)?;
                }
                Err(cancelled) => return Err(NotChanged::Failed(cancelled.into())),
            }
            round.again("the record").await?;
        }
    }

    /// Replaces the row `id`, unless it has changed since it was read as `was`. Returns the new row; `None` if it has
    /// changed.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn replace<R: Listed>(&self, id: R::Id, was: &R, mut is: R) -> Result<Option<R>, TableError> {
        self.seal(&mut is).await?;
        let mut transaction = Transaction::new(self);
        let is = transaction.replace(id, was, is, None)?;
        Ok(was_done(transaction.commit().await)?.then_some(is))
    }
}

impl<M> Transaction<'_, M> {
    /// Puts the row `id`, whose ordinal was reserved, with its pointers.
    ///
    /// # Errors
    /// [`TableError::Broken`] where the row cannot be an item.
    pub fn insert<R: Listed>(&mut self, id: R::Id, row: &R) -> Result<(), TableError> {
        let item = if row.uses().is_empty() {
            self.table().item(id, row)?
        } else {
            let mut counted = row.clone();
            counted.set_version(row.version().counted(true));
            self.table().item(id, &counted)?
        };
        self.write(Write::put(item));
        self.count(None, Some(row), self.is_limited());
        for pointer in row.pointers(self.tenant()) {
            self.put_pointer(&pointer, row.uuid());
        }
        self.update_unique_values(id, None, Some(row));
        Ok(())
    }

    /// Replaces the row `id`, if it still has the version of `was`, and then its pointers. Returns the row as it is
    /// after that.
    ///
    /// # Errors
    /// [`TableError::Broken`] where the row cannot be an item.
    pub(crate) fn replace<R: Listed>(
        &mut self,
        id: R::Id,
        was: &R,
        mut is: R,
        by: Option<Uuid>,
    ) -> Result<R, TableError> {
        let (uuid, tenant) = (R::proof(id).unwrap_or_default(), self.tenant());
        is.set_version(was.version().next(by));
        if was.uses() != is.uses() {
            is.set_version(is.version().counted(!is.uses().is_empty()));
            self.count(Some(was), Some(&is), by.is_some());
        }
        self.write(Write::put(self.table().item(id, &is)?).when(was.version().unchanged(uuid)));
        let (before, after) = (was.pointers(tenant), is.pointers(tenant));
        for key in before.iter().filter(|key| !after.contains(key)) {
            if !self.puts(key) {
                self.write(Write::delete(key.clone()));
            }
        }
        after.iter().filter(|key| !before.contains(key)).for_each(|key| self.put_pointer(key, uuid));
        self.update_unique_values(id, Some(was), Some(&is));
        Ok(is)
    }

    /// Puts a pointer to the row `id`, unless the transaction puts it already.
    pub(crate) fn put_pointer(&mut self, pointer: &Key, id: Uuid) {
        if self.puts(pointer) {
            return;
        }
        let mut item = pointer.attributes();
        item.insert("id".to_owned(), text(id));
        self.write(Write::put(item));
    }

    /// Turns `ordinals`, whose rows the transaction removes, into holes of `list`.
    pub(crate) fn holes(&mut self, list: &str, ordinals: impl IntoIterator<Item = u64>) {
        self.add_holes(list, ordinals, false, |_, holes| holes);
    }

    /// Turns the ordinals of the rows `ids` of `list`, which the transaction removes for a request, into holes.
    pub(super) fn holes_of<R: Listed>(&mut self, list: &str, ids: impl IntoIterator<Item = Uuid>) {
        let (table, ids) = (self.table(), ids.into_iter().collect::<Vec<_>>());
        let note = |block, holes| {
            let of_block = ids.iter().copied().filter(|id| ordinal(*id) / BLOCK == block);
            table.noting_removal(holes, R::NAME, of_block)
        };
        self.add_holes(list, ids.iter().map(|id| ordinal(*id)), false, note);
    }

    /// Turns `ordinals`, which have no row, into holes of `list`, on condition that none of them is a hole. A condition
    /// has room for a hundred.
    pub(super) fn new_holes(&mut self, list: &str, ordinals: impl IntoIterator<Item = u64>) {
        self.add_holes(list, ordinals, true, |_, holes| holes);
    }

    fn add_holes(
        &mut self,
        list: &str,
        ordinals: impl IntoIterator<Item = u64>,
        must_be_new: bool,
        note: impl Fn(u64, UpdateExpression) -> UpdateExpression,
    ) {
        let mut blocks: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for ordinal in ordinals {
            blocks.entry(ordinal / BLOCK).or_default().insert(ordinal % BLOCK);
        }
        let mut sections: BTreeMap<u64, Vec<(u64, usize)>> = BTreeMap::new();
        for (block, holes) in blocks {
            sections.entry(block / SECTION).or_default().push((block % SECTION, holes.len()));
            let all = AttributeValue::Ns(holes.iter().map(ToString::to_string).collect());
            let adding = note(block, UpdateExpression::new().add("holes", all));
            let adding = Write::update(list_block(self.tenant(), list, block), adding);
            self.write(if must_be_new { adding.when(are_new(&holes)) } else { adding });
        }
        for (section, counts) in sections {
            let count = |update: UpdateExpression, (block, holes): (u64, usize)| {
                update.add(&format!("b{block}"), number(holes))
            };
            let counting = counts.into_iter().fold(UpdateExpression::new(), count);
            self.write(Write::update(list_section(self.tenant(), list, section), counting));
        }
    }
}

/// The condition that a block has none of these holes yet.
fn are_new(holes: &BTreeSet<u64>) -> Condition {
    let absent: Vec<_> = holes.iter().map(|hole| format!("NOT contains(holes, :hole{hole})")).collect();
    let values = holes.iter().map(|hole| (format!(":hole{hole}"), number(hole)));
    Condition::new(absent.join(" AND "), values.collect())
}
