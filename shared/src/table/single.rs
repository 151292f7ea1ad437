//! Records that stand alone, and that several processes change at the same time.

use crate::table::error::{Cancelled, TableError, was_done};
use crate::table::item::from_item;
use crate::table::part::Table;
use crate::table::stored::Single;
use crate::table::transaction::Write;
use crate::table::version::Version;

/// A record that stands alone, and knows how often it has changed.
pub trait Versioned: Single + Clone {
    /// How often it has changed.
    fn version(&self) -> Version;

    /// Says how often it has changed.
    fn set_version(&mut self, version: Version);
}

/// What became of a record that was to be changed.
#[derive(Debug, Clone)]
pub(crate) enum SingleChange<R> {
    /// It was changed to this.
    Made(R),
    /// What decides has left it as it is.
    NotWanted(Option<R>),
}

impl Table {
    /// Changes the record `id`, which was `seen`, to what `decide` makes of it; again where others change it at the same moment. `decide` may leave it
    /// as it is.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn change_single<R: Versioned>(
        &self,
        id: R::Id,
        seen: Option<R>,
        decide: impl Fn(Option<&R>) -> Option<R> + Sync,
    ) -> Result<SingleChange<R>, TableError> {
        // The name of this change, by which an attempt is known whose answer was lost.
        let (mut was, by) = (seen, uuid::Uuid::from_u128(fastrand::u128(..)));
        let mut round = self.store.backoff();
        loop {
            let Some(mut is) = decide(was.as_ref()) else { return Ok(SingleChange::NotWanted(was)) };
            let version = was.as_ref().map(R::version).unwrap_or_default();
            is.set_version(version.next(Some(by)));
            match self.store.put_if(&self.item(id, &is)?, &version.alone()).await {
                Ok(()) => return Ok(SingleChange::Made(is)),
                Err(Cancelled::Condition((), stands)) => was = stands.map(from_item).transpose()?,
                Err(cancelled) => return Err(cancelled.into()),
            }
            if let Some(made) = was.take_if(|stands| stands.version().is_by(by)) {
                return Ok(SingleChange::Made(made));
            }
            round.again("the record").await?;
        }
    }

    /// Removes the record `id`, unless it has changed since it was `seen`. Returns whether it was removed.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn remove_seen<R: Versioned>(&self, id: R::Id, seen: &R) -> Result<bool, TableError> {
        let removal = Write::delete(self.key::<R>(id)).when(seen.version().alone());
        was_done(self.store.transact(&[removal]).await)
    }
}
