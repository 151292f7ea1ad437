//! The operations of the record `suppression`. Written by `cargo generate`.

mod create_suppression;
mod import_suppressions;

pub use create_suppression::CreateSuppression;
pub use import_suppressions::ImportSuppressions;
