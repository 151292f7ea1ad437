//! `ANY /api/v1/mcp`: the operations as tools of agents, by the Model Context Protocol.

use shared::prelude::tools::*;

pub struct Mcp;

impl ToolServer for Mcp {
    fn document() -> &'static str {
        repository_file!("../../openapi.json")
    }
}
