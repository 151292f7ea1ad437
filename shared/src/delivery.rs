//! Sends events to customers' servers. From the inside out:
//!
//! - [`sender`] makes one attempt. Only this module of `delivery` has the HTTP client, and it connects only to
//!   addresses that [`network`](crate::network) allows at that moment.
//! - [`signature`] makes the secrets and the signed headers. With these a receiver verifies that an event comes from
//!   the service and is no replay.
//! - [`event`] is the body; `body` makes it from the stored records. [`context`] is what it has for a program that
//!   answers users, with the variables in the assistant's `prompt` filled in. [`outbox`] sends the ready deliveries and saves
//!   the results, within `bounds`.

mod attempt;
mod body;
mod bounds;
pub mod context;
mod drain;
mod endpoint;
pub mod event;
pub mod outbox;
mod prompt;
mod release;
pub mod sender;
pub mod signature;
