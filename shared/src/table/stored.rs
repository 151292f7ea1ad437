//! Where a record stands in the table: alone, or in a list.
//!
//! The two must not be confused. What is [`Listed`] has a row that its list counts, that filters select and that other items may lead to.
//! [`Table`](crate::table::part::Table) writes and removes such a row together with all of that, and it puts or removes alone only what is
//! [`Single`]:
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
//! Nor can a handler reach the calls below, which know nothing of lists:
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
use crate::values::id::Id;
use crate::values::tenant::Tenant;

/// A record that the table holds.
pub trait Stored: Serialize + DeserializeOwned + Send + Sync {
    /// What its key is made of.
    type Id: Copy + Send + Sync;

    /// The path's parameter that names it; empty where no path does.
    const PARAMETER: &'static str = "";

    /// The name of the record, where it stands in a list: by this the stream tells what has changed.
    const RECORD: Option<&'static str> = None;

    /// The key of the record that `id` names.
    fn key(tenant: &Tenant, id: Self::Id) -> Key;

    /// The id that the item must have to be the record. A listed one is found by its ordinal, which another id may carry too.
    fn proof(_: Self::Id) -> Option<Uuid> {
        None
    }

    /// Adds the attributes that are stored beside those that are answered.
    ///
    /// # Errors
    /// [`TableError::Broken`] where one cannot be an attribute.
    fn hide(&self, _: &mut Item) -> Result<(), TableError> {
        Ok(())
    }

    /// Its partition in the index of what becomes due, while it is due some time.
    fn due_partition(&self, _: Self::Id) -> Option<String> {
        None
    }
}

/// A record that stands alone.
pub trait Single: Stored {}

/// A record that stands in a list: the last bits of its id are its ordinal there.
pub trait Listed: Stored + Declared {
    /// Whose list it is, where an organisation has more than one of them.
    type Of: Of;

    /// Whether the rows lie in several partitions where there are many of them: where more may be written than a thousand units a second.
    const SPREADS: bool = false;

    /// The list.
    fn list(of: Self::Of) -> String;

    /// The list that the row `id` stands in.
    fn list_of(id: Self::Id) -> String;

    /// The id of the row at `ordinal`, made of a fresh one.
    fn id_at(of: Self::Of, id: Uuid, ordinal: u64) -> Self::Id;

    /// The record that a row of this list belongs to, which has to exist.
    fn parent(_: &Tenant, _: Self::Of) -> Option<Reference> {
        None
    }

    /// The items that come and go with the row, and lead to it from elsewhere.
    fn pointers(&self, _: &Tenant) -> Vec<Key> {
        Vec::new()
    }
}

/// Whose list it is: a record of the path, or the organisation itself.
pub trait Of: Input + Copy + Send + Sync {
    /// The path's parameter that names it; empty for the organisation.
    const PARAMETER: &'static str;

    /// The id of the record; nil for the organisation.
    fn id(self) -> Uuid;

    /// The same from the sort key of a pointer, which has no part in it where the list is the organisation's.
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

/// Declares where a record stands that is alone: the type, the type of its id, its partition behind the organisation, its sort key.
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

/// Whether `item` is the record `id`, and not another row that once had or now has its ordinal.
pub(crate) fn is_proven<R: Stored>(item: &Item, id: R::Id) -> bool {
    has_id(item, R::proof(id))
}
