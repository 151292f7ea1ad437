//! One request: its calls of the database as a waterfall, what came of it, and copies of it to send again.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::routes;
use shared::values::mask::{has_secret_form, is_secret_name};

use super::layout::{Head, linked};
use super::markup::{
    Tone, badge, card, code_block, duration, facts, member, pretty, rows, short_id, state, status, time_of,
};
use super::pages::{self, DELIVERIES, EVENTS};
use super::requests::{address, location};
use super::table::masked;
use super::{Asked, Console, ROWS};
use crate::api::ApiRequest;
use crate::calls::DatabaseCall;
use crate::http::{Answer, Call};
use crate::journal::Entry;

/// The width of the waterfall.
const WIDTH: f64 = 1000.0;

/// The fields of the form "Edit and send".
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Edited {
    query: String,
    body: String,
}

type Refused = (StatusCode, Json<Value>);

impl Console {
    async fn request(&self, entry: &Entry) -> Markup {
        self.learn_names().await;
        let calls: Vec<_> = entry.calls.iter().map(|call| call_row(entry, call)).collect();
        let headings = ["Call", "When", "#Took", "#Units", "Items"];
        html! {
            section.card { (self.facts(entry)) (copies(entry)) }
            @if !entry.issues.is_empty() { (card("Issues", &issues(entry))) }
            section.card {
                h2 { "Calls of the database" }
                (rows("calls", &headings, &calls, "It called the database not once."))
            }
            div.cards {
                (card("What came of it", &self.consequences(entry).await))
                (card("What was sent", &sent(entry)))
            }
            @if !entry.cut { (card("Edit and send", &editor(entry))) }
        }
    }

    fn facts(&self, entry: &Entry) -> Markup {
        facts(&[
            ("Status", status(entry.status.into())),
            ("When", time_of(entry.at)),
            ("Took", html! { (duration(entry.took)) }),
            ("About", self.about_line(entry)),
            ("Calls", html! { (entry.cost.calls) ", " (entry.cost.depth) " after each other" }),
            ("Units", html! { (entry.cost.read_units) " read, " (entry.cost.write_units) " written" }),
            ("Trace", short_id(&entry.request_id)),
        ])
    }

    /// The changes, events and deliveries with the trace of a request.
    async fn consequences(&self, entry: &Entry) -> Markup {
        let is_its = |trace: Option<&str>| trace == Some(entry.request_id.as_str());
        let traces = &self.journal.traces;
        let changes: Vec<_> =
            traces.newest_changes(usize::MAX).into_iter().filter(|change| is_its(change.trace.as_deref())).collect();
        let events: Vec<_> = self.inbox.newest(usize::MAX);
        let events: Vec<_> = events.iter().filter(|event| is_its(self.trace_of(event).as_deref())).collect();
        let deliveries = self.deliveries_of(entry).await;
        let organisation = self.organisation_of(entry).map(|organisation| organisation.name.as_str());
        html! {
            div.live #consequences {
                @if events.is_empty() && deliveries.is_empty() && changes.is_empty() {
                    p.quiet { "Nothing yet. Changes of records lead to changes in the stream, events and deliveries." }
                }
                @if !events.is_empty() {
                    h3 { "Events" }
                    ul.plain {
                        @for event in events.iter().rev() {
                            li {
                                a href={ (EVENTS) "#event-" (event.number) } { (event.body["event"].as_str().unwrap_or("an event")) }
                                " to " code { (event.to) } " " (status(event.answered.into()))
                            }
                        }
                    }
                }
                @if !deliveries.is_empty() {
                    h3 { "Deliveries" }
                    ul.plain {
                        @for delivery in &deliveries {
                            li {
                                a href={ (linked(DELIVERIES, organisation)) "#delivery-" (member(delivery, "id")) } { (member(delivery, "event")) }
                                " " (state(member(delivery, "state"))) " " span.quiet { "attempts: " (delivery["attempts"]) }
                            }
                        }
                    }
                }
                @if !changes.is_empty() {
                    h3 { "Changes in the stream" }
                    ul.plain {
                        @for change in changes.iter().rev() {
                            li {
                                (badge(Tone::Quiet, change.name.to_lowercase())) " " (item(entry, &format!("{} {}", change.pk, change.sk)))
                                @if !change.taken_by.is_empty() { " " span.quiet { "to " (change.taken_by.join(", ")) } }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The deliveries of the events of a request.
    async fn deliveries_of(&self, entry: &Entry) -> Vec<Value> {
        let Some(organisation) = self.organisation_of(entry) else { return Vec::new() };
        let mut found = Vec::new();
        let webhooks = self.api.newest(organisation, &routes::LIST_WEBHOOKS, ROWS).await.unwrap_or_default();
        for webhook in &webhooks {
            let list = ApiRequest::of(&routes::LIST_DELIVERIES).parameter("webhook_id", member(webhook, "id"));
            let all = self.api.newest(organisation, list, ROWS).await.unwrap_or_default();
            found.extend(all.into_iter().filter(|delivery| {
                let trace = self.journal.traces.of_event(member(delivery, "event_id"));
                trace.as_deref() == Some(entry.request_id.as_str())
            }));
        }
        found
    }
}

/// The form that sends a changed copy, with the key of the organisation.
fn editor(entry: &Entry) -> Markup {
    html! {
        form.edit data-method="POST" action={ (address(entry)) "/edited" } {
            p.wide { code { (entry.call.method) " " (entry.call.path) } }
            label.wide { "Query " input name="query" value=(query(entry)); }
            @if entry.call.method != "GET" {
                label.wide { "Body " textarea name="body" { (body(entry)) } }
            }
            button { "Send" }
        }
    }
}

/// A call of the database, with its place in the time of the request.
fn call_row(entry: &Entry, call: &DatabaseCall) -> Markup {
    let whole = entry.took.as_secs_f64().max(1e-9);
    let from = (call.began.as_secs_f64() / whole * WIDTH).min(WIDTH);
    let width = call.took.map_or(WIDTH, |took| took.as_secs_f64() / whole * WIDTH).clamp(4.0, WIDTH);
    let class = if call.failure.is_some() { Tone::Bad.class() } else { "call" };
    html! {
        td { strong { (call.action) } @if let Some(failure) = &call.failure { div.bad { (failure) } } }
        td.fall {
            svg role="img" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-label={ "after " (duration(call.began)) } {
                rect.(class) x=(format!("{:.0}", from.min(WIDTH - width))) y="0" width=(format!("{width:.0}")) height="10" {}
            }
        }
        td.number { @match call.took { Some(took) => { (duration(took)) } None => { span.bad { "no answer" } } } }
        td.number { (call.units) }
        td.wide { @for key in &call.items { div { (item(entry, key)) } } }
    }
}

/// The key of an item without its organisation, which is the same in every key.
fn item(entry: &Entry, key: &str) -> Markup {
    let short = entry.organisation.map_or_else(|| key.to_owned(), |of| key.replace(&format!("ORG#{of}#"), ""));
    html! { code title=(key) { (short) } }
}

fn issues(entry: &Entry) -> Markup {
    html! { ul.plain { @for issue in &entry.issues { li { code { (location(&issue.loc)) } " " (issue.msg) " " span.quiet { (issue.kind) } } } } }
}

/// The buttons that copy a request, and the one that sends it again.
fn copies(entry: &Entry) -> Markup {
    let to = address(entry);
    html! {
        @if entry.cut { p.quiet { "Its body is too large to be kept, so it cannot be sent again." } }
        @else {
            div.actions {
                form data-method="POST" action={ (to) "/again" } { button.main { "Send again" } }
                a.button.copy href={ (to) "/curl" } { "Copy as curl" }
                @if mcp(entry).is_some() { a.button.copy href={ (to) "/mcp" } { "Copy as MCP call" } }
                a.button.copy href={ (to) "/event" } { "Copy as recorded event" }
                a.button href={ (to) "/event" } download=(entry.event_file()) { "Save as recorded event" }
            }
        }
    }
}

/// The headers and the body, without secrets.
fn sent(entry: &Entry) -> Markup {
    let Call { method, path, headers, .. } = &entry.call;
    let query = query(entry);
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    let line = |(name, value): (&String, &String)| {
        format!("{name}: {}\n", masked(name, value.as_str().into()).as_str().unwrap_or_default())
    };
    let is_shown = |name: &str| !["authorization", "cookie"].contains(&name);
    let headers: String = headers.iter().filter(|(name, _)| is_shown(name)).map(line).collect();
    let body = body(entry);
    html! {
        (code_block("Headers", &format!("{method} {path}{query}\n{headers}")))
        @if !body.is_empty() { (code_block("Body", &body)) }
    }
}

/// The query of a request, without secrets.
fn query(entry: &Entry) -> String {
    let pairs = form_urlencoded::parse(entry.call.query.as_bytes());
    let shown = pairs.filter(|(name, value)| !is_secret_name(name) && !has_secret_form(value));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(shown).finish()
}

/// The body of a request, with its secrets masked.
fn body(entry: &Entry) -> String {
    let text = String::from_utf8_lossy(&entry.call.body);
    match serde_json::from_str::<Value>(&text) {
        Ok(json) => pretty(&masked("", json)),
        Err(_) if has_secret_form(&text) => "masked".to_owned(),
        Err(_) => text.into_owned(),
    }
}

/// The call of the tool that does the same. The server of tools has the operations with a key alone. Without the
/// idempotency key: the tool writes the body in a form of its own, which would be another request.
fn mcp(entry: &Entry) -> Option<Value> {
    let route = routes::ALL.iter().find(|route| route.name == entry.name())?;
    let mut arguments = json!({});
    let path = route.match_path(&entry.call.path).unwrap_or_default();
    for (name, value) in path {
        arguments["path"][name] = value.into();
    }
    for (name, value) in form_urlencoded::parse(query(entry).as_bytes()) {
        arguments["query"][&*name] = value.parse::<u32>().map_or_else(|_| json!(value), |number| json!(number));
    }
    if let Ok(body) = serde_json::from_slice::<Value>(&entry.call.body) {
        arguments["body"] = body;
    }
    Some(
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": route.name, "arguments": arguments}}),
    )
}

/// The page of a request.
pub(super) async fn page(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
) -> (StatusCode, Html<String>) {
    let list = pages::page(pages::REQUESTS);
    let Some(entry) = console.journal.find(&id) else {
        let head = Head::within(list, "No such request", html! { "It may be older than the last 500." }, &asked);
        return (StatusCode::NOT_FOUND, console.framed(head, Err(format!("There is no request {id}."))).await);
    };
    let says = html! { code { (entry.call.method) " " (entry.call.path) } };
    let shown = console.request(&entry).await;
    (StatusCode::OK, console.framed(Head::within(list, entry.name(), says, &asked), Ok(shown)).await)
}

/// The request with this id, with everything that its user sent.
fn kept(console: &Console, id: &str) -> Result<Arc<Entry>, StatusCode> {
    console.journal.find(id).filter(|entry| !entry.cut).ok_or(StatusCode::NOT_FOUND)
}

/// The request with this id as a command; it contains everything that its user sent, including the key.
pub(super) async fn curl(State(console): State<Arc<Console>>, Path(id): Path<String>) -> Result<String, StatusCode> {
    Ok(kept(&console, &id)?.curl(&console.url))
}

/// The request with this id as the event of its function.
pub(super) async fn event(State(console): State<Arc<Console>>, Path(id): Path<String>) -> Result<String, StatusCode> {
    Ok(pretty(&console.api.event(&kept(&console, &id)?.call, &id)) + "\n")
}

/// The request with this id as the call of a tool.
pub(super) async fn tool(State(console): State<Arc<Console>>, Path(id): Path<String>) -> Result<String, StatusCode> {
    mcp(&*kept(&console, &id)?).map(|call| pretty(&call) + "\n").ok_or(StatusCode::NOT_FOUND)
}

/// Sends the request with this id as it was.
pub(super) async fn again(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, StatusCode> {
    let entry = kept(&console, &id)?;
    Ok(leads_to(&console.api.send(entry.call.clone()).await))
}

/// Sends a request with the same method and path, and another query and body.
pub(super) async fn edited(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Refused> {
    let refused = |status: StatusCode, says: String| (status, Json(json!({"error": says})));
    let entry = kept(&console, &id).map_err(|status| refused(status, format!("There is no request {id}.")))?;
    let edited: Edited =
        serde_json::from_slice(&body).map_err(|error| refused(StatusCode::BAD_REQUEST, error.to_string()))?;
    let mut headers = entry.call.headers.clone();
    // The same key with another body would be a conflict.
    headers.remove("idempotency-key");
    headers.remove("content-length");
    if let Some(organisation) = console.organisation_of(&entry) {
        headers.insert("authorization".to_owned(), format!("Bearer {}", organisation.key));
    }
    let Call { method, path, .. } = entry.call.clone();
    Ok(leads_to(&console.api.send(Call { method, path, query: edited.query, headers, body: edited.body.into() }).await))
}

/// The page of the request that got this answer.
fn leads_to(answer: &Answer) -> Json<Value> {
    let to = answer.headers.get("x-request-id").map(|id| format!("{}/{id}", pages::REQUESTS));
    Json(json!({"message": format!("Answered {}.", answer.status), "to": to}))
}
