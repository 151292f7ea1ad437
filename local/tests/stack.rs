//! Tests of the whole service in one process: each has a stack of its own, with its own database, and all run side by side.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod alarms;
mod campaigns;
mod canary;
mod command;
mod contract;
mod cost;
mod events;
mod exercises;
mod faults;
mod fixture;
mod http_client;
mod idempotency;
mod isolation;
mod keys;
mod lists;
mod matrix;
mod operations;
mod outbox;
mod permissions;
mod replay;
mod routes;
mod sending;
mod storage;
mod stored;
mod stream;
mod template;
mod verify;
