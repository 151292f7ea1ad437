//! What all functions share. From the outside in:
//!
//! - [`lambda`] runs an [`Endpoint`](operation::Endpoint) under Lambda: logging, configuration and clients are set up there, and only
//!   there. [`event`] turns API Gateway's events into requests and answers into responses.
//! - [`operation`] is the pipeline: key, route, path, query, body, handler, envelope. A function implements
//!   [`Operation`](operation::Operation) and says only what is particular to it. [`routes`] is the table of all of them.
//!   [`operator`] is the same for tasks without a route, [`stream`] for functions on the table's stream, [`schedule`] for those that
//!   look for what is due.
//! - [`idempotency`] has a repeated request get the first answer, where its caller asks for that.
//! - [`tenant`] says whose records may be touched and [`auth`] who calls; [`validation`] makes the input, [`response`] and [`page`]
//!   the answer, [`error`] every failure.
//! - [`model`] holds the records and how their state may change, without input or output.
//! - [`table`] is the single DynamoDB table: its keys, its access patterns, its lists, and the only calls of the SDK.
//! - [`outbox`] sends what is to be delivered, signed and checked by [`webhook`]; [`dispatch`] sends campaigns.
//! - [`payment`] speaks to the payment provider. [`config`], [`context`] and [`meter`] are what their names say.

#![warn(missing_docs)]

pub mod delivery;
pub mod records;
pub mod request;
pub mod routes;
pub mod runtime;
pub mod table;
pub mod values;

/// What an operation needs.
pub mod prelude {
    pub use crate::delivery::signature::new_secret;
    pub use crate::input;
    pub use crate::records::agency::*;
    pub use crate::records::assistant::*;
    pub use crate::records::campaign::*;
    pub use crate::records::conversation::*;
    pub use crate::records::datasource::*;
    pub use crate::records::delivery::*;
    pub use crate::records::form::*;
    pub use crate::records::intent::*;
    pub use crate::records::tag::*;
    pub use crate::records::user::*;
    pub use crate::records::webhook::*;
    pub use crate::records::widget::*;
    pub use crate::request::context::Context;
    pub use crate::request::error::{Error, Location, OnMissing, Result};
    pub use crate::request::page::{Page, PageQuery};
    pub use crate::request::pipeline::{Operation, Request};
    pub use crate::request::response::{Created, Deleted, Either, Reply, Retrieved, Updated};
    pub use crate::routes::{self, Route};
    pub use crate::values::id::*;
    pub use uuid::Uuid;

    /// What a function on the stream or on a schedule needs.
    pub mod events {
        pub use crate::request::error::Result;
        pub use crate::runtime::schedule::{EventContext, ScheduledTask};
        pub use crate::runtime::stream::{Change, Handled, StreamConsumer, Unhandled};
    }

    /// What a task of an operator needs.
    pub mod operator {
        pub use crate::input;
        pub use crate::records::api_key::*;
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
