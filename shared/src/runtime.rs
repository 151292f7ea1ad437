//! What a function needs of the machine that it runs on: Lambda itself, configuration, clients, clock, ids, and a meter.

pub mod config;
pub mod http_client;
pub mod lambda;
pub mod meter;
pub mod operator;
pub mod schedule;
pub mod stream;
