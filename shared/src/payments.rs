//! The payment provider of an agency: its API, and the events that it sends.
//!
//! - [`provider`] calls it. [`retired_webhook`] removes the webhooks of deleted agencies there.
//! - [`signature`] says whether an event is the provider's. [`event`] is what is read of one, [`receive`] what follows from it.
//! - [`customer`] is what the events have told of a customer.

pub mod customer;
pub mod event;
pub mod provider;
pub mod receive;
pub mod retired_webhook;
pub mod signature;
