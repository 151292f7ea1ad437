//! Lambda's destination on failure: a batch that a function on the stream gave up is put into a bucket, as an
//! invocation record.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use embedded_dynamodb::stream;
use serde_json::{Value, json};
use shared::bucket::kept::KeptObjects;
use shared::values::id::Ids;
use shared::values::time::{Clock, Timestamp};
use uuid::Uuid;

use crate::Trouble;

/// The one shard of the embedded database's stream.
const SHARD: &str = "shardId-00000000000000000000-00000000";

/// A bucket into which Lambda puts batches that were given up.
#[derive(Debug, Clone)]
pub struct Destination {
    bucket: KeptObjects,
    clock: Clock,
}

/// Why a batch was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUpFor {
    /// Its last attempt failed, after so many retries.
    Attempts(u64),
    /// Its records are too old.
    Age,
}

impl Destination {
    /// The destination `bucket`. `clock` gives the age of the batches.
    pub const fn new(bucket: KeptObjects, clock: Clock) -> Self {
        Self { bucket, clock }
    }

    /// Puts the report about `event`, which `function` gave up after its retries.
    ///
    /// # Errors
    /// [`Trouble`] where the bucket does not accept it.
    pub async fn send_event(&self, function: &str, event: &Value) -> Result<(), Trouble> {
        let (now, id) = (self.clock.now(), Ids::Random.fresh(self.clock.now()));
        let report = json!({
            "version": "1.0",
            "timestamp": now,
            "requestContext": {
                "requestId": id,
                "functionArn": format!("arn:aws:lambda:us-east-1:000000000000:function:{function}:$LATEST"),
                "condition": "RetriesExhausted",
                "approximateInvokeCount": 3,
            },
            "requestPayload": event,
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "responsePayload": {},
        });
        let key = format!("aws/lambda/async/{function}/{}", day_and_second(now, id));
        let put = self.bucket.replace(&key, report.to_string().into_bytes()).await;
        put.map_err(|error| Trouble(format!("{function}: what was given up is lost: {error}")))
    }

    /// Puts the invocation record of `records`, which `function` gave up.
    ///
    /// # Errors
    /// [`Trouble`] where the bucket does not accept it.
    pub async fn send(&self, function: &str, records: &[Value], why: GivenUpFor) -> Result<(), Trouble> {
        let (now, id) = (self.clock.now(), Ids::Random.fresh(self.clock.now()));
        let record = invocation_record(function, records, why, now, id).to_string();
        let put = self.bucket.replace(&key(function, now, id), record.into_bytes()).await;
        put.map_err(|error| Trouble(format!("{function}: what was given up is lost: {error}")))
    }
}

/// `aws/lambda/<mapping>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<id>`.
fn key(function: &str, at: Timestamp, id: Uuid) -> String {
    // Each function has one mapping, which is the same in every run.
    let mut hasher = DefaultHasher::new();
    function.hash(&mut hasher);
    let mapping = Uuid::from_u64_pair(hasher.finish(), hasher.finish());
    format!("aws/lambda/{mapping}/{SHARD}/{}", day_and_second(at, id))
}

/// `YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<id>`.
fn day_and_second(at: Timestamp, id: Uuid) -> String {
    let time = at.to_string();
    let (day, second) = (time[..10].replace('-', "/"), time[..19].replace(':', "."));
    format!("{day}/{second}-{id}")
}

/// Lambda's report about the batch, including the whole batch: the event of the function, as a text.
fn invocation_record(function: &str, records: &[Value], why: GivenUpFor, at: Timestamp, id: Uuid) -> Value {
    let of = |record: Option<&Value>, name: &str| record.map_or(Value::Null, |record| record["dynamodb"][name].clone());
    let arrived = |record: Option<&Value>| {
        let seconds = of(record, "ApproximateCreationDateTime").as_i64().unwrap_or_default();
        Timestamp::from_unix_millis(seconds * 1000)
    };
    let (first, last) = (records.first(), records.last());
    let (condition, invoked) = match why {
        GivenUpFor::Attempts(before) => ("RetryAttemptsExhausted", before + 1),
        GivenUpFor::Age => ("MaximumRecordAgeExceeded", 0),
    };
    json!({
        "requestContext": {
            "requestId": id,
            "functionArn": format!("arn:aws:lambda:us-east-1:000000000000:function:{function}"),
            "condition": condition,
            "approximateInvokeCount": invoked,
        },
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": null},
        "version": "1.0",
        "timestamp": at,
        "DDBStreamBatchInfo": {
            "shardId": SHARD,
            "startSequenceNumber": of(first, "SequenceNumber"),
            "endSequenceNumber": of(last, "SequenceNumber"),
            "approximateArrivalOfFirstRecord": arrived(first),
            "approximateArrivalOfLastRecord": arrived(last),
            "batchSize": records.len(),
            "streamArn": first.map(|record| &record["eventSourceARN"]),
        },
        "payload": stream::event(records),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: i64 = 1_769_947_200_000;

    #[test]
    fn a_key_has_the_mapping_the_shard_and_the_time() {
        let (at, id) = (Timestamp::from_unix_millis(AT + 1_999), Uuid::nil());
        let parts = key("record-changed", at, id);
        let parts: Vec<&str> = parts.split('/').collect();
        assert_eq!(parts[..2], ["aws", "lambda"]);
        assert_eq!(parts[3..], [SHARD, "2026", "02", "01", &format!("2026-02-01T12.00.01-{id}")]);
        assert_ne!(key("send-delivery", at, id).split('/').nth(2), Some(parts[2]));
    }

    #[test]
    fn an_invocation_record_describes_and_holds_its_batch() {
        let record = |number: u32| {
            json!({"eventName": "INSERT", "dynamodb": {
                "SequenceNumber": number.to_string(), "ApproximateCreationDateTime": AT / 1000 + i64::from(number),
            }})
        };
        let (records, at) = ([record(1), record(2)], Timestamp::from_unix_millis(AT));
        let written = invocation_record("record-changed", &records, GivenUpFor::Attempts(10), at, Uuid::nil());
        assert_eq!(written["requestContext"]["condition"], "RetryAttemptsExhausted");
        assert_eq!(written["requestContext"]["approximateInvokeCount"], 11);
        let batch = &written["DDBStreamBatchInfo"];
        assert_eq!((&batch["startSequenceNumber"], &batch["endSequenceNumber"]), (&json!("1"), &json!("2")));
        assert_eq!(batch["approximateArrivalOfLastRecord"], "2026-02-01T12:00:02.000Z");
        let payload: Value = serde_json::from_str(written["payload"].as_str().unwrap()).unwrap();
        assert_eq!(payload, json!({"Records": records}));
    }
}
