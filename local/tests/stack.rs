//! Tests of the whole service in one process: each has a stack of its own, with its own database, and all run side by side.

mod canary;
mod command;
mod contract;
mod cost;
mod events;
mod faults;
mod fixture;
mod isolation;
mod lists;
mod matrix;
mod routes;
mod storage;
