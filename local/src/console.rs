//! The console of `cargo local`, at the root of its port: the requests that it answered, and the events that its inbox got, as they come.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream::{self, Stream};
use maud::{DOCTYPE, Markup, html};
use shared::routes;
use shared::values::time::Timestamp;

use crate::inbox::{self, Arrived, Inbox, Signature, from_here};
use crate::journal::{Entry, Journal};

/// The most rows of a section.
const ROWS: usize = 100;

/// What the page may do: it has its own script and style, and calls nobody but this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; \
    base-uri 'none'; frame-ancestors 'none'";

/// The console.
#[derive(Debug)]
pub struct Console {
    /// The requests.
    pub journal: Arc<Journal>,
    /// The events.
    pub inbox: Arc<Inbox>,
}

impl Console {
    /// What answers at `/` and under `/console`.
    pub fn router(self) -> Router {
        let file = |kind: &'static str, text: &'static str| get(async move || ([("content-type", kind)], text));
        Router::new()
            .route("/", get(page))
            .route("/console/requests", get(async |State(console): State<Arc<Self>>| shown(requests(&console.journal))))
            .route("/console/events", get(async |State(console): State<Arc<Self>>| shown(events(&console.inbox))))
            .route("/console/changes", get(changes))
            .route("/console/console.css", file("text/css", include_str!("console/console.css")))
            .route("/console/console.js", file("text/javascript", include_str!("console/console.js")))
            .layer(middleware::from_fn(guarded))
            .with_state(Arc::new(self))
    }
}

/// Answers nobody but pages of this server, and says what they may do.
async fn guarded(request: Request, next: Next) -> Response {
    if let Err(refusal) = from_here(request.headers()) {
        return refusal.into_response();
    }
    let mut response = next.run(request).await;
    for (name, value) in
        [("content-security-policy", POLICY), ("cache-control", "no-store"), ("referrer-policy", "no-referrer")]
    {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn page(State(console): State<Arc<Console>>) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { "Console" }
                link rel="stylesheet" href="/console/console.css";
                script defer src="/console/console.js" {}
            }
            body {
                header {
                    h1 { "Assistants, on this machine" }
                    nav { a href=(routes::READ_DOCS.path) { "The API" } a href=(inbox::PATH) { "The inbox, as JSON" } }
                }
                main {
                    h2 #events { "Events" }
                    form #fail {
                        label { "Answer the next " input name="count" type="number" min="0" max="1000" value="2" required; }
                        label { " with " input name="status" type="number" min="200" max="599" value="503" required; }
                        button { "Set" }
                        output #told {}
                    }
                    div data-from="/console/events" { (events(&console.inbox)) }
                    h2 #requests { "Requests" }
                    div data-from="/console/requests" { (requests(&console.journal)) }
                }
            }
        }
    };
    shown(page)
}

fn shown(markup: Markup) -> Html<String> {
    Html(markup.into_string())
}

/// The events of the inbox, the newest first.
fn events(inbox: &Inbox) -> Markup {
    let events = inbox.newest(ROWS);
    let signature = |event: &Arrived| match event.signature {
        Signature::Verified(_) => html! { span.good { "verified" } },
        Signature::Wrong => html! { span.bad { "wrong" } },
        Signature::Missing => html! { span.bad { "missing" } },
    };
    html! {
        .rows tabindex="0" role="region" aria-labelledby="events" {
            @if events.is_empty() { p.empty { "None yet. Close a conversation, and its event arrives here." } }
            @else {
                table {
                    thead { tr { th scope="col" { "Time" } th scope="col" { "To" } th scope="col" { "Event" } th scope="col" { "Signature" } th.number scope="col" { "Answer" } } }
                    tbody {
                        @for event in &events {
                            tr {
                                td { (time_of(event.at)) }
                                td { code { (event.to) } }
                                td.wide {
                                    details id={ "event-" (event.number) } {
                                        summary { (event.body["event"].as_str().unwrap_or("no event of this service")) }
                                        pre tabindex="0" { @for (name, value) in &event.headers { (name) ": " (value) "\n" } "\n" (pretty(&event.body)) }
                                    }
                                }
                                td { (signature(event)) }
                                td.number { (status(event.answered)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The requests, the newest first.
fn requests(journal: &Journal) -> Markup {
    let entries = journal.newest(ROWS);
    html! {
        .rows tabindex="0" role="region" aria-labelledby="requests" {
            @if entries.is_empty() { p.empty { "None yet." } }
            @else {
                table {
                    thead {
                        tr {
                            th scope="col" { "Time" } th scope="col" { "Request" } th.number scope="col" { "Status" }
                            th.number scope="col" { "Milliseconds" } th.number scope="col" { "Calls" }
                            th.number scope="col" { "Read units" } th.number scope="col" { "Write units" }
                        }
                    }
                    tbody { @for entry in &entries { (request(entry)) } }
                }
            }
        }
    }
}

fn request(entry: &Entry) -> Markup {
    html! {
        tr {
            td { (time_of(entry.at)) }
            td.wide {
                code { (entry.method) " " (entry.path) }
                @for issue in &entry.issues { div { code { (issue.loc) } " " (issue.msg) } }
            }
            td.number { (status(entry.status)) }
            td.number { (entry.took.as_millis()) }
            td.number { (entry.cost.calls) }
            td.number { (entry.cost.read_units) }
            td.number { (entry.cost.write_units) }
        }
    }
}

/// The time of day; the whole of it for programs.
fn time_of(at: Timestamp) -> Markup {
    let text = at.to_string();
    html! { time datetime=(text) { (text.get(11..).unwrap_or(&text)) } }
}

fn status(status: u16) -> Markup {
    html! { span.good[status < 400].bad[status >= 400] { (status) } }
}

fn pretty(body: &serde_json::Value) -> String {
    serde_json::to_string_pretty(body).unwrap_or_default()
}

/// An event for each change, and one at the beginning: what has changed while nobody listened is shown too.
async fn changes(State(console): State<Arc<Console>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut changes = console.journal.changes();
    changes.mark_changed();
    let events = stream::unfold(changes, async |mut changes| {
        changes.changed().await.ok()?;
        let count = changes.borrow_and_update().to_string();
        Some((Ok(Event::default().data(count)), changes))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
