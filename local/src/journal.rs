//! The journal of `cargo local`: the requests that it answered last, for the console. The content of a request stays in
//! memory, and is shown only when that one request is opened.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use shared::request::route::Route;
use shared::routes;
use shared::table::meter::Cost;
use shared::values::id::OrgId;
use shared::values::time::Timestamp;
use tokio::sync::watch;
use uuid::Uuid;

use crate::calls::{self, DatabaseCall};
use crate::http::{Answer, Call};
use crate::names::KnownNames;
use crate::traces::{Origin, Traces};

/// The `user-agent` of the requests that this program makes for its user.
pub const CONSOLE: &str = "assistants-console";
/// The most requests that are kept.
const KEPT: usize = 500;
/// The most bytes of a body that is kept with its request.
const LARGEST_BODY: usize = 64 * 1024;

/// The requests, and a counter that changes with everything that the console shows.
#[derive(Debug, Default)]
pub struct Journal {
    /// Which request everything comes from.
    pub traces: Arc<Traces>,
    /// The names of records.
    pub names: KnownNames,
    /// The organisations of the keys that were used: a refused request may call nothing that names its organisation.
    keys: Mutex<HashMap<String, OrgId>>,
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
    /// Its organisation, if its calls or an earlier request with its key say so.
    pub organisation: Option<OrgId>,
    /// The id of the record in its answer.
    pub made: Option<String>,
    /// Its calls of the database.
    pub calls: Vec<DatabaseCall>,
    /// The issues in its answer.
    pub issues: Vec<EntryIssue>,
}

/// One issue of a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EntryIssue {
    /// The location of the input.
    pub loc: Value,
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
            organisation: calls.iter().flat_map(|call| &call.items).find_map(|item| organisation_in(item)),
            made: made(answer),
            calls,
            issues: issues(answer),
        }
    }

    /// Its operation; `None` if there is none at its address.
    pub fn route(&self) -> Option<&'static Route> {
        routes::find(&self.call.method, &self.call.path)
    }

    /// The name of its operation, or else its path.
    pub fn name(&self) -> &str {
        self.route().map_or(&self.call.path, |route| route.name)
    }

    /// Its key, with or without words around it.
    pub fn key(&self) -> Option<&str> {
        let query = Some(self.call.query.as_str()).filter(|query| query.contains("api_key="));
        self.call.headers.get("authorization").map(String::as_str).or(query)
    }

    /// Whether a form of the console, or the runtime of this program, has sent it.
    pub fn is_own(&self) -> bool {
        self.call.headers.get("user-agent").is_some_and(|agent| agent == CONSOLE)
    }

    /// The command that sends the same request to the API at `url`.
    pub fn curl(&self, url: &str) -> String {
        let Call { method, path, query, headers, body } = &self.call;
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        let mut command =
            format!("curl --globoff --request {} {}", quoted(method), quoted(&format!("{url}{path}{query}")));
        let sent = |name: &str| ["authorization", "content-type", "idempotency-key"].contains(&name);
        for (name, value) in headers.iter().filter(|(name, _)| sent(name)) {
            command += &format!(" --header {}", quoted(&format!("{name}: {value}")));
        }
        if !body.is_empty() {
            command += &format!(" --data-raw {}", quoted(&String::from_utf8_lossy(body)));
        }
        command
    }

    /// The name of the file for its event.
    pub fn event_file(&self) -> String {
        format!("{}.json", self.route().map_or("event", |route| route.name))
    }
}

/// The organisation in the key of an item.
fn organisation_in(item: &str) -> Option<OrgId> {
    let (_, after) = item.split_once("ORG#")?;
    Uuid::try_parse(after.get(..36)?).ok().map(OrgId)
}

/// The id of the record in an answer.
fn made(answer: &Answer) -> Option<String> {
    let made = if answer.status == 201 { serde_json::from_str::<Value>(&answer.body).ok()? } else { return None };
    made["data"]["id"].as_str().map(str::to_owned)
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

/// `text` as one word of a shell. A terminal acts on a control character that is pasted, so the shell makes it.
fn quoted(text: &str) -> String {
    let mut word = String::new();
    for character in text.chars() {
        match character {
            '\'' => word += r"'\''",
            _ if character.is_control() && character != '\n' => {
                let octal = |byte: &u8| format!(r"\{byte:03o}");
                let bytes: String = character.encode_utf8(&mut [0; 4]).as_bytes().iter().map(octal).collect();
                word += &format!("'\"$(printf '{bytes}')\"'");
            }
            _ => word.push(character),
        }
    }
    format!("'{word}'")
}

impl Journal {
    /// Adds a request.
    pub fn add(&self, mut entry: Entry) {
        if let Some(key) = entry.key().map(str::to_owned) {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            match entry.organisation {
                Some(organisation) => drop(keys.insert(key, organisation)),
                None => entry.organisation = keys.get(&key).copied(),
            }
        }
        let mut entries = self.entries();
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(Arc::new(entry));
        drop(entries);
        self.changed();
    }

    /// The result of the function `name` with an event: what it writes has the traces of the changes in the event.
    pub async fn traced<T>(&self, name: &'static str, event: &str, run: impl Future<Output = T>) -> T {
        let event: Value = serde_json::from_str(event).unwrap_or_default();
        self.traces.passed_on(name, &event);
        let result = calls::recorded(Origin::changes(&self.traces, &event), run).await.0;
        if event["Records"].is_array() {
            // What the function has written is shown too, such as the rows that a filter selects.
            self.changed();
        }
        result
    }

    /// Learns the names of the records in an answer.
    pub fn learn(&self, call: &Call, answer: &Answer) {
        let route = routes::find(&call.method, &call.path).filter(|_| answer.status < 300);
        if let (Some(route), Ok(body)) = (route, serde_json::from_str::<Value>(&answer.body)) {
            self.names.learn(route, &body["data"]);
        }
    }

    /// The request with this id.
    pub fn find(&self, request_id: &str) -> Option<Arc<Entry>> {
        self.entries().iter().find(|entry| entry.request_id == request_id).cloned()
    }

    /// The newest `most` requests, the newest first.
    pub fn newest(&self, most: usize) -> Vec<Arc<Entry>> {
        self.entries().iter().rev().take(most).cloned().collect()
    }

    /// The number of requests that are kept.
    pub fn count(&self) -> u64 {
        self.entries().len() as u64
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

    use proptest::prelude::*;

    use super::*;

    /// In place of the program: prints each of its arguments, with a zero behind it.
    const CURL: &str = r#"curl() { for word; do printf '%s\0' "$word"; done; }"#;

    /// The arguments that a shell passes to the program.
    fn arguments(command: &str) -> Vec<String> {
        let shell = Command::new("sh").args(["-c", &format!("{CURL}\n{command}")]).output().unwrap();
        assert!(shell.status.success() && shell.stderr.is_empty(), "{command}: {shell:?}");
        let printed = String::from_utf8(shell.stdout).unwrap();
        printed.split_terminator('\0').map(str::to_owned).collect()
    }

    /// A request with any method, address and headers that HTTP allows, and any text as its body.
    fn requests() -> impl Strategy<Value = Call> {
        let method = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}";
        let (path, query) = (r"/[!-\x22$->@-~]{0,20}", r"[!-\x22$-~]{0,20}");
        let value = r"[ -~\t]{0,20}";
        let body = r#"@?([^\x00]|[ '"\\$`;&|<>(){}\[\]*?!#~\n\r\t]){0,30}"#;
        let headers = (proptest::option::of(value), proptest::option::of(value), proptest::option::of(value));
        (method, path, query, headers, body).prop_map(|(method, path, query, headers, body)| {
            let named = [("authorization", headers.0), ("content-type", headers.1), ("idempotency-key", headers.2)];
            let sent = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            let headers = sent.chain([("host".to_owned(), "h".to_owned())]).collect();
            Call { method, path, query, headers, body: body.into_bytes() }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_shell_parses_the_command_into_the_sent_request(call in requests()) {
            let answer = Answer { status: 200, headers: [].into(), body: String::new(), cost: Cost::default() };
            let at = Timestamp::from_unix_millis(0);
            let command = Entry::new("1".into(), at, &call, &answer, Duration::ZERO, Vec::new()).curl("http://h");
            let query = if call.query.is_empty() { String::new() } else { format!("?{}", call.query) };
            let address = format!("http://h{}{query}", call.path);
            let mut wanted = ["--globoff", "--request", &call.method, &address].map(str::to_owned).to_vec();
            for (name, value) in call.headers.iter().filter(|(name, _)| *name != "host") {
                wanted.extend(["--header".to_owned(), format!("{name}: {value}")]);
            }
            if !call.body.is_empty() {
                wanted.extend(["--data-raw".to_owned(), String::from_utf8(call.body.clone()).unwrap()]);
            }
            prop_assert_eq!(arguments(&command), wanted, "{}", &command);
            let typed = command.chars().any(|character| character.is_control() && character != '\n');
            prop_assert!(!typed, "a terminal acts on a character of {:?}", command);
        }
    }
}
