//! The code that all functions share, module by module. A module uses only the modules before it in this list:
//! `local/tests/rooms.rs` checks the imports.
//!
//! - `repository_file` has the text of a file of the repository.
//! - [`input`](mod@input) reads a caller's input: its values, its issues with their locations, its schema.
//! - [`values`] has the values of which records and requests consist: ids, points in time, free-form JSON, secrets,
//!   organisations, limits.
//! - `aws` has what the clients of S3 and KMS share: endpoint, signature, attempts.
//! - [`sealing`] seals the secrets of records before they are stored, and opens them.
//! - [`network`] decides which servers of customers may be reached, and how.
//! - [`table`] is the single DynamoDB table: the declaration of records, lists, filters, transactions, and all calls
//!   of DynamoDB. It knows no particular record.
//! - [`bucket`] is S3: objects, addresses for uploading and downloading them, and the batches that Lambda keeps
//!   there.
//! - [`request`] has the steps of every request: authentication, limits, the pipeline, the answer, every failure.
//! - [`operations`] has the plain ones, which are the same for all records.
//! - [`records`] declares every record, with its rules and changes of state.
//! - `tags` lists the records that can be tagged.
//! - `ownership` defines which records belong to which.
//! - [`payments`] is the payment provider: its API and its events.
//! - [`delivery`] sends events to customers' servers, signed and checked.
//! - [`routes`] is the table of all routes.
//! - [`keys`] has the bodies and the rules with which customers manage their API keys.
//! - [`reactions`] is the table of reactions to changes.
//! - [`redrive`] repeats failed reactions.
//! - [`mcp`] serves the operations as tools of agents.
//! - [`runtime`] is Lambda itself: logging, clients, and the kinds of functions.

#![warn(missing_docs)]

mod aws;
pub mod bucket;
pub mod delivery;
pub mod input;
pub mod keys;
pub mod mcp;
pub mod network;
pub mod operations;
mod ownership;
pub mod payments;
pub mod reactions;
pub mod records;
pub mod redrive;
mod repository_file;
pub mod request;
pub mod routes;
pub mod runtime;
pub mod sealing;
pub mod table;
mod tags;
pub mod values;

pub(crate) use record_declaration::record;

/// The imports of an operation.
pub mod prelude {
    pub use crate::delivery::signature::new_secret;
    pub use crate::input;
    pub use crate::input::{Location, OptionalBody, Patch};
    pub use crate::operations::import::ImportedAll;
    pub use crate::operations::new::New;
    pub use crate::operations::{Create, Delete, DeleteMany, List, Read, Update, update};
    pub use crate::operations::{DeletedRecords, ManyIds, delete_many};
    pub use crate::records::prelude::*;
    pub use crate::request::context::Context;
    pub use crate::request::error::{Error, OnMissing, Result};
    pub use crate::request::pipeline::{Operation, Request};
    pub use crate::request::response::{Created, Deleted, Either, Reply, Retrieved, Updated, Upserted};
    pub use crate::table::declaration::{Changes, Declared};
    pub use crate::table::page::{ListQuery, Page, PageQuery};
    pub use crate::table::rows::NewRow;
    pub use crate::values::id::*;
    pub use uuid::Uuid;

    /// The imports of an operation with API keys.
    pub mod api_keys {
        pub use crate::keys::*;
        pub use crate::prelude::*;
        pub use crate::request::api_key::{ApiKey, ApiKeyRecord, IssuedApiKey, ShownApiKey, StoredApiKey};
    }

    /// The imports of a document.
    pub mod documents {
        pub use crate::repository_file;
        pub use crate::request::config::Config;
        pub use crate::runtime::document::{Document, Headers};
    }

    /// The imports of an operation whose requests are signed.
    pub mod signed {
        pub use crate::input::schema::Value;
        pub use crate::prelude::*;
        pub use crate::request::signed::{SignedMessage, SignedOperation};
        pub use crate::table::TableError;
        pub use crate::table::store::Store;
        pub use crate::values::tenant::Tenant;
    }

    /// The imports of the server of tools.
    pub mod tools {
        pub use crate::mcp::ToolServer;
        pub use crate::repository_file;
    }

    /// The imports of a function on the stream or on a schedule.
    pub mod events {
        pub use crate::request::error::Result;
        pub use crate::request::event::{EventContext, Handled, Unhandled};
        pub use crate::runtime::schedule::ScheduledTask;
        pub use crate::runtime::stream::StreamConsumer;
        pub use crate::table::change::Change;
    }

    /// The imports of a task of an operator.
    pub mod operator {
        pub use crate::input;
        pub use crate::request::api_key::*;
        pub use crate::request::error::{OnMissing, Result};
        pub use crate::runtime::operator::{OperatorContext, OperatorTask};
        pub use crate::table::quota::QuotaUse;
        pub use crate::values::id::*;
    }
}
