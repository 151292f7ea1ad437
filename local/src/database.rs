//! The embedded DynamoDB, with the table of the template, served to any AWS client.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition, TokenBucket};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, SharedHttpClient};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use dynoxide::actions::create_table::CreateTableRequest;
use dynoxide::storage::Storage;
use dynoxide::{Database, DynoxideError};
use embedded_dynamodb::Embedded;
use embedded_dynamodb::partitions::Partitions;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::table::keys::{DUE_INDEX, Key, TTL};
use shared::values::time::Timestamp;

use crate::Trouble;
use crate::template::Template;

/// Name of the local table.
pub const TABLE_NAME: &str = "assistants-local";

/// An index on the sequence numbers of the stream. For each change the database searches for the highest number, and
/// for each read of the stream for the numbers after a given one. Without this index it would search all changes.
const STREAM_INDEX: &str = "CREATE INDEX IF NOT EXISTS stream_records_in_order \
    ON _stream_records (table_name, CAST(sequence_number AS INTEGER))";

/// DynamoDB's own limit of a request, in bytes.
const REQUEST_LIMIT: usize = 16 * 1024 * 1024;

/// The place where the database is kept.
#[derive(Debug, Clone, Default)]
pub enum Data {
    /// In memory, empty at first.
    #[default]
    Memory,
    /// In this file.
    File(PathBuf),
    /// In memory, starting with a copy of this file, which [`snapshot`] has written.
    CopyOf(PathBuf),
}

/// Opens the database, and creates the table if it does not exist.
///
/// # Errors
/// [`Trouble`] with the file or the template.
pub fn open(data: &Data, template: &Template) -> Result<Database, Trouble> {
    let (database, file) = match data {
        Data::Memory => (in_memory(), None),
        Data::File(file) => (in_file(file), Some(file)),
        Data::CopyOf(file) => (copy_of(&file.to_string_lossy()), Some(file)),
    };
    let named =
        |error: String| Trouble(file.map_or_else(|| error.clone(), |file| format!("{}: {error}", file.display())));
    let database = database.map_err(|error| named(error.to_string()))?;
    let existing = database.table_count().map_err(|error| named(error.to_string()))?;
    if existing == 0 {
        let mut table = template.table.clone();
        table["TableName"] = TABLE_NAME.into();
        let request: CreateTableRequest = serde_json::from_value(table).map_err(|error| {
            Trouble(format!("the template's table: {}", error.to_string().replace("VALIDATION:", "")))
        })?;
        database.create_table(request).map_err(|error| Trouble(format!("the template's table: {error}")))?;
        if let Some(attribute) = &template.ttl_attribute {
            let specification = json!({"Enabled": true, "AttributeName": attribute});
            let request = json!({"TableName": TABLE_NAME, "TimeToLiveSpecification": specification});
            let request = serde_json::from_value(request).map_err(|error| Trouble(error.to_string()))?;
            database.update_time_to_live(request).map_err(|error| Trouble(format!("the template's table: {error}")))?;
        }
    }
    Ok(database)
}

fn in_file(file: &Path) -> Result<Database, DynoxideError> {
    let file = file.to_string_lossy();
    Storage::new(&file)?.conn().execute_batch(STREAM_INDEX)?;
    Database::new(&file)
}

/// An empty database in memory, copied from a prepared one that has the index of the stream. The name of the prepared
/// one is used only for the copy.
fn in_memory() -> Result<Database, DynoxideError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("file:prepared-{}?mode=memory&cache=shared", NEXT.fetch_add(1, Ordering::Relaxed));
    let prepared = Storage::new(&name)?;
    prepared.conn().execute_batch(STREAM_INDEX)?;
    copy_of(&name)
}

/// The copy contains everything from the original, including the index of the stream.
fn copy_of(name: &str) -> Result<Database, DynoxideError> {
    let copy = Database::memory()?;
    copy.restore_from(name)?;
    Ok(copy)
}

/// Writes the table to `file`, for [`Data::CopyOf`]. Its stream is left out: the changes in it count as handled.
///
/// # Errors
/// [`Trouble`] with the file.
pub fn snapshot(database: &Database, file: &Path) -> Result<(), Trouble> {
    let name = file.to_string_lossy();
    let write = || {
        database.vacuum_into(&name)?;
        Storage::new(&name)?.conn().execute_batch("DELETE FROM _stream_records; VACUUM").map_err(DynoxideError::from)
    };
    write().map_err(|error| Trouble(format!("{name}: {error}")))
}

/// Removes the items of `chosen` keys whose TTL has passed by `now`, and returns their keys. DynamoDB removes each item
/// at an arbitrary time after that.
///
/// # Errors
/// [`Trouble`] of the database.
pub fn expire(database: &Database, now: Timestamp, mut chosen: impl FnMut(&Key) -> bool) -> Result<Vec<Key>, Trouble> {
    let (mut expired, mut next) = (Vec::<Key>::new(), Value::Null);
    loop {
        let page = database.scan(request(json!({
            "ExclusiveStartKey": next, "FilterExpression": "#ttl <= :now", "ProjectionExpression": "pk, sk",
            "ExpressionAttributeNames": {"#ttl": TTL},
            "ExpressionAttributeValues": {":now": {"N": now.unix_seconds().to_string()}},
        }))?);
        let page = json!(page.map_err(|error| Trouble(error.to_string()))?);
        let text = |value: &Value| value["S"].as_str().unwrap_or_default().to_owned();
        let items = page["Items"].as_array().into_iter().flatten();
        expired.extend(items.map(|item| Key { pk: text(&item["pk"]), sk: text(&item["sk"]) }).filter(&mut chosen));
        next = page["LastEvaluatedKey"].clone();
        if next.is_null() {
            break;
        }
    }
    for Key { pk, sk } in &expired {
        let key = json!({"Key": {"pk": {"S": pk}, "sk": {"S": sk}}});
        database.delete_item(request(key)?).map_err(|error| Trouble(error.to_string()))?;
    }
    Ok(expired)
}

/// The first item of each partition of the index of due items, as JSON of DynamoDB.
///
/// # Errors
/// [`Trouble`] of the database.
pub fn first_due(database: &Database) -> Result<Vec<Value>, Trouble> {
    let (mut first, mut start) = (Vec::new(), Value::Null);
    loop {
        let scan = json!({"IndexName": DUE_INDEX, "Limit": 1, "ExclusiveStartKey": start});
        let page = json!(database.scan(request(scan)?).map_err(|error| Trouble(error.to_string()))?);
        let Some(item) = page["Items"].get(0) else { return Ok(first) };
        // The embedded database orders the items of an index by partition and time. With a start key after the last item
        // of this partition, the next scan finds the first item of the next one.
        let last = json!({"S": "~"});
        start = json!({"due_pk": item["due_pk"], "due_at": last, "pk": last, "sk": last});
        first.push(item.clone());
    }
}

/// A request for the table with these members.
///
/// # Errors
/// [`Trouble`] where they form no such request.
pub fn request<T: DeserializeOwned>(mut value: Value) -> Result<T, Trouble> {
    value["TableName"] = TABLE_NAME.into();
    serde_json::from_value(value).map_err(|error| Trouble(error.to_string()))
}

/// The route of `database` for any AWS client. The server of the embedded database itself would let every page read its
/// answers.
pub fn router(database: &Database) -> Router {
    let embedded = Embedded::new(database, &Partitions::default());
    Router::new().route("/", post(answer)).layer(DefaultBodyLimit::max(REQUEST_LIMIT)).with_state(embedded)
}

async fn answer(State(embedded): State<Embedded>, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let action = target.and_then(|target| target.rsplit('.').next()).unwrap_or_default();
    let (status, text) = embedded.answer(action, &body);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [("content-type", "application/x-amz-json-1.0")], text).into_response()
}

/// The SDK with the endpoint `url`. Its time limits are the same as in the functions, or shorter for a test.
pub fn client(url: &str, http: SharedHttpClient, attempt: Duration) -> Client {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(attempt).operation_timeout(attempt * 3).build();
    let retries = RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(5));
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(url)
        .region(Region::new("local"))
        // The embedded database looks at no signature, and to sign a request took a twentieth of the time of all tests.
        .allow_no_auth()
        .http_client(http)
        .timeout_config(timeouts)
        .retry_config(retries)
        .retry_partition(own_retries())
        .build();
    Client::from_conf(config)
}

/// The SDK limits the retries of a process. In the tests, one process runs many stacks, each of which represents a
/// process: a failure in one must not use up the retries of another.
pub fn own_retries() -> RetryPartition {
    RetryPartition::custom("stack").token_bucket(TokenBucket::default()).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions:
        - {AttributeName: pk, AttributeType: S}
        - {AttributeName: sk, AttributeType: S}
        - {AttributeName: due_pk, AttributeType: S}
        - {AttributeName: due_at, AttributeType: S}
      KeySchema: [{AttributeName: pk, KeyType: HASH}, {AttributeName: sk, KeyType: RANGE}]
      BillingMode: PAY_PER_REQUEST
      GlobalSecondaryIndexes:
        - IndexName: Due
          KeySchema: [{AttributeName: due_pk, KeyType: HASH}, {AttributeName: due_at, KeyType: RANGE}]
          Projection: {ProjectionType: KEYS_ONLY}
      StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES}
";

    fn table() -> Database {
        open(&Data::Memory, &Template::parse(TEMPLATE).unwrap()).unwrap()
    }

    fn request<T: DeserializeOwned>(value: Value) -> T {
        super::request(value).unwrap()
    }

    #[test]
    fn a_sparse_index_finds_the_due_items() {
        let database = table();
        for (sk, due) in [("1", Some("2026-02-01T12:00:00Z")), ("2", None), ("3", Some("2026-02-01T13:00:00Z"))] {
            let mut item = json!({"pk": {"S": "A"}, "sk": {"S": sk}, "state": {"S": "waiting"}});
            if let Some(due) = due {
                item["due_pk"] = json!({"S": "DUE"});
                item["due_at"] = json!({"S": due});
            }
            database.put_item(request(json!({"Item": item}))).unwrap();
        }
        let due = |until: &str| {
            let values = json!({":pk": {"S": "DUE"}, ":until": {"S": until}});
            let condition = "due_pk = :pk AND due_at <= :until";
            let query =
                json!({"IndexName": "Due", "KeyConditionExpression": condition, "ExpressionAttributeValues": values});
            let answer = database.query(request(query)).unwrap();
            json!(answer)["Items"].clone()
        };
        let key = |sk: &str, due: &str| json!({"pk": {"S": "A"}, "sk": {"S": sk}, "due_pk": {"S": "DUE"}, "due_at": {"S": due}});
        let first = key("1", "2026-02-01T12:00:00Z");
        assert_eq!(due("2026-02-01T12:30:00Z"), json!([first]));
        assert_eq!(due("2026-02-01T13:00:00Z"), json!([first, key("3", "2026-02-01T13:00:00Z")]));
        let update = json!({"Key": {"pk": {"S": "A"}, "sk": {"S": "1"}}, "UpdateExpression": "REMOVE due_pk, due_at"});
        database.update_item(request(update)).unwrap();
        assert_eq!(due("2026-02-01T12:30:00Z"), json!([]));
    }

    #[test]
    fn the_first_due_item_of_each_partition_is_found() {
        let database = table();
        let due =
            [("B#1", "13"), ("B#1", "12"), ("A#10", "15"), ("A#1", "14"), ("A#1", "16"), ("C#9", "11"), ("A#1", "14")];
        for (place, (partition, at)) in due.into_iter().enumerate() {
            let item = json!({"pk": {"S": "A"}, "sk": {"S": place.to_string()}, "due_pk": {"S": partition}, "due_at": {"S": at}});
            database.put_item(request(json!({"Item": item}))).unwrap();
        }
        let first: Vec<_> = first_due(&database).unwrap().iter().map(|item| item["sk"]["S"].clone()).collect();
        assert_eq!(first, ["3", "2", "1", "5"]);
    }

    #[test]
    fn sums_of_twenty_digits_stay_exact() {
        let database = table();
        let key = json!({"pk": {"S": "A"}, "sk": {"S": "1"}});
        for add in [(1_u64 << 63) - 1, 1 << 63] {
            let values = json!({":n": {"N": add.to_string()}});
            let update = json!({"Key": key, "UpdateExpression": "ADD w :n", "ExpressionAttributeValues": values});
            database.update_item(request(update)).unwrap();
        }
        let item = json!(database.get_item(request(json!({"Key": key}))).unwrap())["Item"].clone();
        assert_eq!(item["w"], json!({"N": u64::MAX.to_string()}));
    }

    #[test]
    fn the_queries_of_the_stream_use_its_index() {
        let file = std::env::temp_dir().join(format!("local-index-{}.db", std::process::id()));
        table().vacuum_into(&file.to_string_lossy()).unwrap();
        let copy = Storage::new(&file.to_string_lossy()).unwrap();
        for query in [
            "SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 FROM _stream_records WHERE table_name = 'x'",
            "SELECT event_name FROM _stream_records WHERE table_name = 'x' AND shard_id = 'y' AND \
             CAST(sequence_number AS INTEGER) > 7 ORDER BY CAST(sequence_number AS INTEGER) ASC LIMIT 9",
        ] {
            let mut plan = copy.conn().prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
            let plan: String = plan.query_row([], |row| row.get(3)).unwrap();
            assert!(
                plan.starts_with("SEARCH _stream_records USING") && plan.contains("stream_records_in_order"),
                "{plan}"
            );
        }
        drop(copy);
        std::fs::remove_file(&file).unwrap();
    }
}
