//! Sends events to customers' servers. From the inside out:
//!
//! - [`sender`] makes one attempt. It alone has the HTTP client, and connects only to addresses that [`network`](crate::network) allows at that moment.
//! - [`signature`] makes the secrets and the signed headers. With these a receiver verifies that an event is ours and not a replay.
//! - [`event`] is the body, which `body` makes of what is stored. [`outbox`] sends what is ready and saves the results, within `bounds`.

mod attempt;
mod body;
mod bounds;
mod drain;
mod endpoint;
pub mod event;
pub mod outbox;
mod release;
pub mod sender;
pub mod signature;
