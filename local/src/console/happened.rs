//! Recent activity: the answered requests, with their calls of the database, and the events that arrived.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use maud::{Markup, html};

use super::markup::{pretty, rows, status, text, time_of};
use super::Console;
use crate::calls::DatabaseCall;
use crate::inbox::{Arrived, Signature};
use crate::journal::Entry;

/// The most requests or events of a page.
const MOST: usize = 100;

impl Console {
    /// The first page.
    pub(super) fn start(&self) -> Markup {
        html! { h2 { "Events" } (self.events()) h2 { "Requests" } (self.requests()) }
    }

    pub(super) fn events(&self) -> Markup {
        let events: Vec<_> = self.inbox.newest(MOST).iter().map(|event| arrived(event)).collect();
        html! {
            (answers())
            (rows("events", &["Time", "To", "Event", "Signature", "#Answer"], &events, "None yet. Close a conversation, and its event arrives here."))
        }
    }

    pub(super) fn requests(&self) -> Markup {
        let requests: Vec<_> = self.journal.newest(MOST).iter().map(|entry| request(entry)).collect();
        rows("requests", &["Time", "Request", "#Status", "#Milliseconds", "#Calls", "#Depth", "#Read units", "#Write units"], &requests, "None yet.")
    }
}

/// The form that makes the inbox fail.
pub(super) fn answers() -> Markup {
    html! {
        form #answers data-method="PUT" data-done="The next events are answered so." action="/inbox/answers" {
            label { "Answer the next " input name="count" type="number" min="0" max="1000" value="2" required; }
            label { " with " input name="status" type="number" min="200" max="599" value="503" required; }
            button { "Set" }
        }
    }
}

/// An event that arrived.
fn arrived(event: &Arrived) -> Markup {
    html! {
        td { (time_of(event.at)) }
        td { code { (event.to) } }
        td.wide {
            details id={ "event-" (event.number) } {
                summary { (event.body["event"].as_str().unwrap_or("no event of this service")) }
                (sent(event))
            }
        }
        td { (signature(event)) }
        td.number { (status(event.answered.into())) }
    }
}

/// The request of an event: headers and body.
pub(super) fn sent(event: &Arrived) -> Markup {
    let headers: Vec<_> = event.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    text(&format!("{}\n{}", headers.concat(), pretty(&event.body)))
}

/// The result of the check of its signature.
pub(super) fn signature(event: &Arrived) -> Markup {
    match event.signature {
        Signature::Verified(_) => html! { span.good { "verified" } },
        Signature::Wrong => html! { span.bad { "wrong" } },
        Signature::Missing => html! { span.bad { "missing" } },
    }
}

fn request(entry: &Entry) -> Markup {
    let address = format!("/console/requests/{}", entry.request_id);
    html! {
        td { (time_of(entry.at)) }
        td.wide {
            details id={ "request-" (entry.request_id) } {
                summary { code { (entry.call.method) " " (entry.call.path) } }
                @if entry.cut { p { "Its body is too large to be kept." } }
                @else {
                    p {
                        a.copy href={ (address) "/curl" } { "Copy as curl" } " "
                        a href={ (address) "/event" } download=(entry.event_file()) { "Save as recorded event" }
                    }
                }
                @if !entry.calls.is_empty() { ol { @for call in &entry.calls { li { (database_call(call)) } } } }
            }
            @for issue in &entry.issues { div { code { (issue.loc) } " " (issue.msg) } }
        }
        td.number { (status(entry.status.into())) }
        td.number { (entry.took.as_millis()) }
        td.number { (entry.cost.calls) }
        td.number { (entry.cost.depth) }
        td.number { (entry.cost.read_units) }
        td.number { (entry.cost.write_units) }
    }
}

fn database_call(call: &DatabaseCall) -> Markup {
    html! {
        (call.action) ": units " (call.units)
        @match call.took {
            Some(took) => { ", milliseconds " (format!("{:.1}", took.as_secs_f64() * 1000.0)) }
            None => { ", without an answer" }
        }
        @if let Some(failure) = &call.failure { ", " span.bad { (failure) } }
        @for item in &call.items { div { code { (item) } } }
    }
}

/// The request with this id as a command; it contains everything that its user sent, including the key.
pub(super) async fn curl(State(console): State<Arc<Console>>, Path(id): Path<String>) -> Result<String, StatusCode> {
    let entry = console.journal.find(&id).filter(|entry| !entry.cut).ok_or(StatusCode::NOT_FOUND)?;
    Ok(entry.curl(&console.url))
}

/// The request with this id as the event of its function.
pub(super) async fn event(State(console): State<Arc<Console>>, Path(id): Path<String>) -> Result<String, StatusCode> {
    let entry = console.journal.find(&id).filter(|entry| !entry.cut).ok_or(StatusCode::NOT_FOUND)?;
    Ok(pretty(&console.api.event(&entry.call, &id)) + "\n")
}
