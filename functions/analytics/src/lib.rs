//! The operations of the record `analytics`. Written by `cargo generate`.

mod read_analytics;

pub use read_analytics::ReadAnalytics;
