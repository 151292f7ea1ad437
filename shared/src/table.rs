//! The single table: [`keys`] has every key, [`access`] the access patterns of most records, [`list`] and [`filters`] the lists and what
//! selects from them, [`store`] the calls themselves, [`wire`] what is read of their answers without the SDK.

pub mod access;
pub mod filters;
pub mod keys;
pub mod list;
pub mod store;
pub mod wire;

pub use access::Table;

/// Others that may change the same at the same moment before a change gives up.
pub(crate) const ATTEMPTS: u32 = 32;

/// Why the table did not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A record that had to be there is not.
    #[error("no such record")]
    Missing,
    /// The database did not answer in time, throttled, or its answer was lost, after all retries.
    #[error("{0}")]
    Unavailable(String),
    /// A defect of ours: the database refused the request, or an item cannot be read.
    #[error("{0}")]
    Broken(String),
}
