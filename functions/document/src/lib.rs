//! What anybody may read. Written by `UPDATE=1 cargo test`.

mod read_docs;
mod read_openapi;

pub use read_docs::ReadDocs;
pub use read_openapi::ReadOpenapi;
