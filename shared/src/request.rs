//! The steps of every request, from the outside in, and of every event.
//!
//! - [`route`] is an operation's place in the API, and [`scope`] a part of the API that a key may use. [`http`] turns both event formats of API Gateway into one request.
//! - [`authentication`] finds the [`caller`] by an [`api_key`]; [`limit`] is the rate limit of the caller.
//! - [`pipeline`] is the order of the steps, and the trait that an operation implements.
//! - [`signed`] is the same for requests with a signature instead of a key.
//! - [`response`] makes the answer, [`error`] every failure.
//! - [`idempotency`] gives a repeated request the first answer, by a [`claim`]. [`context`] has the resources of a
//!   handler, [`config`] the configuration.
//! - [`event`] is the context of a function on the stream or on a schedule, and the result of a batch.

pub mod api_key;
pub mod authentication;
pub mod caller;
pub mod claim;
pub mod config;
pub mod context;
pub mod error;
pub mod event;
pub mod http;
pub mod idempotency;
pub mod limit;
pub mod pipeline;
pub mod response;
pub mod route;
pub mod scope;
pub mod signed;
