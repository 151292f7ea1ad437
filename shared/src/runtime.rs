//! The runtime of a function: Lambda, clients, and the kinds of functions.

pub mod document;
pub mod http_client;
pub mod lambda;
pub mod operator;
pub mod schedule;
pub mod stream;
