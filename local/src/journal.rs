//! The journal of `cargo local`: the requests that it answered last, for the console. It has no query and no body, where keys and contents are.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use shared::runtime::meter::Cost;
use shared::values::time::Timestamp;
use tokio::sync::watch;

use crate::gateway::{Answer, Call};

/// The most requests that are kept.
const KEPT: usize = 500;

/// The requests, and a mark that changes with whatever the console shows.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Mutex<VecDeque<Entry>>,
    changes: watch::Sender<u64>,
}

/// A request that was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// When the answer was ready.
    pub at: Timestamp,
    /// Upper case.
    pub method: String,
    /// Percent-encoded, without the query.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// How long it took.
    pub took: Duration,
    /// What it took of the database.
    pub cost: Cost,
    /// What was wrong with it.
    pub issues: Vec<EntryIssue>,
}

/// One thing that was wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EntryIssue {
    /// Where.
    pub loc: serde_json::Value,
    /// What.
    pub msg: String,
    /// What kind of issue it is.
    #[serde(rename = "type")]
    pub kind: String,
}

impl Journal {
    /// Adds a request that was answered at `at`.
    pub fn add(&self, at: Timestamp, call: &Call, answer: &Answer, took: Duration) {
        #[derive(Deserialize)]
        struct Failure {
            detail: Vec<EntryIssue>,
        }
        let failure = (answer.status >= 400).then(|| serde_json::from_str::<Failure>(&answer.body).ok()).flatten();
        let entry = Entry {
            at,
            method: call.method.clone(),
            path: call.path.clone(),
            status: answer.status,
            took,
            cost: answer.cost,
            issues: failure.map(|failure| failure.detail).unwrap_or_default(),
        };
        let mut entries = self.entries();
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(entry);
        drop(entries);
        self.changed();
    }

    /// The newest `most` requests, the newest first.
    pub fn newest(&self, most: usize) -> Vec<Entry> {
        self.entries().iter().rev().take(most).cloned().collect()
    }

    /// Something that the console shows has changed.
    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// What sees each change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
