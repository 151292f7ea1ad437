//! The journal of `cargo local`: the requests that it answered last, for the console. The content of a request stays in
//! memory, and is shown only when that one request is opened.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use shared::routes;
use shared::table::meter::Cost;
use shared::values::time::Timestamp;
use tokio::sync::watch;

use crate::calls::DatabaseCall;
use crate::http::{Answer, Call};

/// The most requests that are kept.
const KEPT: usize = 500;
/// The most bytes of a body that is kept with its request.
const LARGEST_BODY: usize = 64 * 1024;

/// The requests, and a counter that changes with everything that the console shows.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Mutex<VecDeque<Arc<Entry>>>,
    changes: watch::Sender<u64>,
}

/// A request that was answered.
#[derive(Debug)]
pub struct Entry {
    /// Its id, as in the answer's `x-request-id`.
    pub request_id: String,
    /// When the answer was ready.
    pub at: Timestamp,
    /// The request. A large body is left out.
    pub call: Call,
    /// Whether the body was left out.
    pub cut: bool,
    /// The status of the answer.
    pub status: u16,
    /// Its duration.
    pub took: Duration,
    /// Its cost in the database.
    pub cost: Cost,
    /// Its calls of the database.
    pub calls: Vec<DatabaseCall>,
    /// The issues in its answer.
    pub issues: Vec<EntryIssue>,
}

/// One issue of a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EntryIssue {
    /// The location of the input.
    pub loc: serde_json::Value,
    /// The message.
    pub msg: String,
    /// The kind of the issue.
    #[serde(rename = "type")]
    pub kind: String,
}

impl Entry {
    /// The request with this id that was answered at `at`.
    pub fn new(
        request_id: String,
        at: Timestamp,
        call: &Call,
        answer: &Answer,
        took: Duration,
        calls: Vec<DatabaseCall>,
    ) -> Self {
        let cut = call.body.len() > LARGEST_BODY;
        let Call { method, path, query, headers, .. } = call.clone();
        let body = if cut { Vec::new() } else { call.body.clone() };
        Self {
            request_id,
            at,
            call: Call { method, path, query, headers, body },
            cut,
            status: answer.status,
            took,
            cost: answer.cost,
            calls,
            issues: issues(answer),
        }
    }

    /// The command that sends the same request to the API at `url`.
    pub fn curl(&self, url: &str) -> String {
        let Call { method, path, query, headers, body } = &self.call;
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        let mut words =
            vec!["curl".to_owned(), "-X".to_owned(), method.clone(), quoted(&format!("{url}{path}{query}"))];
        let sent = |name: &str| ["authorization", "content-type", "idempotency-key"].contains(&name);
        for (name, value) in headers.iter().filter(|(name, _)| sent(name)) {
            words.extend(["-H".to_owned(), quoted(&format!("{name}: {value}"))]);
        }
        if !body.is_empty() {
            words.extend(["--data-binary".to_owned(), quoted(&String::from_utf8_lossy(body))]);
        }
        words.join(" ")
    }
    /// The name of the file for its event.
    pub fn event_file(&self) -> String {
        let route = routes::find(&self.call.method, &self.call.path);
        format!("{}.json", route.map_or("event", |route| route.name))
    }
}

/// The issues in an answer; empty for a success.
pub fn issues(answer: &Answer) -> Vec<EntryIssue> {
    #[derive(Deserialize)]
    struct WrongRequest {
        detail: Vec<EntryIssue>,
    }
    let refused = if answer.status >= 400 { serde_json::from_str::<WrongRequest>(&answer.body).ok() } else { None };
    refused.map(|refused| refused.detail).unwrap_or_default()
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Journal {
    /// Adds a request.
    pub fn add(&self, entry: Entry) {
        let mut entries = self.entries();
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(Arc::new(entry));
        drop(entries);
        self.changed();
    }

    /// The request with this id.
    pub fn find(&self, request_id: &str) -> Option<Arc<Entry>> {
        self.entries().iter().find(|entry| entry.request_id == request_id).cloned()
    }

    /// The newest `most` requests, the newest first.
    pub fn newest(&self, most: usize) -> Vec<Arc<Entry>> {
        self.entries().iter().rev().take(most).cloned().collect()
    }

    /// Reports that something in the console has changed.
    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// A receiver of each change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_parses_the_command_into_the_sent_request() {
        let call = Call {
            method: "POST".into(),
            path: "/api/v1/tag".into(),
            query: "api_key=a&x='".into(),
            headers: [("idempotency-key".to_owned(), "$(id) `id`".to_owned()), ("host".to_owned(), "h".to_owned())]
                .into(),
            body: br#"{"name": "it's $HOME \ \"}"#.to_vec(),
        };
        let answer = Answer { status: 200, headers: [].into(), body: String::new(), cost: Cost::default() };
        let at = Timestamp::from_unix_millis(0);
        let entry = Entry::new("1".into(), at, &call, &answer, Duration::ZERO, Vec::new());
        let script = entry.curl("http://h").replacen("curl", "printf '%s\\n'", 1);
        let shown = Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
        let words = "-X\nPOST\nhttp://h/api/v1/tag?api_key=a&x='\n-H\nidempotency-key: $(id) `id`\n--data-binary\n";
        assert_eq!(String::from_utf8(shown).unwrap(), format!("{words}{}\n", r#"{"name": "it's $HOME \ \"}"#));
    }
}
