//! `ANY /api/v1/mcp`: the operations as tools of agents, by the Model Context Protocol.

use shared::prelude::tools::*;

pub struct Mcp;

impl ToolServer for Mcp {
    const DOCUMENT: &'static str = include_str!("../../../openapi.json");
}
