//! Records outside any list, which several processes change at the same time.

use crate::table::error::{Cancelled, TableError, was_done};
use crate::table::item::from_item;
use crate::table::part::Table;
use crate::table::stored::Single;
use crate::table::transaction::Write;
use crate::table::version::Versioned;

/// The result of the change of a record.
#[derive(Debug, Clone)]
pub(crate) enum SingleChange<R> {
    /// It was changed to this.
    Made(R),
    /// `decide` left it as it is.
    NotWanted(Option<R>),
}

impl Table {
    /// Changes the record `id`, last read as `seen`, to the result of `decide`; retries if others change it at the same
    /// time. `decide` may leave it as it is.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn change_single<R: Single + Versioned + Clone>(
        &self,
        id: R::Id,
        seen: Option<R>,
        decide: impl Fn(Option<&R>) -> Option<R> + Sync,
    ) -> Result<SingleChange<R>, TableError> {
        // The name of this change. It shows whether an attempt with a lost answer succeeded.
        let (mut was, by) = (seen, uuid::Uuid::from_u128(fastrand::u128(..)));
        let mut round = self.store.backoff();
        loop {
            let Some(mut is) = decide(was.as_ref()) else { return Ok(SingleChange::NotWanted(was)) };
            let version = was.as_ref().map(R::version).unwrap_or_default();
            is.set_version(version.next(Some(by)));
            match self.store.put_if(&self.item(id, &is)?, &version.unchanged_single()).await {
                Ok(()) => return Ok(SingleChange::Made(is)),
                Err(Cancelled::Condition((), existing)) => was = existing.map(from_item).transpose()?,
                Err(cancelled) => return Err(cancelled.into()),
            }
            if let Some(made) = was.take_if(|existing| existing.version().is_by(by)) {
                return Ok(SingleChange::Made(made));
            }
            round.again("the record").await?;
        }
    }

    /// Removes the record `id`, unless it has changed since it was read as `seen`. Returns whether it was removed.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn remove_seen<R: Single + Versioned>(&self, id: R::Id, seen: &R) -> Result<bool, TableError> {
        let removal = Write::delete(self.key::<R>(id)).when(seen.version().unchanged_single());
        was_done(self.store.transact(&[removal]).await)
    }
}
