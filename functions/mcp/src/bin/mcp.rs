//! Runs `mcp` under Lambda. Written by `cargo generate`.

use shared::mcp::Server;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run_server(Server::of::<mcp::Mcp>(&routes::MCP))
}
