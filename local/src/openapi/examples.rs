//! The examples of the document: recorded events and their answers.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use shared::request::route::Route;

/// The case of an event without a case in its name.
const USUAL: &str = "usual";

/// A recorded request.
#[derive(Debug)]
pub(super) struct RecordedRequest {
    /// Its path.
    pub(super) path: String,
    /// Names and values of its query, without the key.
    pub(super) query: Vec<(String, String)>,
    /// Its body.
    pub(super) body: Option<Value>,
}

impl RecordedRequest {
    /// The request of this event of the gateway.
    fn of(event: &Value) -> Self {
        let values = event["multiValueQueryStringParameters"].as_object().into_iter().flatten();
        let query = values.filter(|(name, _)| *name != "api_key").flat_map(|(name, values)| {
            let values = values.as_array().into_iter().flatten().filter_map(Value::as_str);
            values.map(|value| (name.clone(), value.to_owned()))
        });
        let body = event["body"].as_str().and_then(|body| serde_json::from_str(body).ok());
        Self { path: event["path"].as_str().unwrap_or_default().to_owned(), query: query.collect(), body }
    }
}

/// The recorded events and answers of an operation.
#[derive(Debug, Default)]
pub(super) struct Examples {
    /// The usual request.
    pub(super) usual: Option<RecordedRequest>,
    /// Bodies of successful requests, by the case.
    pub(super) requests: Map<String, Value>,
    /// Answers by status, then by the case.
    pub(super) answers: BTreeMap<u16, Map<String, Value>>,
}

impl Examples {
    /// The ones of `route` in the checkout at `root`.
    ///
    /// # Panics
    /// Where a recorded answer cannot be read.
    pub(super) fn read(root: &Path, route: &Route) -> Self {
        let mut examples = Self::default();
        let folder = root.join("events");
        let names = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        for file in names {
            let Some(name) = file.strip_suffix(".json") else { continue };
            let (operation, case) = name.split_once('.').unwrap_or((name, USUAL));
            if operation != route.name {
                continue;
            }
            let answer = std::fs::read_to_string(root.join(format!("local/tests/answers/{name}.txt")));
            let Ok(answer) = answer else { continue };
            let Some((status, body)) =
                answer.split_once('\n').zip(answer.split_once("\n\n")).and_then(|((status, _), (_, body))| {
                    Some((status.parse::<u16>().ok()?, serde_json::from_str::<Value>(body).ok()?))
                })
            else {
                panic!("{name}: this is no answer")
            };
            let event: Value = std::fs::read_to_string(folder.join(&file))
                .ok()
                .and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default();
            if case == USUAL {
                examples.usual = Some(RecordedRequest::of(&event));
            }
            if status < 300
                && let Some(body) = event["body"].as_str().and_then(|body| serde_json::from_str(body).ok())
            {
                examples.requests.insert(case.to_owned(), body);
            }
            examples.answers.entry(status).or_default().insert(case.to_owned(), shortened(body));
        }
        examples
    }
}

/// `answer` with the first records of its page.
fn shortened(mut answer: Value) -> Value {
    if let Some(items) = answer.pointer_mut("/data/items").and_then(Value::as_array_mut) {
        items.truncate(2);
    }
    answer
}
