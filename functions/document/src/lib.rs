//! What anybody may read. Written by `cargo generate`.

mod read_docs;
mod read_openapi;

pub use read_docs::ReadDocs;
pub use read_openapi::ReadOpenapi;
