//! What all functions share, room by room. A room uses those before it in this list, and no others: `local/tests/rooms.rs` reads the imports.
//!
//! - [`input`](mod@input) reads what a caller sends: where it is, what is wrong with it, its schema.
//! - [`values`] is what records and requests are made of: ids, points in time, free-form JSON, secrets, organisations, limits.
//! - [`network`] says which servers of others may be reached, and how.
//! - [`table`] is the single DynamoDB table: the declaration of records, lists, filters, transactions, and the only calls of the SDK. It names no record.
//! - [`bucket`] is S3: objects, addresses for uploading and downloading them, and what Lambda keeps there.
//! - [`request`] is what every request goes through: authentication, limits, the pipeline, the answer, every failure.
//! - [`operations`] are the plain ones, the same for all records.
//! - [`records`] declares every record, with its rules and changes of state.
//! - `tags` says what can be tagged.
//! - `ownership` says what belongs to what.
//! - [`payments`] is the payment provider: its API and its events.
//! - [`delivery`] sends events to customers' servers, signed and checked.
//! - [`routes`] is the table of what answers a request.
//! - [`reactions`] is the table of what follows from a change.
//! - [`redrive`] does again what could not follow.
//! - [`mcp`] serves the operations as tools of agents.
//! - [`runtime`] is Lambda itself: logging, clients, and the kinds of functions.

#![warn(missing_docs)]

pub mod bucket;
pub mod delivery;
pub mod input;
pub mod mcp;
pub mod network;
pub mod operations;
mod ownership;
pub mod payments;
pub mod reactions;
pub mod records;
pub mod redrive;
pub mod request;
pub mod routes;
pub mod runtime;
pub mod table;
mod tags;
pub mod values;

pub(crate) use record_declaration::record;

/// What an operation needs.
pub mod prelude {
    pub use crate::delivery::signature::new_secret;
    pub use crate::input;
    pub use crate::input::{Location, OptionalBody, Patch};
    pub use crate::operations::new::New;
    pub use crate::operations::{Create, Delete, List, Read, Update, update};
    pub use crate::records::agency::*;
    pub use crate::records::assistant::*;
    pub use crate::records::campaign::{
        self, AddedContacts, Campaign, CampaignChanges, CampaignCommand, CampaignContact, CampaignRun, MoreContacts,
        NewCampaign, NewScheduledCampaign, RunMarker,
    };
    pub use crate::records::contact::{
        self, Contact, ContactFields, ContactQuery, ImportedContacts, NewContacts, Upsert,
    };
    pub use crate::records::conversation::{
        self, CallToNumber, Changed, Conversation, Message, MessageToNumber, NewMessage, Requested, Transcribed,
    };
    pub use crate::records::datasource::files::*;
    pub use crate::records::datasource::*;
    pub use crate::records::delivery::{self, Delivery, EndpointHealth, EventId, NewDelivery, Observed};
    pub use crate::records::form::*;
    pub use crate::records::intent::*;
    pub use crate::records::tag::*;
    pub use crate::records::user::*;
    pub use crate::records::webhook::*;
    pub use crate::records::widget::*;
    pub use crate::request::context::Context;
    pub use crate::request::error::{Error, OnMissing, Result};
    pub use crate::request::pipeline::{Operation, Request};
    pub use crate::request::response::{Created, Deleted, Either, Reply, Retrieved, Updated, Upserted};
    pub use crate::table::declaration::{Changes, Declared};
    pub use crate::table::page::{ListQuery, Page, PageQuery};
    pub use crate::table::rows::NewRow;
    pub use crate::values::id::*;
    pub use uuid::Uuid;

    /// What a document needs.
    pub mod documents {
        pub use crate::request::config::Config;
        pub use crate::runtime::document::{Document, Headers};
    }

    /// What an operation needs whose requests are signed.
    pub mod signed {
        pub use crate::input::schema::Value;
        pub use crate::prelude::*;
        pub use crate::request::signed::{SignedMessage, SignedOperation};
        pub use crate::table::TableError;
        pub use crate::table::store::Store;
        pub use crate::values::tenant::Tenant;
    }

    /// What the server of tools needs.
    pub mod tools {
        pub use crate::mcp::ToolServer;
    }

    /// What a function on the stream or on a schedule needs.
    pub mod events {
        pub use crate::request::error::Result;
        pub use crate::request::event::{EventContext, Handled, Unhandled};
        pub use crate::runtime::schedule::ScheduledTask;
        pub use crate::runtime::stream::StreamConsumer;
        pub use crate::table::change::Change;
    }

    /// What a task of an operator needs.
    pub mod operator {
        pub use crate::input;
        pub use crate::request::api_key::*;
        pub use crate::request::error::{OnMissing, Result};
        pub use crate::runtime::operator::{OperatorContext, OperatorTask};
        pub use crate::values::id::*;
    }
}

/// `bytes` in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
