//! Sends events to customers' servers. From the inside out:
//!
//! - [`address`] is the table of networks that events are never sent to.
//! - [`network`] checks the URL of an endpoint and looks its host up: when it is registered, and before each attempt. It links no HTTP
//!   client, so every function may use it.
//! - [`client`] is the interface between [`network`] and the HTTP client.
//! - [`sender`] makes one attempt. It alone has the HTTP client, and connects only to addresses that [`network`] allows at that moment.
//! - [`signature`] makes the secrets and the signed headers. With these a receiver verifies that an event is ours and not a replay.
//! - [`event`] is the body. [`outbox`] sends what is ready and saves the results, within `bounds`.

pub mod address;
mod attempt;
mod bounds;
pub mod client;
mod endpoint;
pub mod event;
pub mod network;
pub mod outbox;
mod release;
pub mod sender;
pub mod signature;
