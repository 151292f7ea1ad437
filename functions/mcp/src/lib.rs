//! What serves the operations to agents. Written by `UPDATE=1 cargo test`.

mod mcp;

pub use mcp::Mcp;
