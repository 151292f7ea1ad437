//! Sets that the rows of another list fill. A captured intent puts its conversation into such a set, so that
//! conversations are listed by an intent, and no request writes their rows for it.

use super::Term;
use super::follow::{Moved, follow_moved};
use crate::table::error::TableError;
use crate::table::item::readable;
use crate::table::keys::{Key, row_of};
use crate::table::part::Table;
use crate::table::stored::Listed;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// A row that puts a row of another list into a set of that list. All rows that put the same row into the same set are
/// removed together.
pub trait Marks: Listed {
    /// The key of the other row.
    fn marked(&self, tenant: &Tenant) -> Key;

    /// The term of the set.
    fn mark(&self) -> Option<Term>;

    /// When the other row was created.
    fn marked_made_at(&self) -> Option<Timestamp>;
}

/// Updates the sets of another list from `rows`, which were made or removed, each with its key. Handling the same rows
/// again makes no difference: a row is in the set as long as the row that puts it there exists.
///
/// # Errors
/// [`TableError`]: some sets may be up to date.
pub async fn follow_marks<R: Marks>(table: &Table, rows: &[(Key, &R)], now: Timestamp) -> Result<(), TableError> {
    let moved = |(key, row): &(Key, &R)| {
        let marked = row.marked(&table.tenant);
        let (_, list, ordinal) = row_of(&marked)?;
        let had = vec![row.mark().into_iter().collect()];
        Some((key.clone(), Moved { list: list.to_owned(), ordinal, made_at: row.marked_made_at(), is_own: false, had }))
    };
    let moved = rows.iter().filter_map(moved).collect();
    follow_moved(table, moved, |item| readable::<R>([item]).pop().map(|row| row.mark().into_iter().collect()), now)
        .await
}
