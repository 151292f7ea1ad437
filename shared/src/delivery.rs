//! Events on their way to customers' servers. From the inside out:
//!
//! - [`address`] is the table of networks that no customer's server is in.
//! - [`network`] reads the address of an endpoint and looks its host up, when it is registered and before each attempt.
//!   Every function may use it: it knows of no HTTP client.
//! - [`client`] is what [`network`] may know of whoever makes the attempts.
//! - [`sender`] makes one attempt and says how it ended. It alone has the HTTP client, and connects only to what [`network`]
//!   allows at that very moment.
//! - [`signature`] makes the secrets and the headers by which a receiver knows that an event is ours and not an old one.
//! - [`event`] is the body that is sent; [`outbox`] sends what is ready and keeps what came of it.

pub mod address;
mod attempt;
pub mod client;
mod endpoint;
pub mod event;
pub mod network;
pub mod outbox;
mod release;
pub mod sender;
pub mod signature;
