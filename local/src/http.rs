//! An HTTP request and the answer to it, as they pass the gateway.

use std::collections::BTreeMap;

use shared::table::meter::Cost;

/// An HTTP request, as it reaches the gateway.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Upper case.
    pub method: String,
    /// Percent-encoded.
    pub path: String,
    /// Without the question mark, percent-encoded.
    pub query: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Empty is none.
    pub body: Vec<u8>,
}

/// An HTTP response, as it leaves the gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// JSON.
    pub body: String,
    /// What the answer took of the database.
    pub cost: Cost,
}
