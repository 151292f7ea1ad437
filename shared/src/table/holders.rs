//! The pointers from unique values to the rows that hold them.
//!
//! A pointer is written, moved and removed in the transaction that writes its row, on condition that no other row has
//! the value. So two writers cannot both succeed.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::table::error::TableError;
use crate::table::expression::Condition;
use crate::table::filters::Term;
use crate::table::item::{readable, target_id, text};
use crate::table::keys::{Key, list_row};
use crate::table::page::{ListQuery, Page};
use crate::table::part::Table;
use crate::table::stored::Listed;
use crate::table::transaction::{Transaction, Write};
use crate::values::hash::{hex, sha256};
use crate::values::id::ordinal;
use crate::values::tenant::Tenant;

/// The pointer to the row of `list` with this value. The key has a hash of the value, which may be long.
fn holder(tenant: &Tenant, list: &str, term: &Term) -> Key {
    let value = hex(&sha256([term.value().as_bytes()]));
    Key::of(tenant, format_args!("UNIQUE#{list}#{}#{value}", term.field()), "UNIQUE")
}

const FREE: &str = "attribute_not_exists(pk) OR id = :id";

impl<M> Transaction<'_, M> {
    /// Gives the row the unique values that it has newly got, and releases the values that it has lost.
    pub(super) fn update_unique_values<R: Listed>(&mut self, id: R::Id, was: Option<&R>, is: Option<&R>) {
        let (list, uuid) = (R::list_of(id), R::proof(id).unwrap_or_default());
        let of = |row: Option<&R>| row.map(R::unique).unwrap_or_default();
        let (before, after) = (of(was), of(is));
        for value in before.iter().filter(|value| !after.contains(value)) {
            let key = holder(self.tenant(), &list, &value.term);
            self.write(Write::delete(key));
        }
        for value in after.into_iter().filter(|value| !before.contains(value)) {
            let mut item = holder(self.tenant(), &list, &value.term).attributes();
            item.insert("id".to_owned(), text(uuid));
            self.take(value, Write::put(item).when(Condition::of(FREE, [(":id", text(uuid))])));
        }
    }
}

impl Table {
    /// The rows of a list that have these unique values, with the position of each value in `terms`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn holders<R: Listed>(&self, of: R::Of, terms: &[Term]) -> Result<Vec<(usize, Uuid)>, TableError> {
        let list = R::list(of);
        let keys: Vec<Key> = terms.iter().map(|term| holder(&self.tenant, &list, term)).collect();
        let found = self.store.get_attributes(&keys, "pk, sk, id").await?;
        let held = keys.iter().enumerate().filter_map(|(place, key)| Some((place, found.get(key)?)));
        held.map(|(place, item)| Ok((place, target_id(item)?))).collect()
    }

    /// The condition that no row of the list has this unique value.
    pub(crate) fn require_unheld<R: Listed>(&self, of: R::Of, term: &Term) -> Write {
        Write::check(holder(&self.tenant, &R::list(of), term), Condition::absent())
    }

    /// The page of the row that has the unique values of `query`.
    pub(super) async fn with_unique<R: Listed>(&self, of: R::Of, query: &ListQuery<R>) -> Result<Page<R>, TableError> {
        let list = R::list(of);
        let ids: BTreeSet<Uuid> = self.holders::<R>(of, &query.unique).await?.into_iter().map(|(_, id)| id).collect();
        let keys: Vec<Key> = ids.iter().map(|id| list_row(&self.tenant, &list, ordinal(*id))).collect();
        let matches = |row: &R| {
            let (unique, terms) = (row.unique(), row.terms());
            query.unique.iter().all(|asked| unique.iter().any(|value| value.term == *asked))
                && query.terms.iter().all(|asked| terms.contains(asked))
        };
        let mut rows: Vec<R> = readable(self.store.get_all(&keys).await?);
        rows.retain(matches);
        let total = rows.len() as u64;
        if query.page.offset() > 0 {
            rows.clear();
        }
        Ok(query.page.of(query.page.order.of(rows), total))
    }
}
