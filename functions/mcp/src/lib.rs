//! What serves the operations to agents. Written by `cargo generate`.

mod mcp;

pub use mcp::Mcp;
