//! Events for customers' servers: where they may go, how they are sent and what they are signed with. From the inside out:
//!
//! - [`address`] is the table of the networks that no customer's server is in.
//! - [`network`] reads the address of an endpoint and looks its host up, when it is registered and before each attempt.
//!   Every function may use it: it knows of no HTTP client.
//! - [`client`] is what [`network`] may know of whoever makes the attempts.
//! - [`sender`] makes one attempt and says how it ended. It alone has the HTTP client, and connects only to what [`network`]
//!   allows at that very moment.
//! - [`signature`] makes the secrets and the headers by which a receiver knows that an event is ours and not an old one.

pub mod address;
pub mod client;
pub mod network;
pub mod sender;
pub mod signature;
