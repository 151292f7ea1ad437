//! The database calls of one request, for the console: everything that the SDK sends while the request is answered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::Value;
use tokio::task_local;

use crate::traces::Origin;

task_local! {
    /// The recording of the invocation that this task runs.
    static RECORDING: Arc<Recording>;
}

/// The calls of an invocation.
#[derive(Debug)]
struct Recording {
    started: Instant,
    origin: Origin,
    calls: Mutex<Vec<DatabaseCall>>,
}

/// A call of the database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DatabaseCall {
    /// Its name, such as `PutItem`.
    pub action: String,
    /// The keys of its items; if a call has several actions, each key has its action. A query has the values of its
    /// condition.
    pub items: Vec<String>,
    /// The capacity units in its answer.
    pub units: f64,
    /// When it began, counted from the beginning of the request.
    pub began: Duration,
    /// Its duration; `None` while it is running.
    pub took: Option<Duration>,
    /// The kind of failure in its answer.
    pub failure: Option<String>,
}

/// The result of `work`, and the calls of the database that began meanwhile, in order. What they write has a trace of
/// `origin`.
pub async fn recorded<T>(origin: Origin, work: impl Future<Output = T>) -> (T, Vec<DatabaseCall>) {
    let recording = Arc::new(Recording { started: Instant::now(), origin, calls: Mutex::default() });
    let done = RECORDING.scope(Arc::clone(&recording), work).await;
    let calls = std::mem::take(&mut *recording.calls());
    (done, calls)
}

impl Recording {
    fn calls(&self) -> MutexGuard<'_, Vec<DatabaseCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `inner`, with its requests recorded.
pub fn connector(inner: SharedHttpConnector) -> SharedHttpConnector {
    SharedHttpConnector::new(RecordingConnector(inner))
}

#[derive(Debug)]
struct RecordingConnector(SharedHttpConnector);

impl HttpConnector for RecordingConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Ok(recording) = RECORDING.try_with(Arc::clone) else { return self.0.call(request) };
        let Some(call) = begun(&request) else { return self.0.call(request) };
        // Before the write itself: the stream may pass it on before its answer is here.
        let written = writes(&call.action, request.body().bytes().unwrap_or_default());
        let written: Vec<_> = written.iter().flat_map(|(key, item)| recording.origin.writes(key, item)).collect();
        let number = {
            let mut calls = recording.calls();
            calls.push(DatabaseCall { began: recording.started.elapsed(), ..call });
            calls.len() - 1
        };
        let (answer, started) = (self.0.call(request), Instant::now());
        HttpConnectorFuture::new(async move {
            let mut response = answer.await?;
            let text = text(&mut response).await?;
            let mut calls = recording.calls();
            if let Some(call) = calls.get_mut(number) {
                ended(call, started.elapsed(), &text);
                if call.failure.is_some() {
                    recording.origin.undo(written);
                }
            }
            Ok(response)
        })
    }
}

/// The body of `response`, which keeps its copy.
async fn text(response: &mut HttpResponse) -> Result<Vec<u8>, ConnectorError> {
    let body = std::mem::replace(response.body_mut(), SdkBody::taken());
    let body = ByteStream::new(body).collect().await;
    let body = body.map_err(|error| ConnectorError::io(error.into()))?.into_bytes().to_vec();
    *response.body_mut() = SdkBody::from(body.clone());
    Ok(body)
}

/// The call in `request`; `None` if the request is not for the database.
pub(crate) fn begun(request: &HttpRequest) -> Option<DatabaseCall> {
    let action = request.headers().get("x-amz-target")?.rsplit('.').next()?.to_owned();
    let body: Value = serde_json::from_slice(request.body().bytes()?).ok()?;
    let items = match body["KeyConditionExpression"].as_str() {
        Some(condition) => vec![queried(condition, &body)],
        None => keys(&body).into_iter().map(|(done, key, _)| done.to_owned() + &key).collect(),
    };
    Some(DatabaseCall { action, items, ..DatabaseCall::default() })
}

/// The primary keys at any depth of `value`, each with the action of the transaction or batch, and the item or key that
/// has it.
fn keys(value: &Value) -> Vec<(&'static str, String, &Value)> {
    match value {
        Value::Array(values) => values.iter().flat_map(keys).collect(),
        Value::Object(map) => {
            if let (Some(pk), Some(sk)) = (value["pk"]["S"].as_str(), value["sk"]["S"].as_str()) {
                return vec![("", format!("{pk} {sk}"), value)];
            }
            let labelled = |(name, value)| {
                let (name, value): (&String, &Value) = (name, value);
                let label = match name.as_str() {
                    "Put" | "PutRequest" => "Put ",
                    "Delete" | "DeleteRequest" => "Delete ",
                    "Update" => "Update ",
                    "ConditionCheck" => "ConditionCheck ",
                    _ => return keys(value),
                };
                keys(value).into_iter().map(|(_, key, item)| (label, key, item)).collect()
            };
            map.iter().flat_map(labelled).collect()
        }
        _ => Vec::new(),
    }
}

/// The keys of the items that a call writes, one for each action; none for a batch, which counts as many plain writes.
pub fn written(action: &str, body: &[u8]) -> Vec<String> {
    if !["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"].contains(&action) {
        return Vec::new();
    }
    keys(&serde_json::from_slice(body).unwrap_or_default()).into_iter().map(|(_, key, _)| key).collect()
}

/// The keys of the items that a call of any kind changes, each with all that the call says about the item.
fn writes(action: &str, body: &[u8]) -> Vec<(String, Value)> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let found = keys(&body).into_iter();
    match action {
        // The values of an update are beside its key.
        "UpdateItem" => found.map(|(_, key, _)| (key, body.clone())).collect(),
        "PutItem" | "DeleteItem" | "TransactWriteItems" | "BatchWriteItem" => {
            let changed = found.filter(|(done, _, _)| *done != "ConditionCheck ");
            changed.map(|(_, key, item)| (key, item.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// The condition of a query with its values, and its index.
fn queried(condition: &str, body: &Value) -> String {
    let mut shown = condition.to_owned();
    let mut values: Vec<_> = body["ExpressionAttributeValues"].as_object().into_iter().flatten().collect();
    // A name may be the beginning of another one.
    values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in values {
        shown = shown.replace(name.as_str(), value["S"].as_str().or(value["N"].as_str()).unwrap_or("?"));
    }
    let index = body["IndexName"].as_str().map(|index| format!("index {index}: "));
    index.unwrap_or_default() + &shown
}

/// Records the content of the answer `text`.
fn ended(call: &mut DatabaseCall, took: Duration, text: &[u8]) {
    let answer: Value = serde_json::from_slice(text).unwrap_or_default();
    let consumed = &answer["ConsumedCapacity"];
    let each = consumed.as_array().map_or(std::slice::from_ref(consumed), Vec::as_slice);
    call.units = each.iter().filter_map(|consumed| consumed["CapacityUnits"].as_f64()).sum();
    call.took = Some(took);
    call.failure = answer["__type"].as_str().and_then(|kind| kind.rsplit('#').next()).map(str::to_owned);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(action: &str, body: &Value) -> DatabaseCall {
        let mut request = HttpRequest::new(SdkBody::from(body.to_string()));
        request.headers_mut().insert("x-amz-target", format!("DynamoDB_20120810.{action}"));
        begun(&request).unwrap()
    }

    #[test]
    fn a_call_lists_its_items_with_their_actions() {
        let key = |sk: &str| json!({"pk": {"S": "ORG#1#TAG"}, "sk": {"S": sk}, "name": {"S": "pk"}});
        for (action, body, items) in [
            ("GetItem", json!({"TableName": "t", "Key": key("1")}), vec!["ORG#1#TAG 1"]),
            ("PutItem", json!({"Item": key("1")}), vec!["ORG#1#TAG 1"]),
            (
                "BatchGetItem",
                json!({"RequestItems": {"t": {"Keys": [key("2"), key("1")]}}}),
                vec!["ORG#1#TAG 2", "ORG#1#TAG 1"],
            ),
            (
                "BatchWriteItem",
                json!({"RequestItems": {"t": [{"PutRequest": {"Item": key("1")}}, {"DeleteRequest": {"Key": key("2")}}]}}),
                vec!["Put ORG#1#TAG 1", "Delete ORG#1#TAG 2"],
            ),
            (
                "TransactWriteItems",
                json!({"TransactItems": [{"ConditionCheck": {"Key": key("1")}}, {"Update": {"Key": key("2")}}, {"Put": {"Item": key("3")}}]}),
                vec!["ConditionCheck ORG#1#TAG 1", "Update ORG#1#TAG 2", "Put ORG#1#TAG 3"],
            ),
            (
                "Query",
                json!({
                    "KeyConditionExpression": "pk = :pk AND sk BETWEEN :sk AND :sk_2", "IndexName": "Due",
                    "ExpressionAttributeValues": {":pk": {"S": "ORG#1"}, ":sk": {"S": "1"}, ":sk_2": {"S": "2"}},
                }),
                vec!["index Due: pk = ORG#1 AND sk BETWEEN 1 AND 2"],
            ),
        ] {
            assert_eq!(
                call(action, &body),
                DatabaseCall {
                    action: action.into(),
                    items: items.into_iter().map(Into::into).collect(),
                    ..DatabaseCall::default()
                }
            );
        }
    }

    #[test]
    fn a_call_has_the_units_of_all_tables_and_its_failure() {
        let units_and_error = |answer: &Value| {
            let mut call = DatabaseCall::default();
            ended(&mut call, Duration::ZERO, answer.to_string().as_bytes());
            (call.units, call.failure)
        };
        assert_eq!(units_and_error(&json!({"ConsumedCapacity": {"CapacityUnits": 0.5}})), (0.5, None));
        assert_eq!(
            units_and_error(&json!({"ConsumedCapacity": [{"CapacityUnits": 2.0}, {"CapacityUnits": 4.0}]})),
            (6.0, None)
        );
        let refused = json!({"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"});
        assert_eq!(units_and_error(&refused), (0.0, Some("ConditionalCheckFailedException".into())));
    }
}
