//! What every request goes through, from the outside in.
//!
//! - [`http`] turns both event formats of API Gateway into one request. [`authentication`] says who calls, [`tenant`] whose records the
//!   caller may touch.
//! - [`pipeline`] is the order of the steps, and the trait that an operation implements.
//! - [`input`] reads path, query and body. [`response`] and [`page`] make the answer, [`error`] every failure.
//! - [`idempotency`] gives a repeated request the first answer. [`context`] is what a handler may touch.

pub mod authentication;
pub mod context;
pub mod error;
pub mod http;
pub mod idempotency;
pub mod input;
pub mod page;
pub mod pipeline;
pub mod response;
pub mod tenant;
