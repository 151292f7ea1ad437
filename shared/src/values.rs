//! The values of which records and requests consist: identifiers, points in time, local time, texts, free-form JSON,
//! secrets and their masks, organisations, limits, constants.

pub mod bytes;
pub mod calendar;
pub mod cause;
pub mod constant;
pub mod hash;
pub mod id;
pub mod json;
pub mod limits;
pub mod mask;
pub mod provider;
pub mod secret;
pub mod tenant;
pub mod text;
pub mod time;
