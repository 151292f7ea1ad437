//! Redrive: handles batches again that the functions on the table's stream gave up.
//!
//! Lambda puts each batch that they give up into a bucket, as an object with the records of the batch. A run removes
//! the records that it has handled. Records that fail again stay. The same holds for the event of a new file that
//! `note-upload` gave up.
//! `docs/adr/0031-what-the-stream-gives-up-is-kept.md` gives the reasons.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::bucket::kept::{KEPT_DAYS, KeptObject};
use crate::reactions;
use crate::records::datasource::uploads;
use crate::request::context::Service;
use crate::request::error::{Error, Result};
use crate::request::event::{EventContext, Unhandled};
use crate::request::idempotency::caught;
use crate::table::change::Change;
use crate::values::time::Timestamp;

/// Seconds for which the schedule attempts a kept object. An older one waits for an operator, who removes the cause
/// first.
const TRIED_FOR: i64 = 12 * 3600;
/// Seconds after which a run begins no further object.
const BUDGET: i64 = 200;
/// The longest time of one attempt. After the budget there is time for one attempt within the function's own limit.
const ATTEMPT: Duration = Duration::from_mins(1);
/// Objects that are attempted at the same time: a slow one does not hold up all others, and four of the largest fit
/// into the memory.
const WIDTH: usize = 4;
/// The member of an invocation record that holds the batch.
const PAYLOAD: &str = "payload";

crate::object! {
    /// What a run of `redrive` has come to.
    #[derive(Default)]
    pub struct Redriven {
        /// Records that were handled.
        pub handled: u64,
        /// Records that were not handled. They are kept.
        pub failed: u64,
        /// Objects that are kept and were not tried: they are older than thirty days, or too old for a run without `all`, there was no time
        /// for them, or they cannot be read.
        pub left: u64,
    }
}

/// The invocation record that Lambda stores for a batch. It contains the records of the batch.
struct InvocationRecord {
    /// Everything except the records.
    about: Map<String, Value>,
    records: Vec<Box<RawValue>>,
}

/// The event of the invocation.
#[derive(Deserialize, Serialize)]
struct Payload {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
}

/// Handles kept objects. The one whose last attempt is oldest comes first; an object without an attempt counts from the
/// time when it was given up. With `all`, objects older than twelve hours are handled too, up to thirty days. Two
/// concurrent runs handle some records twice, which changes nothing: reactions are idempotent, and each run removes
/// only the records that it has handled itself.
///
/// # Errors
/// [`Error::Unavailable`] where the bucket cannot be listed. The failure of a single object is logged, and the others
/// continue.
pub async fn redrive(service: &Service, all: bool) -> Result<Redriven> {
    let now = service.clock.now();
    let kept = service.failed_records.list().await?;
    let is_tried = |object: &KeptObject| if all { is_repeatable(&object.key, now) } else { is_young(&object.key, now) };
    let (tried, old): (Vec<_>, Vec<_>) = kept.into_iter().partition(is_tried);
    let run = RedriveRun { cx: EventContext { service }, until: now.plus_seconds(BUDGET) };
    let (objects, old) = (tried.len(), old.len());
    let left = Redriven { left: old as u64, ..Redriven::default() };
    let ended = stream::iter(tried).map(|object| run.try_object(object)).buffer_unordered(WIDTH);
    let redriven = ended.collect::<Vec<Redriven>>().await.iter().fold(left, Redriven::plus);
    // Metric filters count both lines, and alarms watch the counts.
    if objects > 0 {
        let Redriven { handled, failed, left } = redriven;
        tracing::error!(objects, handled, failed, left, "failed records");
    }
    if old > 0 {
        tracing::error!(objects = old, "unhandled records");
    }
    Ok(redriven)
}

/// Whether the schedule still attempts an object. Its key ends with the time when it was given up:
/// `aws/lambda/<mapping>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<id>`. An object with another key has no known age.
fn is_young(key: &str, now: Timestamp) -> bool {
    given_up_at(key).is_some_and(|at| now < at.plus_seconds(TRIED_FOR))
}

/// Whether a run with `all` attempts an object. Each attempt puts the object again, so the bucket's rule may keep it
/// for longer than this. But a change that is older than the markers of its events would send these events again.
fn is_repeatable(key: &str, now: Timestamp) -> bool {
    given_up_at(key).is_none_or(|at| now < at.plus_seconds(KEPT_DAYS * 86_400))
}

fn given_up_at(key: &str) -> Option<Timestamp> {
    let time = key.rsplit('/').next()?.get(..19)?.replace('.', ":");
    serde_json::from_value(format!("{time}Z").into()).ok()
}

/// A run, and its end time.
struct RedriveRun<'a> {
    cx: EventContext<'a>,
    until: Timestamp,
}

impl RedriveRun<'_> {
    fn is_over(&self) -> bool {
        self.cx.service.clock.now() >= self.until
    }

    /// Handles the records of an object. If its records cannot be read, the object stays.
    async fn try_object(&self, object: KeptObject) -> Redriven {
        let left = Redriven { left: 1, ..Redriven::default() };
        if self.is_over() {
            return left;
        }
        self.handle(&object.key).await.unwrap_or_else(|cause| {
            tracing::error!(object = object.key, %cause, "kept object");
            left
        })
    }

    async fn handle(&self, key: &str) -> Result<Redriven> {
        let kept = &self.cx.service.failed_records;
        // Another run may have removed it already.
        let Some(bytes) = kept.read(key).await? else { return Ok(Redriven::default()) };
        if let Some(object) = uploads::given_up(&bytes) {
            kept.replace(key, bytes).await?;
            uploads::note(&self.cx, &object).await?;
            kept.remove(key).await?;
            return Ok(Redriven { handled: 1, ..Redriven::default() });
        }
        let invocation = InvocationRecord::read(&bytes)?;
        // Put again before the attempt: if the attempt crashes the process, the next run begins with the others.
        kept.replace(key, bytes).await?;
        let InvocationRecord { about, records } = invocation;
        let all = records.len();
        let failed = self.without_handled(key, records).await;
        let redriven = Redriven { handled: (all - failed.len()) as u64, failed: failed.len() as u64, left: 0 };
        if failed.is_empty() {
            kept.remove(key).await?;
        } else if failed.len() < all {
            kept.replace(key, InvocationRecord { about, records: failed }.bytes()?).await?;
        }
        Ok(redriven)
    }

    /// The records that could not be handled. All are attempted at once; if that fails, each is attempted alone, so
    /// that one of them does not stop the others.
    async fn without_handled(&self, key: &str, records: Vec<Box<RawValue>>) -> Vec<Box<RawValue>> {
        let (mut failed, mut changes, mut raw) = (Vec::new(), Vec::new(), Vec::new());
        for record in records {
            if let Ok(change) = serde_json::from_str::<Change>(record.get()) {
                changes.push(change);
                raw.push(record);
            } else {
                // The error is left out of the log because it would quote the record.
                tracing::error!(object = key, "a record that is no change");
                failed.push(record);
            }
        }
        if changes.len() > 1 && self.attempt(&changes).await.is_ok() {
            return failed;
        }
        for (change, record) in changes.iter().zip(raw) {
            if self.is_over() {
                failed.push(record);
            } else if let Err(cause) = self.attempt(std::slice::from_ref(change)).await {
                tracing::error!(object = key, sequence_number = change.sequence_number(), %cause, "change");
                failed.push(record);
            }
        }
        failed
    }

    /// Runs the reactions to `changes`. A panic counts as a failure, and so does an attempt that exceeds its time
    /// limit.
    async fn attempt(&self, changes: &[Change]) -> Result<()> {
        let react = async { reactions::react(&self.cx, changes).await.map_err(|Unhandled { cause, .. }| cause) };
        let ended = tokio::time::timeout(ATTEMPT, caught(react)).await;
        ended.unwrap_or_else(|_| Err(Error::Unavailable("an attempt that took longer than a minute".into())))
    }
}

impl Redriven {
    fn plus(self, other: &Self) -> Self {
        Self { handled: self.handled + other.handled, failed: self.failed + other.failed, left: self.left + other.left }
    }
}

impl InvocationRecord {
    /// Reads an invocation record.
    ///
    /// # Errors
    /// [`Error::Internal`] where the bytes are something else. The error quotes none of them.
    fn read(bytes: &[u8]) -> Result<Self> {
        let of_lambda = || {
            let mut about: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
            // The payload is a string that contains JSON.
            let payload = about.remove(PAYLOAD)?;
            let Payload { records } = serde_json::from_str(payload.as_str()?).ok()?;
            Some(Self { about, records })
        };
        of_lambda().ok_or_else(|| Error::Internal("it is no invocation record with a payload".into()))
    }

    fn bytes(mut self) -> Result<Vec<u8>> {
        let broken = |error: serde_json::Error| Error::Internal(error.to_string());
        let payload = serde_json::to_string(&Payload { records: self.records }).map_err(broken)?;
        self.about.insert(PAYLOAD.to_owned(), payload.into());
        serde_json::to_vec(&self.about).map_err(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "aws/lambda/1b2c/shardId-1-2/2026/02/01/2026-02-01T12.00.00-0f8e";

    #[test]
    fn an_object_is_tried_for_twelve_hours_after_the_time_in_its_key() {
        let given_up = Timestamp::from_unix_millis(1_769_947_200_000);
        assert_eq!(given_up_at(KEY), Some(given_up));
        assert!(is_young(KEY, given_up.plus_seconds(TRIED_FOR - 1)));
        assert!(!is_young(KEY, given_up.plus_seconds(TRIED_FOR)));
        for other in ["", "notes.txt", "aws/lambda/1b2c/", "2026-02-01T12.00.0ü-0f8e"] {
            assert!(!is_young(other, given_up), "{other}");
        }
    }

    #[test]
    fn a_shortened_record_keeps_the_metadata_of_lambda() {
        let written = r#"{"version":"1.0","DDBStreamBatchInfo":{"batchSize":2},"payload":"{\"Records\":[{\"eventID\":\"1\"},{\"n\":1e400}]}"}"#;
        let mut read = InvocationRecord::read(written.as_bytes()).unwrap();
        assert_eq!(
            read.records.iter().map(|record| record.get()).collect::<Vec<_>>(),
            [r#"{"eventID":"1"}"#, r#"{"n":1e400}"#]
        );
        read.records.remove(0);
        let left: Value = serde_json::from_slice(&read.bytes().unwrap()).unwrap();
        let wanted = serde_json::json!({
            "version": "1.0", "DDBStreamBatchInfo": {"batchSize": 2}, "payload": r#"{"Records":[{"n":1e400}]}"#,
        });
        assert_eq!(left, wanted);
    }

    #[test]
    fn an_error_does_not_quote_an_invalid_record() {
        for bytes in
            ["", "secret", "[]", "{}", r#"{"payload":null}"#, r#"{"payload":"secret"}"#, r#"{"payload":"{\"x\":1}"}"#]
        {
            let error = InvocationRecord::read(bytes.as_bytes()).err().unwrap();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
