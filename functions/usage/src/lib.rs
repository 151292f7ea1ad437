//! The operations of the record `usage`. Written by `cargo generate`.

mod read_usage;
mod report_usage;

pub use read_usage::ReadUsage;
pub use report_usage::ReportUsage;
