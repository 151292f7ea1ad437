//! What every request goes through, from the outside in.
//!
//! - [`http`] turns both event formats of API Gateway into one request. [`authentication`] says who calls, [`tenant`] whose records the
//!   caller may touch, [`limit`] how much the caller may send.
//! - [`pipeline`] is the order of the steps, and the trait that an operation implements.
//! - [`signed`] is the same for requests that are signed and have no key.
//! - [`input`] reads path, query and body. [`response`] and [`page`] make the answer, [`error`] every failure.
//! - [`idempotency`] gives a repeated request the first answer. [`context`] is what a handler may touch.

pub mod authentication;
pub mod context;
pub mod error;
pub mod http;
pub mod idempotency;
pub mod input;
pub mod limit;
pub mod page;
pub mod pipeline;
pub mod response;
pub mod signed;
pub mod tenant;
