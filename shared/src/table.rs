//! The single table. This module knows no particular record: the code for each one is in [`records`](crate::records).
//!
//! - [`declaration`] declares a record once. [`stored`] defines its place: alone, or in a list. [`keys`] has the
//!   forms of the table's own keys.
//! - [`list`] reads pages of lists with exact totals, [`filters`] selects rows from them. [`page`] has the query and
//!   the answer. [`stretch`] reads rows one after the other, `piece` reads them in pieces of a bounded size.
//! - [`reservation`] takes ordinals at the end of a list, [`rows`] inserts and changes rows together with their
//!   pointers, `once` inserts rows that may exist only once, `removal` removes rows, [`cascade`] removes the belongings
//!   of a removed record.
//! - [`quota`] has the limits of an organisation, `uses` counts what it has of them, [`sends`] counts
//!   the sends of a day, and `room` computes what is left. [`plan_limits`] has the limits of a billing
//!   plan, [`metering`] counts what a user uses up of it.
//! - `tokens` takes tokens from a bucket that many processes share.
//! - [`transaction`] makes several writes, all or none. [`error`] has the reasons why a write or a call failed.
//! - `secrets` seals the secrets of records before they are written, and opens them.
//! - [`expression`] has the changes and the condition of a write. [`item`] converts records to items.
//!   [`change`] is a change of an item, as the stream reports it, [`stamp`] says which request made it.
//! - [`store`] and `query` make the calls themselves, `retry` decides which failures are retried, [`meter`] counts
//!   the cost of calls, [`wire`] reads pages without the SDK, `recent` is the memory of a process.

mod call;
pub mod cascade;
pub mod change;
pub mod dates;
pub mod declaration;
pub mod error;
pub mod expiry;
pub mod expression;
pub mod filters;
mod holders;
pub mod item;
pub mod keys;
pub mod list;
pub mod meter;
pub mod metering;
mod once;
pub mod ordinals;
pub mod page;
mod part;
pub(crate) mod piece;
pub mod plan_limits;
mod query;
pub mod quota;
mod recent;
mod removal;
pub mod reservation;
pub mod retry;
mod room;
pub mod rows;
mod secrets;
pub mod sends;
pub mod single;
pub mod stamp;
pub mod store;
pub mod stored;
pub mod stretch;
pub(crate) mod tokens;
pub mod transaction;
pub mod unique;
mod uses;
pub mod version;
pub mod wire;

pub use error::TableError;
pub use keys::Fingerprint;
pub use part::Table;
