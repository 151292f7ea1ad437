//! The call of a tool: a request to the API itself, with the key of the caller. So a tool has exactly the permissions
//! of its caller.

use std::sync::LazyLock;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::redirect::Policy;
use serde_json::value::{RawValue, to_raw_value};
use url::Url;

use crate::input::{Issues, Location, words};
use crate::mcp::message::{Object, object, text};
use crate::mcp::tools::Tool;
use crate::network::tls::client_config;
use crate::request::error::{Error, Result};
use crate::request::idempotency::IdempotencyKey;
use crate::routes;
use crate::values::cause::chain;

/// The time limit of a call. The gateway waits for 29 seconds, and this function for 28.
const PATIENCE: Duration = Duration::from_secs(25);
const CONNECT: Duration = Duration::from_secs(3);

/// The longest address, in bytes. The gateway accepts no more in all headers together.
const LONGEST_ADDRESS: usize = 8192;

/// The most bytes of an answer: Lambda passes no more.
const LARGEST_ANSWER: usize = 6 * 1024 * 1024;

/// The characters that are not encoded in a segment of a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

// The API may have a domain of its own, with a certificate that no root of AWS signs.
static CLIENT: LazyLock<Result<reqwest::Client, String>> = LazyLock::new(|| {
    reqwest::Client::builder()
        .tls_backend_preconfigured(client_config(None).map_err(|error| chain(&error))?)
        .timeout(PATIENCE)
        .connect_timeout(CONNECT)
        // An idle connection may be dead after Lambda has frozen the process.
        .pool_max_idle_per_host(0)
        // The key is for the API alone, so redirects are not followed.
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .user_agent("assistants-mcp/1")
        .build()
        .map_err(|error| chain(&error))
});

/// The arguments of a call, grouped by their place.
#[derive(Default)]
pub struct Arguments<'a> {
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    idempotency_key: Option<String>,
    body: Option<&'a RawValue>,
}

/// The result of a call.
pub struct ToolOutcome {
    /// The API's answer.
    pub body: Box<RawValue>,
    /// Whether it is a failure.
    pub failed: bool,
}

impl ToolOutcome {
    /// The failure `error`, in the form that the API would answer. Information for operators only is logged.
    pub fn failure(error: Error) -> Self {
        if error.status() >= 500 {
            tracing::warn!(%error, "the API could not be called");
        }
        Self { body: to_raw_value(&error.detail()).unwrap_or_default(), failed: true }
    }
}

impl<'a> Arguments<'a> {
    /// The arguments in `given`. The API itself checks everything that only it knows, such as the values that a field
    /// accepts.
    ///
    /// # Errors
    /// All issues.
    pub fn read(tool: &Tool, given: &Object<'a>) -> std::result::Result<Self, Issues> {
        let (mut arguments, mut issues) = (Self::default(), Issues::new());
        for (place, value) in given {
            let at = Location::nowhere().name(place.to_string());
            if !tool.places().is_some_and(|places| places.contains_key(place.as_ref())) {
                issues.push(at.issue(words::EXTRA.0, words::EXTRA.1));
                continue;
            }
            if place == "body" {
                arguments.body = Some(value);
                continue;
            }
            let Some(members) = object(value) else {
                issues.push(at.issue(words::DICT.0, words::DICT.1));
                continue;
            };
            for (name, value) in members {
                let at = at.name(name.to_string());
                if !tool.names(place).is_some_and(|names| names.contains_key(name.as_ref())) {
                    issues.push(at.issue(words::EXTRA.0, words::EXTRA.1));
                    continue;
                }
                match (place.as_ref(), plain(value)) {
                    // An optional argument that is null is left out.
                    (_, Ok(None)) => {}
                    (_, Err(())) => issues.push(at.issue(words::STRING.0, words::STRING.1)),
                    ("path", Ok(Some(value))) => arguments.path.push((name.into_owned(), value)),
                    ("query", Ok(Some(value))) => arguments.query.push((name.into_owned(), value)),
                    (_, Ok(Some(value))) => match IdempotencyKey::parse(&value) {
                        Ok(_) => arguments.idempotency_key = Some(value),
                        Err(issue) => issues.push(issue),
                    },
                }
            }
        }
        let missing = |name: &&str| !arguments.path.iter().any(|(given, value)| given == name && !value.is_empty());
        let missing = tool.route.parameters().filter(missing).map(|name| Location::path().name(name));
        let missing: Vec<_> = missing.filter(|at| !issues.iter().any(|issue| issue.loc == *at)).collect();
        issues.extend(missing.into_iter().map(|at| at.issue(words::MISSING.0, words::MISSING.1)));
        if issues.is_empty() { Ok(arguments) } else { Err(issues) }
    }

    /// The address of the operation with these arguments, in the API at `base_url`.
    fn address(&self, tool: &Tool, base_url: &str) -> Result<Url> {
        let fill = |path: String, (name, value): &(String, String)| {
            path.replace(&format!("{{{name}}}"), &utf8_percent_encode(value, SEGMENT).to_string())
        };
        let path = self.path.iter().fold(tool.route.path.to_owned(), fill);
        let address = |path: &str| {
            Url::parse(&format!("{base_url}{path}"))
                .map_err(|error| Error::Internal(format!("the API's address: {error}")))
        };
        let (mut url, base) = (address(&path)?, address("")?);
        // A value such as `..` or `list` may lead to another operation than the one of the tool.
        let own = url.path().strip_prefix(base.path().trim_end_matches('/'));
        if own.and_then(|path| routes::find(tool.route.method, path)) != Some(tool.route) {
            return Err(Error::NotFound(Location::path()));
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        if url.as_str().len() > LONGEST_ADDRESS {
            let msg = format!("Path and query together should have at most {LONGEST_ADDRESS} bytes");
            return Err(Error::invalid(Location::query().issue(words::TOO_LONG, msg)));
        }
        Ok(url)
    }
}

/// A value of the path, the query or a header as text; `None` for null.
fn plain(value: &RawValue) -> std::result::Result<Option<String>, ()> {
    match value.get().as_bytes().first() {
        Some(b'"') => text(value).map(Some).ok_or(()),
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') | None => Err(()),
        // A number or a boolean.
        _ => Ok(Some(value.get().to_owned())),
    }
}

/// Sends the call to the API at `base_url`.
///
/// # Errors
/// The reason why it was not sent, or why there is no answer.
pub async fn send(tool: &Tool, arguments: &Arguments<'_>, base_url: &str, key: &str) -> Result<ToolOutcome> {
    let client = CLIENT.as_ref().map_err(|error| Error::Internal(error.clone()))?;
    let url = arguments.address(tool, base_url)?;
    let method = tool.route.method.parse().map_err(|_| Error::Internal("a method that is none".into()))?;
    let mut request = client.request(method, url).bearer_auth(key);
    if let Some(key) = &arguments.idempotency_key {
        request = request.header("idempotency-key", key);
    }
    if let Some(body) = arguments.body {
        request = request.header("content-type", "application/json").body(body.get().to_owned());
    }
    let unavailable = |error: reqwest::Error| Error::Unavailable(chain(&error.without_url()));
    let mut response = request.send().await.map_err(unavailable)?;
    let (status, mut body) = (response.status(), Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
        if body.len() + chunk.len() > LARGEST_ANSWER {
            return Err(Error::Unavailable("an answer that is larger than those of the API".into()));
        }
        body.extend_from_slice(&chunk);
    }
    let no_json = || Error::Unavailable(format!("an answer {status} that is not JSON"));
    let body = String::from_utf8(body).ok().and_then(|body| RawValue::from_string(body).ok());
    Ok(ToolOutcome { body: body.ok_or_else(no_json)?, failed: !status.is_success() })
}
