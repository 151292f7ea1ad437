//! Reads both event formats of API Gateway as one request, and writes the response that both accept.
//!
//! `lambda_http` reads the events. Its conversion to an `http::Request` is not used: it panics on a path that is no
//! valid URI, and API Gateway passes decoded paths.

use lambda_http::http::HeaderMap;
use lambda_http::request::LambdaRequest;
use serde::Serialize;

use crate::table::meter::Cost;

/// The headers of every answer. A document replaces the last one, because copies of it may be kept.
///
/// For a year a browser calls the host by TLS only. `includeSubDomains` is left out: a domain of the operator's own may
/// have subdomains that this service knows nothing about.
pub const ALWAYS: [(&str, &str); 3] = [
    ("strict-transport-security", "max-age=31536000"),
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
];

/// The parts of an HTTP request that an operation may read.
#[derive(Default)]
pub struct HttpRequest {
    /// Upper case.
    pub method: String,
    /// Without the stage and without the query.
    pub path: String,
    /// Decoded, in the order of the event.
    pub query: Vec<(String, String)>,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// The `Idempotency-Key` header. Bytes that are not text are replaced by a character that no key has.
    pub idempotency_key: Option<String>,
    /// The `If-None-Match` header.
    pub if_none_match: Option<String>,
    /// All headers, for code that needs more of them than an operation does.
    pub headers: HeaderMap,
    /// The body as sent; `None` if there was none.
    pub body: Option<Vec<u8>>,
    /// API Gateway's id of the request, which it also puts into its answer.
    pub request_id: String,
    /// The address of this API without `/api/v1`, from the gateway's own fields: a caller cannot forge it.
    pub base_url: String,
}

/// The response that the gateway sends.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpResponse {
    /// HTTP status.
    pub status_code: u16,
    /// Lower-case names.
    pub headers: std::collections::BTreeMap<&'static str, String>,
    /// JSON.
    pub body: String,
    /// Always false: the body is text.
    pub is_base64_encoded: bool,
    /// What the answer cost in the database; it is not sent.
    #[serde(skip)]
    pub cost: Cost,
}

// The query and a header contain the key, and the body may contain other secrets.
impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, path, request_id, .. } = self;
        write!(formatter, "HttpRequest({method} {path} {request_id})")
    }
}

impl HttpRequest {
    /// The request in `event`. `fallback_id` is used where the event has no request id.
    pub fn from_event(event: LambdaRequest, fallback_id: &str) -> Self {
        match event {
            LambdaRequest::ApiGatewayV1(event) => {
                let context = event.request_context;
                let (path, resource) = (event.path.unwrap_or_default(), event.resource.unwrap_or_default());
                // The multi-value map contains the single-value one, where the event has both.
                let query = if event.multi_value_query_string_parameters.is_empty() {
                    event.query_string_parameters
                } else {
                    event.multi_value_query_string_parameters
                };
                let headers = if event.headers.is_empty() { event.multi_value_headers } else { event.headers };
                Self {
                    method: event.http_method.as_str().to_owned(),
                    base_url: base_url(context.domain_name.as_deref(), context.path.as_deref(), &resource),
                    path: split(&path, &resource).1.to_owned(),
                    query: query.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                    authorization: text_of(&headers, "authorization"),
                    if_none_match: text_of(&headers, "if-none-match"),
                    idempotency_key: idempotency_key(&headers),
                    headers,
                    body: event.body.map(|text| bytes(event.is_base64_encoded, text)),
                    request_id: context.request_id.unwrap_or_else(|| fallback_id.to_owned()),
                }
            }
            LambdaRequest::ApiGatewayV2(event) => {
                let context = event.request_context;
                let path = event.raw_path.unwrap_or_default();
                // Method and path, as in `DELETE /api/v1/tag/{tag_id}`.
                let route = event.route_key.unwrap_or_default();
                let resource = route.split_once(' ').map(|(_, path)| path).unwrap_or_default();
                // The decoded map of this format joins repeated values with commas, so the raw string is read.
                let query = match event.raw_query_string.as_deref().map(str::parse) {
                    Some(Ok(query)) => query,
                    _ => event.query_string_parameters,
                };
                Self {
                    method: context.http.method.as_str().to_owned(),
                    base_url: base_url(context.domain_name.as_deref(), context.http.path.as_deref(), resource),
                    path: split(&path, resource).1.to_owned(),
                    query: query.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                    authorization: text_of(&event.headers, "authorization"),
                    if_none_match: text_of(&event.headers, "if-none-match"),
                    idempotency_key: idempotency_key(&event.headers),
                    headers: event.headers,
                    body: event.body.map(|text| bytes(event.is_base64_encoded, text)),
                    request_id: context.request_id.unwrap_or_else(|| fallback_id.to_owned()),
                }
            }
            // The other formats are switched off by feature; the enum cannot express that.
            _ => Self { request_id: fallback_id.to_owned(), ..Self::default() },
        }
    }

    /// The last value of the query parameter `name`.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// The header `name`, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// A value that is no text counts as malformed rather than absent.
fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    headers.get("idempotency-key").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn bytes(is_base64: bool, text: String) -> Vec<u8> {
    use base64::Engine as _;
    if !is_base64 {
        return text.into_bytes();
    }
    // The gateway never sends invalid base64. If it did, the text would fail as JSON, with a location.
    base64::engine::general_purpose::STANDARD.decode(&text).unwrap_or_else(|_| text.into_bytes())
}

/// The address of the API: the domain, and the part of the gateway's path before the API's own path.
fn base_url(domain: Option<&str>, full_path: Option<&str>, resource: &str) -> String {
    let prefix = full_path.map(|path| split(path, resource).0).unwrap_or_default();
    format!("https://{}{prefix}", domain.unwrap_or("localhost"))
}

/// Divides `path` into the stage or the base path of a custom domain, and the path of the API, which has as many
/// segments as the gateway's `resource`.
fn split<'a>(path: &'a str, resource: &str) -> (&'a str, &'a str) {
    let segments = resource.trim_end_matches('/').matches('/').count();
    let slashes = path.strip_suffix('/').unwrap_or(path).rmatch_indices('/');
    let first = slashes.take(segments).last().map_or(0, |(at, _)| at);
    path.split_at(first)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn keys(event: &Value) -> Option<String> {
        let event: LambdaRequest = serde_json::from_str(&event.to_string()).unwrap();
        let request = HttpRequest::from_event(event, "");
        assert_eq!(request.path, "/x", "the event was read wrongly");
        request.idempotency_key
    }

    fn v1(headers: &Value, several: &Value) -> Value {
        json!({
            "httpMethod": "POST",
            "path": "/x",
            "headers": headers,
            "multiValueHeaders": several,
            "requestContext": {"httpMethod": "POST", "requestId": "r"},
        })
    }

    fn v2(headers: &Value) -> Value {
        json!({
            "version": "2.0",
            "rawPath": "/x",
            "headers": headers,
            "requestContext": {"http": {"method": "POST", "path": "/x"}, "requestId": "r"},
        })
    }

    #[test]
    fn stage_and_base_path_are_split_from_the_path() {
        for (full, prefix, path) in [
            ("/api/v1/tag/a", "", "/api/v1/tag/a"),
            ("/prod/api/v1/tag/a", "/prod", "/api/v1/tag/a"),
            ("/base/path/api/v1/tag/a/", "/base/path", "/api/v1/tag/a/"),
            ("/api/v1/api/v1/tag/a", "/api/v1", "/api/v1/tag/a"),
            ("/api/v1/tag/", "", "/api/v1/tag/"),
            ("/", "", "/"),
            ("", "", ""),
        ] {
            assert_eq!(split(full, "/api/v1/tag/{tag_id}"), (prefix, path), "{full}");
            // The path of an event without a resource is not split.
            assert_eq!(split(full, ""), ("", full), "{full}");
        }
    }

    #[test]
    fn the_base_url_includes_the_base_path_of_a_domain() {
        let v1 = json!({
            "resource": "/x",
            "httpMethod": "GET",
            "path": "/base/x",
            "requestContext": {"httpMethod": "GET", "path": "/base/x", "domainName": "api.example.com"},
        });
        let v2 = json!({
            "version": "2.0",
            "routeKey": "GET /x",
            "rawPath": "/base/x",
            "requestContext": {"http": {"method": "GET", "path": "/base/x"}, "domainName": "api.example.com"},
        });
        for event in [v1, v2] {
            let request = HttpRequest::from_event(serde_json::from_str(&event.to_string()).unwrap(), "");
            assert_eq!((&*request.path, &*request.base_url), ("/x", "https://api.example.com/base"));
        }
    }

    #[test]
    fn an_idempotency_key_is_found_in_both_event_formats() {
        for name in ["idempotency-key", "Idempotency-Key", "IDEMPOTENCY-KEY"] {
            for (value, wanted) in
                [("a", "a"), ("", ""), ("a b", "a b"), ("\u{e9}", "\u{e9}"), ("a\u{fffd}", "a\u{fffd}")]
            {
                let wanted = Some(wanted.to_owned());
                assert_eq!(keys(&v1(&json!({name: value}), &json!(null))), wanted, "{name} {value}");
                assert_eq!(keys(&v1(&json!(null), &json!({name: [value]}))), wanted, "{name} {value}");
                assert_eq!(keys(&v2(&json!({name: value}))), wanted, "{name} {value}");
            }
        }
        assert_eq!(keys(&v1(&json!({"accept": "*/*"}), &json!(null))), None);
        assert_eq!(keys(&v2(&json!({"accept": "*/*"}))), None);
    }

    #[test]
    fn debug_does_not_show_the_headers_of_a_request() {
        let request = HttpRequest { idempotency_key: Some("hidden".into()), ..HttpRequest::default() };
        assert!(!format!("{request:?}").contains("hidden"));
    }
}
