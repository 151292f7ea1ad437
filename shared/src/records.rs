//! The records: their fields, their rules, their stored form, and their changes of state.
//!
//! [`record!`](crate::record) declares a record once ([`declaration`](crate::table::declaration) says how).

pub mod agency;
pub mod assistant;
pub mod campaign;
pub mod contact;
pub mod contact_point;
pub mod conversation;
pub mod datasource;
pub mod delivery;
pub mod due;
pub mod form;
pub mod intent;
pub mod tag;
pub mod user;
pub mod webhook;
pub mod widget;
