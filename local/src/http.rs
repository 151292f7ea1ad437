//! An HTTP request and its answer at the gateway.

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
    /// An empty body counts as none.
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
    /// The cost of the answer in the database.
    pub cost: Cost,
}
