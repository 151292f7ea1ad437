//! The payment provider of an agency: its API, and the events that it sends.
//!
//! - [`provider`] calls it. [`retired_webhook`] removes the webhooks of deleted agencies there.
//! - [`signature`] checks whether the provider sent an event. [`event`] reads it, and [`receive`] applies it.
//! - [`customer`] has the state of a customer that follows from its events.

pub mod customer;
pub mod event;
pub mod provider;
pub mod receive;
pub mod retired_webhook;
pub mod signature;
