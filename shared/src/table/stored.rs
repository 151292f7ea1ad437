//! The place of a record in the table: alone, or in a list.
//!
//! The two must not be confused. A [`Listed`] record has a row that its list counts, that filters select and that
//! pointers may lead to. [`Table`](crate::table::part::Table) writes and removes such a row together with all of that.
//! Only a [`Single`] record can be put or removed alone:
//!
//! ```
//! # use shared::request::claim::Claim;
//! # use shared::table::{Fingerprint, Table, TableError};
//! async fn remove(table: &Table, key: Fingerprint) -> Result<Claim, TableError> {
//!     table.remove_single::<Claim>(key).await
//! }
//! ```
//!
//! The same does not compile for a record with a list:
//!
//! ```compile_fail,E0277
//! # use shared::records::tag::Tag;
//! # use shared::table::{Table, TableError};
//! # use shared::values::id::TagId;
//! async fn remove(table: &Table, id: TagId) -> Result<Tag, TableError> {
//!     table.remove_single::<Tag>(id).await
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # use shared::records::tag::Tag;
//! # use shared::table::{Table, TableError};
//! async fn put(table: &Table, tag: &Tag) -> Result<(), TableError> {
//!     table.put_single(tag.id, tag).await
//! }
//! ```
//!
//! A handler cannot reach the calls of the store either, which ignore lists:
//!
//! ```compile_fail,E0624
//! # use shared::request::context::Context;
//! async fn put(cx: &Context<'_>) {
//!     let _ = cx.service.store.put(Default::default()).await;
//! }
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::input::Input;
use crate::table::declaration::{Declared, Names, Reference};
use crate::table::error::TableError;
use crate::table::item::Item;
use crate::table::item::has_id;
use crate::table::keys::Key;
use crate::table::quota::Amounts;
use crate::values::id::Id;
use crate::values::secret::FoundSecret;
use crate::values::tenant::Tenant;

/// A record in the table.
pub trait Stored: Serialize + DeserializeOwned + Send + Sync {
    /// The values that form its key.
    type Id: Copy + Send + Sync;

    /// The path parameter that names it; empty if no path does.
    const PARAMETER: &'static str = "";

    /// The name of the record, if it is in a list: the stream recognises changed records by it.
    const RECORD: Option<&'static str> = None;

    /// The key of the record `id`.
    fn key(tenant: &Tenant, id: Self::Id) -> Key;

    /// The id that the item must have to be this record. A listed record is found by its ordinal, and another id may
    /// have the same one.
    fn proof(_: Self::Id) -> Option<Uuid> {
        None
    }

    /// Adds the attributes that are stored but are not part of answers.
    ///
    /// # Errors
    /// [`TableError::Broken`] where one cannot be an attribute.
    fn hide(&self, _: &mut Item) -> Result<(), TableError> {
        Ok(())
    }

    /// Whether it has fields with secrets.
    const HAS_SECRETS: bool = false;

    /// Its secrets, each with its place: the record and the field.
    fn secrets(&mut self) -> Vec<(&'static str, FoundSecret<'_>)> {
        Vec::new()
    }

    /// Its partition in the index of due items, as long as it has a due time.
    fn due_partition(&self, _: Self::Id) -> Option<String> {
        None
    }
}

/// A record outside any list.
pub trait Single: Stored {}

/// A record in a list: the last bits of its id are its ordinal there.
pub trait Listed: Stored + Declared {
    /// The parent of the list, if an organisation has more than one list of this kind.
    type Of: Of;

    /// Whether a long list has its rows in several partitions: for lists to which more than a thousand units per second
    /// may be written.
    const SPREADS: bool = false;

    /// The list.
    fn list(of: Self::Of) -> String;

    /// The list that contains the row `id`.
    fn list_of(id: Self::Id) -> String;

    /// The id of the row at `ordinal`, made from a fresh id.
    fn id_at(of: Self::Of, id: Uuid, ordinal: u64) -> Self::Id;

    /// The parent of the rows of this list, which must exist.
    fn parent(_: &Tenant, _: Self::Of) -> Option<Reference> {
        None
    }

    /// What the row uses of the quotas of its organisation.
    fn uses(&self) -> Amounts {
        Amounts::new()
    }

    /// The same, if the counters include it.
    fn counted_uses(&self) -> Amounts {
        if self.version().is_counted() { self.uses() } else { Amounts::new() }
    }

    /// The pointers to the row, which are written and removed together with it.
    fn pointers(&self, _: &Tenant) -> Vec<Key> {
        Vec::new()
    }
}

/// The parent of a list: a record of the path, or the organisation itself.
pub trait Of: Input + Copy + Send + Sync {
    /// The path parameter that names it; empty for the organisation.
    const PARAMETER: &'static str;

    /// The id of the record; nil for the organisation.
    fn id(self) -> Uuid;

    /// The same from the sort key of a pointer. If the list belongs to the organisation, the sort key has no part for
    /// it.
    fn of_sort_key(sk: &str) -> Option<Self>;
}

impl Of for () {
    const PARAMETER: &'static str = "";

    fn id(self) -> Uuid {
        Uuid::nil()
    }

    fn of_sort_key(_: &str) -> Option<Self> {
        Some(())
    }
}

impl<T: Id> Of for T {
    const PARAMETER: &'static str = T::PARAMETER;

    fn id(self) -> Uuid {
        self.into()
    }

    fn of_sort_key(sk: &str) -> Option<Self> {
        Uuid::parse_str(sk).ok().map(Self::from)
    }
}

/// Declares the place of a record outside any list: its type, the type of its id, its partition within the
/// organisation, its sort key.
#[macro_export]
macro_rules! single {
    ($Record:ty, $Id:ty, |$id:pat_param| $partition:expr, $sort:expr) => {
        impl $crate::table::stored::Stored for $Record {
            type Id = $Id;

            fn key(tenant: &$crate::values::tenant::Tenant, $id: $Id) -> $crate::table::keys::Key {
                $crate::table::keys::Key::of(tenant, $partition, $sort)
            }
        }

        impl $crate::table::stored::Single for $Record {}
    };
}

/// The record `R` that a field names, if it names one.
pub(crate) fn reference<R, F>(tenant: &Tenant, field: &'static str, value: &F) -> Option<Reference>
where
    R: Stored,
    F: Names<Id = R::Id>,
{
    let id = value.named()?;
    Some(Reference { field, record: R::RECORD.unwrap_or_default(), key: R::key(tenant, id), proof: R::proof(id) })
}

/// Whether `item` is the record `id`, and not another row that had or has the same ordinal.
pub(crate) fn is_proven<R: Stored>(item: &Item, id: R::Id) -> bool {
    has_id(item, R::proof(id))
}
