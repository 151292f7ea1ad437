//! The operations of the record `audit`. Written by `cargo generate`.

mod list_audit;

pub use list_audit::ListAudit;
