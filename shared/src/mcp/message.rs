//! The messages of the Model Context Protocol: JSON-RPC over HTTP, in two revisions.
//!
//! `2026-07-28` has no sessions: each request names its revision in `params._meta`, and headers repeat the values that
//! a gateway may need. `2025-11-25` begins with a handshake; its result comes back in a header, so that it needs no
//! session either.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::request::http::HttpRequest;
use crate::request::response::Response;
use crate::routes;

/// The revisions that are served, the newest first.
pub const VERSIONS: [&str; 2] = [Revision::Stateless.name(), Revision::Handshake.name()];

/// The headers that repeat values of the message.
const VERSION_HEADER: &str = "MCP-Protocol-Version";
const METHOD_HEADER: &str = "Mcp-Method";
const NAME_HEADER: &str = "Mcp-Name";

/// The names in `params._meta`.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The longest id of a request, in bytes: the answer contains it.
const LONGEST_ID: usize = 256;

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// 2026-07-28: each request is independent.
    Stateless,
    /// 2025-11-25: the last one with a handshake.
    Handshake,
}

impl Revision {
    /// Its name in the protocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stateless => "2026-07-28",
            Self::Handshake => "2025-11-25",
        }
    }
}

/// Why a message is refused.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The body is no JSON.
    #[error("The body is not JSON: {0}")]
    Syntax(serde_json::Error),
    /// The JSON is no message.
    #[error("{0}")]
    NoMessage(&'static str),
    /// There is no such method in the revision.
    #[error("There is no method {0:.128}")]
    UnknownMethod(String),
    /// There is no such tool.
    #[error("There is no tool {0:.128}")]
    UnknownTool(String),
    /// The parameters do not fit the method.
    #[error("{0}")]
    Parameters(&'static str),
    /// The metadata that every request must have is missing.
    #[error("params._meta needs {0}")]
    Metadata(&'static str),
    /// A header differs from the message.
    #[error("The header {0} must be there, and say the same as the message")]
    Header(&'static str),
    /// The revision is not served.
    #[error("Unsupported protocol version")]
    Version(String),
}

/// A message with the members that matter; the values of `params` are still unparsed.
#[derive(Debug)]
pub struct RpcMessage<'a> {
    /// As the client wrote it; a notification has none.
    pub id: Option<&'a RawValue>,
    /// The name of the method.
    pub method: String,
    /// Its parameters.
    pub params: Object<'a>,
}

/// The members of a JSON object, still unparsed.
pub type Object<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

impl RpcError {
    const fn code(&self) -> i32 {
        match self {
            Self::Syntax(_) => -32700,
            Self::NoMessage(_) => -32600,
            Self::UnknownMethod(_) => -32601,
            Self::UnknownTool(_) | Self::Parameters(_) | Self::Metadata(_) => -32602,
            Self::Header(_) => -32020,
            Self::Version(_) => -32022,
        }
    }

    const fn status(&self, revision: Option<Revision>) -> u16 {
        match (self, revision) {
            // For a client with a handshake 404 would mean that its session has ended.
            (Self::UnknownMethod(_), Some(Revision::Stateless)) => 404,
            (Self::UnknownMethod(_) | Self::UnknownTool(_) | Self::Parameters(_), Some(_)) => 200,
            _ => 400,
        }
    }

    /// The answer to the request `id`.
    pub fn answer(&self, id: Option<&RawValue>, revision: Option<Revision>) -> Response {
        #[derive(Serialize)]
        struct ErrorMessage<'a> {
            jsonrpc: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a RawValue>,
            error: Value,
        }
        let mut error = json!({"code": self.code(), "message": self.to_string()});
        if let Self::Version(requested) = self {
            error["data"] = json!({"supported": VERSIONS, "requested": requested});
        }
        Response {
            cause: Some(format!("JSON-RPC error {}", self.code())),
            ..Response::new(self.status(revision), printed(&ErrorMessage { jsonrpc: "2.0", id, error }))
        }
    }
}

impl<'a> RpcMessage<'a> {
    /// The message in `body`.
    ///
    /// # Errors
    /// [`RpcError::Syntax`] or [`RpcError::NoMessage`].
    pub fn read(body: &'a [u8]) -> Result<Self, RpcError> {
        let json: &RawValue = serde_json::from_slice(body).map_err(RpcError::Syntax)?;
        let wrong = |what| move || RpcError::NoMessage(what);
        let mut members = object(json).ok_or_else(wrong("The body must be one JSON object: batches are not served"))?;
        let version = member(&members, "jsonrpc").and_then(text);
        if version.as_deref() != Some("2.0") {
            return Err(RpcError::NoMessage("jsonrpc must be 2.0"));
        }
        let id = members.remove("id");
        if !id.is_none_or(is_id) {
            return Err(RpcError::NoMessage("id must be a text or an integer, of at most 256 bytes"));
        }
        let method = member(&members, "method").and_then(text);
        let method = method.ok_or_else(wrong("method must be a text"))?;
        let params = match member(&members, "params") {
            None => Object::new(),
            Some(params) => object(params).ok_or_else(wrong("params must be an object"))?,
        };
        Ok(Self { id, method, params })
    }

    /// The revision that it follows, if the message and the headers of `request` fit that revision.
    ///
    /// # Errors
    /// [`RpcError::Header`], [`RpcError::Version`] or [`RpcError::Metadata`].
    pub fn revision(&self, request: &HttpRequest) -> Result<Revision, RpcError> {
        let meta = member(&self.params, "_meta").and_then(object).unwrap_or_default();
        let header = request.header(VERSION_HEADER);
        let version = match member(&meta, META_VERSION) {
            Some(version) => {
                let version = text(version).ok_or(RpcError::Metadata(META_VERSION))?;
                if header != Some(&version) {
                    return Err(RpcError::Header(VERSION_HEADER));
                }
                version
            }
            // The version is still being negotiated.
            None if self.method == "initialize" => return Ok(Revision::Handshake),
            None => header.ok_or(RpcError::Header(VERSION_HEADER))?.to_owned(),
        };
        let known = [Revision::Stateless, Revision::Handshake].into_iter().find(|revision| revision.name() == version);
        let revision = known.ok_or(RpcError::Version(version))?;
        if revision == Revision::Handshake {
            return Ok(revision);
        }
        if !meta.contains_key(META_VERSION) {
            return Err(RpcError::Metadata(META_VERSION));
        }
        if member(&meta, META_CAPABILITIES).and_then(object).is_none() {
            return Err(RpcError::Metadata(META_CAPABILITIES));
        }
        if request.header(METHOD_HEADER) != Some(&self.method) {
            return Err(RpcError::Header(METHOD_HEADER));
        }
        if self.method == "tools/call" && request.header(NAME_HEADER).and_then(decoded) != self.tool().ok() {
            return Err(RpcError::Header(NAME_HEADER));
        }
        Ok(revision)
    }

    /// The name of the tool that is called.
    ///
    /// # Errors
    /// [`RpcError::Parameters`].
    pub fn tool(&self) -> Result<String, RpcError> {
        let name = member(&self.params, "name").and_then(text);
        name.ok_or(RpcError::Parameters("params.name must be the name of a tool"))
    }

    /// The arguments of the tool that is called.
    ///
    /// # Errors
    /// [`RpcError::Parameters`].
    pub fn arguments(&self) -> Result<Object<'a>, RpcError> {
        let Some(arguments) = member(&self.params, "arguments") else { return Ok(Object::new()) };
        object(arguments).ok_or(RpcError::Parameters("params.arguments must be an object"))
    }

    /// The reply with `result`, which a client may keep for `kept` milliseconds.
    pub fn reply(&self, revision: Revision, result: &impl Serialize, kept: Option<u32>) -> String {
        #[derive(Serialize)]
        struct ResultMessage<'a, R> {
            jsonrpc: &'static str,
            id: Option<&'a RawValue>,
            result: Complete<'a, R>,
        }
        #[derive(Serialize)]
        struct Complete<'a, R> {
            #[serde(flatten)]
            result: &'a R,
            #[serde(flatten)]
            stateless: Option<Stateless>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Stateless {
            result_type: &'static str,
            #[serde(flatten)]
            kept: Option<Kept>,
            #[serde(rename = "_meta")]
            meta: Value,
        }
        // Another key may see other tools.
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Kept {
            ttl_ms: u32,
            cache_scope: &'static str,
        }
        let stateless = (revision == Revision::Stateless).then(|| Stateless {
            result_type: "complete",
            kept: kept.map(|ttl_ms| Kept { ttl_ms, cache_scope: "private" }),
            meta: json!({META_SERVER: server_info()}),
        });
        printed(&ResultMessage { jsonrpc: "2.0", id: self.id, result: Complete { result, stateless } })
    }
}

/// The server's description of itself.
pub fn server_info() -> Value {
    json!({"name": "assistants", "title": routes::TITLE, "version": env!("CARGO_PKG_VERSION")})
}

/// The member `name`. Null counts as absent.
pub fn member<'a>(object: &Object<'a>, name: &str) -> Option<&'a RawValue> {
    object.get(name).copied().filter(|value| value.get() != "null")
}

/// The members of an object.
pub fn object(json: &RawValue) -> Option<Object<'_>> {
    serde_json::from_str(json.get()).ok()
}

/// The text in a JSON string.
pub fn text(json: &RawValue) -> Option<String> {
    serde_json::from_str(json.get()).ok()
}

fn is_id(id: &RawValue) -> bool {
    let id = id.get();
    let integer = id.strip_prefix('-').unwrap_or(id).bytes().all(|byte| byte.is_ascii_digit());
    id.len() <= LONGEST_ID && (integer || id.starts_with('"'))
}

/// The value of a header. A value with characters that a header cannot have is in base64.
fn decoded(header: &str) -> Option<String> {
    match header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(header.to_owned()),
    }
}

/// Prints a message. This cannot fail: no message has maps with keys of another type.
fn printed(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
