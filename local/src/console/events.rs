//! The events that arrived in the inbox, each with its headers, its body and the request from which it comes.

use maud::{Markup, html};

use super::Console;
use super::markup::{Tone, badge, empty, pretty, rows, status, text, time_of};
use super::pages::CONVERSATIONS;
use crate::inbox::{Arrived, Signature};
use crate::traces::TraceId;

/// The most events of the page.
const MOST: usize = 100;

impl Console {
    pub(super) fn events(&self) -> Markup {
        let events: Vec<_> = self.inbox.newest(MOST).iter().map(|event| self.arrived(event)).collect();
        let next = html! { p { a.button href=(CONVERSATIONS) { "Open the conversations" } } };
        let nothing = empty("No event yet. Close a conversation, and its event arrives here.", &next);
        html! {
            (answers())
            (rows("events", &["When", "Event", "To", "From the request", "Signature", "#Answer"], &events, nothing))
        }
    }

    /// An event that arrived.
    fn arrived(&self, event: &Arrived) -> Markup {
        html! {
            td { (time_of(event.at)) }
            td.wide {
                details id={ "event-" (event.number) } {
                    summary { (event_name(event)) }
                    (sent(event))
                }
            }
            td { code { (event.to) } }
            td { (self.request_of(self.trace_of(event).as_deref())) }
            td { (signature(event)) }
            td.number { (status(event.answered.into())) }
        }
    }

    /// The request from which an event comes.
    pub(super) fn trace_of(&self, event: &Arrived) -> Option<TraceId> {
        self.journal.traces.of_event(event.headers.get("webhook-id")?)
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

/// The name of an event.
pub(super) fn event_name(event: &Arrived) -> &str {
    event.body["event"].as_str().unwrap_or("no event of this service")
}

/// The request of an event: headers and body.
pub(super) fn sent(event: &Arrived) -> Markup {
    let headers: Vec<_> = event.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    text(&format!("{}\n{}", headers.concat(), pretty(&event.body)))
}

/// The result of the check of its signature.
pub(super) fn signature(event: &Arrived) -> Markup {
    match event.signature {
        Signature::Verified(_) => badge(Tone::Good, "verified"),
        Signature::Wrong => badge(Tone::Bad, "wrong"),
        Signature::Missing => badge(Tone::Bad, "missing"),
    }
}
