//! The runtime of a function: Lambda, configuration, clients, the kinds of functions, and a meter.

pub mod config;
pub mod document;
pub mod http_client;
pub mod lambda;
pub mod meter;
pub mod operator;
pub mod schedule;
pub mod stream;
pub mod tls;
