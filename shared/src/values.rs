//! The values that records are made of: identifiers, points in time, local time, free-form JSON, secrets, and the schemas of all of them.

pub mod bytes;
pub mod calendar;
pub mod contact_point;
pub mod id;
pub mod json;
pub mod schema;
pub mod secret;
pub mod time;
