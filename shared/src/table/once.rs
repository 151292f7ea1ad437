//! Rows that may exist only once, such as a link between two records. The pointer to such a row has a key made of its
//! values, and is put only if there is none yet.

use crate::table::declaration::Reference;
use crate::table::error::{Cancelled, TableError};
use crate::table::item::{target_id, text};
use crate::table::keys::Key;
use crate::table::page::{Page, PageQuery};
use crate::table::part::Table;
use crate::table::rows::{NewRow, Required};
use crate::table::stored::{Listed, Stored};
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::values::id::ordinal;

impl Table {
    /// Inserts the row that `make` makes of an id. If a row with the same last pointer exists, that row is returned
    /// instead. The parent, the records that the row names, and the records of `also` must exist.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the parent does not exist, [`TableError::Unknown`] where a named record does not.
    pub async fn insert_once<R: Listed>(
        &self,
        new: NewRow<R::Of>,
        also: Vec<Reference>,
        make: impl Fn(R::Id) -> R + Sync,
    ) -> Result<R, TableError> {
        let NewRow { of, id, origin, now } = new;
        // Neither the pointer nor the references depend on the ordinal.
        let sample = make(R::id_at(of, id, 0));
        let mut pointers = sample.pointers(&self.tenant);
        let pointer = pointers.pop();
        let pointer = pointer.ok_or_else(|| TableError::Broken("a row that is there once without a pointer".into()))?;
        let named = sample.references(&self.tenant).into_iter().chain(also).collect();
        let required = Required::all(R::parent(&self.tenant, of), named);
        let mut round = self.store.backoff();
        loop {
            // Not `try_join!`: the cost of a request must not depend on which records exist.
            let (there, known) = futures_util::join!(self.require(&required), self.pointed::<R>(of, &pointer));
            there?;
            if let Some(known) = known? {
                return Ok(known);
            }
            let reserved = self.reserve::<R>(of, 1).await?;
            let at = R::id_at(of, id, reserved.first());
            let row = make(at);
            let mut transaction = Transaction::of_request(self);
            transaction.once(origin, row.uuid(), now);
            transaction.write(Write::put(self.item(at, &row)?));
            let mut item = pointer.attributes();
            item.insert("id".to_owned(), text(row.uuid()));
            transaction.write(Write::create(item));
            for pointer in &pointers {
                transaction.put_pointer(pointer, row.uuid());
            }
            match transaction.commit_reserved([reserved]).await {
                Ok(()) => return Ok(row),
                Err(Cancelled::Condition(Unmet::Repeated, Some(marker))) => {
                    return Ok(make(R::id_at(of, id, ordinal(target_id(&marker)?))));
                }
                // Another request was faster; its row is the result.
                Err(Cancelled::Condition(..)) => round.again("the row").await?,
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
    }

    /// The row to which a pointer leads, if there is one.
    async fn pointed<R: Listed>(&self, of: R::Of, pointer: &Key) -> Result<Option<R>, TableError> {
        let Some(item) = self.store.get(pointer).await? else { return Ok(None) };
        let id = target_id(&item)?;
        self.find(R::id_at(of, id, ordinal(id))).await
    }

    /// Removes the row to which a pointer leads, and returns it as it was.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn remove_pointed<R: Listed>(&self, of: R::Of, pointer: &Key) -> Result<R, TableError> {
        let item = self.store.get(pointer).await?.ok_or(TableError::Missing)?;
        let id = target_id(&item)?;
        self.remove(R::id_at(of, id, ordinal(id))).await
    }

    /// The records to which a page of `R` leads, in the order of their rows. A deleted one is left out.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the parent does not exist.
    pub async fn list_named<R: Listed, T: Listed<Id: Ord>>(
        &self,
        of: R::Of,
        query: &PageQuery,
        name: impl Fn(&R) -> T::Id + Sync,
    ) -> Result<Page<T>, TableError> {
        // The page is read even if the parent is missing: the cost of a request must not show whether the parent
        // exists.
        let (parent, page) = futures_util::join!(self.require_parent::<R>(of), self.page::<R>(of, query));
        let Page { items: rows, total, .. } = parent.and(page)?;
        let names: Vec<T::Id> = rows.iter().map(name).collect();
        let mut found: Vec<T> = self.get_each(&names.iter().copied().collect()).await?;
        let place = |record: &T| names.iter().position(|name| <T as Stored>::proof(*name) == Some(record.uuid()));
        found.sort_by_cached_key(place);
        Ok(query.of(found, total))
    }
}
