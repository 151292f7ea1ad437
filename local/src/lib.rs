//! The entire service in one process, for `cargo local` and the tests: gateway, functions, embedded DynamoDB and S3,
//! payment provider.
//!
//! - [`stack`] starts and stops it.
//! - [`template`] reads `template.yaml`, so that table and routes are the same as in a deployment.
//! - [`port`] is a port with its guard against pages of other sites; everything below is served on one of five ports.
//! - [`database`] serves the embedded DynamoDB; the SDK in this process reaches it through [`embedded_dynamodb`],
//!   which counts the units of partitions. [`bucket`] serves the embedded S3, [`kms`] the keys of secrets, [`gateway`] the API, of which [`http`]
//!   has requests and answers, and [`payment_provider`] is a stand-in for the provider.
//! - [`stream`] passes changes of the table to the functions on its stream, by the rules of Lambda in
//!   [`event_source`] and [`event_filter`]; batches that they give up go to the [`destination`]. [`schedule`] invokes
//!   the functions on a schedule. [`lambda`] is one invocation of either kind.
//! - [`roles`] refuses calls that the role of a function does not allow, as IAM does.
//! - [`prices`] calculates the cost of calls and of an idle stack.
//! - [`demo`] loads the demo set. [`faults`] makes the database fail on purpose, [`in_progress`] holds transactions
//!   that are in progress, [`receiver`] is a customer's server that can fail, and [`fault_run`] uses all of them at
//!   once and checks which events arrive.
//! - [`inbox`] receives the events of the demo set, and verifies them. [`console`] shows these events, the requests
//!   of the [`journal`] with their [`calls`] of the database and the [`traces`] that they begin, and the
//!   records by their [`names`] through the [`api`]. [`echo`] answers the
//!   users of the demo set.
//! - [`openapi`] makes the document of the API, [`collections`] the
//!   requests to try it with, [`client_names`] the names of the operations in the clients.
//! - [`replay`] sends recorded requests to a deployed service, and compares its answers.

pub mod api;
pub mod bucket;
pub mod calls;
pub mod client_names;
pub mod collections;
pub mod console;
pub mod database;
pub mod demo;
pub mod destination;
pub mod echo;
pub mod event_filter;
pub mod event_source;
pub mod fault_run;
pub mod faults;
pub mod functions;
pub mod gateway;
pub mod http;
pub mod in_progress;
pub mod inbox;
pub mod journal;
pub mod kms;
pub mod lambda;
pub mod names;
pub mod new_objects;
pub mod openapi;
pub mod payment_provider;
pub mod port;
pub mod prices;
pub mod receiver;
pub mod replay;
pub mod roles;
pub mod schedule;
pub mod stack;
pub mod stream;
pub mod template;
pub mod traces;

pub use stack::{Background, Settings, Stack};

/// Why the stack cannot start or continue, in one line for its user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Trouble(pub String);
