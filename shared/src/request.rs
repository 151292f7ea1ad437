//! What every request goes through, from the outside in.
//!
//! - [`http`] makes one request of API Gateway's two event formats; [`authentication`] says who calls, [`tenant`] whose records may be
//!   touched.
//! - [`pipeline`] is the order of the steps, and the trait that an operation implements.
//! - [`input`] reads path, query and body; [`response`] and [`page`] make the answer, [`error`] every failure.
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
