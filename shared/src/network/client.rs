//! The interface of the HTTP client that makes attempts, so that only the function that sends events links a client.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::values::time::Timestamp;

/// Makes attempts.
pub trait Client: Send + Sync + Debug {
    /// See [`Sender::post`](crate::delivery::sender::Sender::post).
    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: Vec<(&'static str, String)>,
        body: String,
        now: Timestamp,
        limit: Duration,
    ) -> BoxFuture<'a, AttemptOutcome>;
}

/// The result of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttemptOutcome {
    /// The status of the answer, if one came.
    pub status: Option<u16>,
    /// How long it took.
    pub milliseconds: u64,
    /// Why there is no answer, or only a part of one.
    pub error: Option<&'static str>,
    /// The beginning of the answer's body, no longer than a kilobyte.
    pub answer: String,
    /// How long the receiver asks to wait, in `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl AttemptOutcome {
    /// Whether the status is a 2xx: the receiver has the event, even if the rest of its answer is lost.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}
