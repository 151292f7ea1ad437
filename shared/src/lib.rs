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

pub mod auth;
pub mod config;
pub mod context;
pub mod dispatch;
pub mod error;
pub mod event;
pub mod http;
pub mod idempotency;
pub mod lambda;
pub mod meter;
pub mod model;
pub mod operation;
pub mod operator;
pub mod outbox;
pub mod page;
pub mod payment;
pub mod response;
pub mod routes;
pub mod schedule;
pub mod schema;
pub mod stream;
pub mod table;
pub mod tenant;
pub mod validation;
pub mod webhook;

/// What an operation needs.
pub mod prelude {
    pub use crate::context::Context;
    pub use crate::error::{Error, Location, OnMissing, Result};
    pub use crate::input;
    pub use crate::model::agency::*;
    pub use crate::model::assistant::*;
    pub use crate::model::campaign::*;
    pub use crate::model::conversation::*;
    pub use crate::model::datasource::*;
    pub use crate::model::delivery::*;
    pub use crate::model::form::*;
    pub use crate::model::id::*;
    pub use crate::model::intent::*;
    pub use crate::model::tag::*;
    pub use crate::model::user::*;
    pub use crate::model::webhook::*;
    pub use crate::model::widget::*;
    pub use crate::operation::{Operation, Request};
    pub use crate::page::{Page, PageQuery};
    pub use crate::response::{Created, Deleted, Either, Reply, Retrieved, Updated};
    pub use crate::routes::{self, Route};
    pub use crate::table::conversations::Changed;
    pub use crate::webhook::signature::new_secret;
    pub use uuid::Uuid;

    /// What a function on the stream or on a schedule needs.
    pub mod events {
        pub use crate::error::Result;
        pub use crate::schedule::{EventContext, ScheduledTask};
        pub use crate::stream::{Change, Handled, StreamConsumer, Unhandled};
    }

    /// What a task of an operator needs.
    pub mod operator {
        pub use crate::error::{OnMissing, Result};
        pub use crate::input;
        pub use crate::model::api_key::*;
        pub use crate::model::id::*;
        pub use crate::operator::{OperatorContext, OperatorTask};
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
