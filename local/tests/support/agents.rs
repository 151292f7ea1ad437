//! Makes requests of agents to the MCP server.

use local::http::Call;
use serde_json::{Value, json};
use shared::mcp::message::VERSIONS;
use shared::routes::MCP;

/// The revision without a handshake.
pub const STATELESS: &str = VERSIONS[0];

/// The message of a request in the revision without a handshake.
pub fn message(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// The request of `revision`, with its headers.
pub fn request(revision: &str, key: &str, method: &str, params: Value) -> Call {
    let mut headers = vec![("authorization", format!("Bearer {key}")), ("mcp-protocol-version", revision.to_owned())];
    if revision == STATELESS {
        headers.push(("mcp-method", method.to_owned()));
        headers.extend(params["name"].as_str().map(|name| ("mcp-name", name.to_owned())));
    }
    let body = if revision == STATELESS {
        message(method, params)
    } else {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    };
    sent(&headers.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>(), body.to_string())
}

/// A request with these headers.
pub fn sent(headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Call {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Call { method: "POST".into(), path: MCP.path.into(), headers, body: body.into(), ..Call::default() }
}
