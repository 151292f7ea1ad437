//! The operations of the record `export`. Written by `cargo generate`.

mod create_export;
mod list_exports;
mod read_export;

pub use create_export::CreateExport;
pub use list_exports::ListExports;
pub use read_export::ReadExport;
