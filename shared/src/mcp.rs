//! The operations as tools of agents, by the Model Context Protocol: one endpoint, without sessions and without
//! streams.
//!
//! - [`message`] is the protocol: the required form of a message in each of its revisions, and the form of the
//!   answers.
//! - [`tools`] makes the tools from the document of the API.
//! - [`call`] turns a call of a tool into a request to the API, with the key of the caller.

pub mod call;
pub mod message;
pub mod tools;

use std::time::Instant;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::input::Location;
use crate::mcp::call::{Arguments, ToolOutcome};
use crate::mcp::message::{Revision, RpcError, RpcMessage, VERSIONS, member, server_info};
use crate::mcp::tools::Tool;
use crate::request::authentication::{authenticate, header_key};
use crate::request::caller::{Caller, Identified};
use crate::request::context::Service;
use crate::request::error::{Error, Result};
use crate::request::http::{HttpRequest, HttpResponse};
use crate::request::idempotency::caught;
use crate::request::pipeline::response;
use crate::request::response::Response;
use crate::request::route::Route;
use crate::table::meter::Meter;
use crate::table::page;

/// The instructions for an agent about all tools together.
const INSTRUCTIONS: &str = "Each tool is an operation of the API. Its arguments are grouped by their place in the request: `path`, `query`, \
    `header`, `body`. A tool that fails answers the list `detail`, whose `loc` is the place of the argument that is wrong, such as \
    [\"body\", \"name\"]. A list answers one page; `next_page` is the number of the next one.";

/// How long a client may use the list of tools without asking again, in milliseconds: a deployment may change the list.
const KEPT: u32 = 300_000;

/// The server of the operations as tools.
pub trait ToolServer {
    /// The document of the API from which the tools are made.
    fn document() -> &'static str;
}

/// A server of tools without its type, with its route.
#[derive(Debug, Clone, Copy)]
pub struct Server {
    /// Its line in the route table.
    pub route: &'static Route,
    document: fn() -> &'static str,
}

/// One request to the server: its caller, and its progress.
struct Exchange<'a> {
    caller: &'a Caller,
    key: &'a str,
    base_url: &'a str,
    document: &'static str,
    /// The tool that is called, for the log.
    tool: Option<&'static str>,
    /// Whether the call was sent to the API.
    was_sent: bool,
}

impl Server {
    /// `S` without its type, with its route.
    pub const fn of<S: ToolServer>(route: &'static Route) -> Self {
        Self { route, document: S::document }
    }

    /// Answers `request` and logs one line about it. It never fails.
    pub async fn answer(&self, service: &Service, request: &HttpRequest) -> HttpResponse {
        let (started, meter, by) = (Instant::now(), Meter::default(), Identified::default());
        let answered = caught(self.attempt(service, request, &meter, &by)).await;
        let (tool, answer) = answered.unwrap_or_else(|error| (None, Response::from(error)));
        let (status, cause, cost) = (answer.status, answer.cause.clone(), meter.cost());
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    request_id = request.request_id,
                    operation = self.route.name,
                    tool,
                    status,
                    cause,
                    key_id = by.key().map(|key| key.to_string()),
                    org_id = by.organisation().map(|organisation| organisation.to_string()),
                    milliseconds = started.elapsed().as_secs_f64() * 1000.0,
                    dynamodb_calls = cost.calls,
                    "request"
                )
            };
        }
        if status >= 500 {
            line!(error);
        } else {
            line!(info);
        }
        response(service, answer, &request.request_id, cost)
    }

    /// The answer, and the tool that was called.
    async fn attempt(
        &self,
        service: &Service,
        request: &HttpRequest,
        meter: &Meter,
        by: &Identified,
    ) -> Result<(Option<&'static str>, Response)> {
        if request.method != "POST" {
            return Err(Error::MethodNotAllowed);
        }
        let base_url = service.config.api_base_url.as_deref().unwrap_or(&request.base_url);
        let pages = service.config.cors_allow_origin.as_deref();
        if request.header("origin").is_some_and(|origin| !may_call(origin, pages, base_url)) {
            return Err(Error::Forbidden(
                Location::header("origin"),
                "Pages of this origin may not call the API".into(),
            ));
        }
        let (store, now) = (service.store.metered(meter.clone()), service.clock.now());
        let key = header_key(request)?;
        let caller = authenticate(service, &store, key, now).await?;
        by.a_key(&caller);
        let mut exchange =
            Exchange { caller: &caller, key, base_url, document: (self.document)(), tool: None, was_sent: false };
        let answer = self.answered(request, &mut exchange).await;
        // A call of a tool is a request to the API, which counts it. Every other message is counted here; it has had no
        // effect.
        if !exchange.was_sent {
            service.limiter.admit(&store, &caller, now).await?;
        }
        Ok((exchange.tool, answer?.limited(caller.limits)))
    }

    /// The answer to a known caller.
    async fn answered(&self, request: &HttpRequest, exchange: &mut Exchange<'_>) -> Result<Response> {
        let body = request.body.as_deref().unwrap_or_default();
        if body.len() > self.route.body_limit {
            return Err(Error::TooLarge(self.route.body_limit));
        }
        Ok(match RpcMessage::read(body) {
            Err(refusal) => refusal.answer(None, None),
            Ok(RpcMessage { id: None, .. }) => Response::new(202, String::new()),
            Ok(message) => match message.revision(request) {
                Err(refusal) => refusal.answer(message.id, None),
                Ok(revision) => match Box::pin(exchange.reply(&message, revision)).await? {
                    Ok(reply) => Response::new(200, reply),
                    Err(refusal) => refusal.answer(message.id, Some(revision)),
                },
            },
        })
    }
}

impl Exchange<'_> {
    /// The reply to `message`.
    async fn reply(&mut self, message: &RpcMessage<'_>, revision: Revision) -> Result<Result<String, RpcError>> {
        let about = json!({"capabilities": {"tools": {}}, "instructions": INSTRUCTIONS});
        let reply = match (message.method.as_str(), revision) {
            ("server/discover", Revision::Stateless) => {
                let mut discovered = about;
                discovered["supportedVersions"] = json!(VERSIONS);
                message.reply(revision, &discovered, Some(KEPT))
            }
            ("initialize", Revision::Handshake) => {
                let mut begun = about;
                begun["protocolVersion"] = json!(revision.name());
                begun["serverInfo"] = server_info();
                message.reply(revision, &begun, None)
            }
            ("ping", Revision::Handshake) => message.reply(revision, &json!({}), None),
            ("tools/list", _) => {
                if member(&message.params, "cursor").is_some() {
                    return Ok(Err(RpcError::Parameters("There is one page of tools: no cursor leads to another one")));
                }
                let tools = tools::list(self.document)?;
                let allowed = |tool: &&Tool| self.caller.may_call(tool.route);
                let tools: Vec<_> = tools.iter().filter(allowed).map(|tool| &tool.declared).collect();
                message.reply(revision, &json!({"tools": tools}), Some(KEPT))
            }
            ("tools/call", _) => return self.call(message, revision).await,
            (method, _) => return Ok(Err(RpcError::UnknownMethod(method.to_owned()))),
        };
        Ok(Ok(reply))
    }

    /// Calls the tool that `message` names.
    async fn call(&mut self, message: &RpcMessage<'_>, revision: Revision) -> Result<Result<String, RpcError>> {
        let name = match message.tool() {
            Ok(name) => name,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let tools = tools::list(self.document)?;
        let Some(tool) = tools.iter().find(|tool| tool.route.name == name) else {
            return Ok(Err(RpcError::UnknownTool(name)));
        };
        self.tool = Some(tool.route.name);
        let arguments = match message.arguments() {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let called = match Arguments::read(tool, &arguments) {
            Ok(arguments) => {
                self.was_sent = true;
                call::send(tool, &arguments, self.base_url, self.key).await
            }
            Err(issues) => Err(Error::Invalid(issues)),
        };
        let reply = |outcome: &ToolOutcome| message.reply(revision, &CallResult::of(outcome), None);
        let outcome = called.unwrap_or_else(ToolOutcome::failure);
        let text = reply(&outcome);
        if page::fits(&text) {
            return Ok(Ok(text));
        }
        let at = Location::nowhere();
        let msg = "The answer is too large for a tool: ask for a smaller page, or call the API itself";
        Ok(Ok(reply(&ToolOutcome::failure(Error::invalid(at.issue("answer_too_large", msg))))))
    }
}

/// Whether pages of `origin` may call the server: pages of the API's own address, and pages that CORS allows.
fn may_call(origin: &str, pages: Option<&str>, base_url: &str) -> bool {
    let own = base_url.strip_prefix(origin).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    own || pages.is_some_and(|pages| pages == "*" || pages == origin)
}

/// The answer of a tool: the JSON of the API, as text and as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    content: [Content<'a>; 1],
    structured_content: &'a RawValue,
    is_error: bool,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

impl<'a> CallResult<'a> {
    fn of(outcome: &'a ToolOutcome) -> Self {
        let content = [Content { kind: "text", text: outcome.body.get() }];
        Self { content, structured_content: &outcome.body, is_error: outcome.failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_api_or_an_allowed_origin_may_call() {
        let base = "https://api.example.com/prod";
        for (origin, pages, may) in [
            ("https://api.example.com", None, true),
            ("https://api.example.co", None, false),
            ("https://api.example.com:444", None, false),
            ("https://other.example", None, false),
            ("https://other.example", Some("https://other.example"), true),
            ("https://third.example", Some("https://other.example"), false),
            ("https://third.example", Some("*"), true),
            ("null", None, false),
        ] {
            assert_eq!(may_call(origin, pages, base), may, "{origin} {pages:?}");
        }
    }
}
