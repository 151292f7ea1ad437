//! The calls of the replay: the recorded event of every route as an HTTP request, and calls that cannot be recorded as
//! events.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use form_urlencoded::Serializer;
use serde_json::Value;
use shared::routes;

use crate::Trouble;
use crate::http::Call;

/// The prefix of the demo set's ids.
const DEMO_IDS: &str = "01900000-0000-7";
/// The prefix of ids that do not exist: their time is five hundred years from now.
const UNKNOWN_IDS: &str = "0fffffff-0000-7";

/// The event whose key is the demo set's full one.
const WITH_KEY: &str = routes::GET_AGENT_LIST.name;

/// A call and its name, which begins with that of its function if it is recorded.
#[derive(Debug, Clone)]
pub struct NamedCall {
    /// Its name in the report.
    pub name: String,
    /// The call.
    pub call: Call,
}

/// The calls, and the key in them.
#[derive(Debug)]
pub struct Recorded {
    /// The demo set's full key.
    pub key: String,
    /// The calls: first the ones that read, last the ones that delete.
    pub calls: Vec<NamedCall>,
}

/// The calls, as recorded: for a service with the demo set.
///
/// # Errors
/// [`Trouble`] where `events/` cannot be read.
pub fn recorded(root: &Path) -> Result<Recorded, Trouble> {
    let folder = root.join("events");
    let unreadable = |error: std::io::Error| Trouble(format!("{}: {error}", folder.display()));
    let mut events = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        let text = std::fs::read_to_string(&path).map_err(unreadable)?;
        let event: Value =
            serde_json::from_str(&text).map_err(|error| Trouble(format!("{}: {error}", path.display())))?;
        events.push((name, event));
    }
    events.sort_by(|(left, _), (right, _)| left.cmp(right));
    let with_key = events.iter().find(|(name, _)| name == WITH_KEY);
    let key = with_key.and_then(|(_, event)| event["queryStringParameters"]["api_key"].as_str()).map(str::to_owned);
    let key = key.ok_or_else(|| Trouble(format!("{}: no {WITH_KEY}.json with a key", folder.display())))?;
    let mut calls = unrecorded(&key);
    for (name, event) in events {
        let function = name.split('.').next().unwrap_or_default();
        if !routes::ALL.iter().any(|route| route.name == function) {
            // An event of a schedule, the stream or an operator is no HTTP call; a document contains its own address;
            // and a signature is valid for five minutes only.
            continue;
        }
        let call = call_of(&event).ok_or_else(|| Trouble(format!("events/{name}.json is no event of API Gateway")))?;
        calls.push(NamedCall { name, call });
    }
    // A record must be read before it is deleted.
    calls.sort_by_key(|NamedCall { call, .. }| match call.method.as_str() {
        "GET" => 0,
        "DELETE" => 2,
        _ => 1,
    });
    Ok(Recorded { key, calls })
}

/// The calls, with ids that do not exist in place of the demo set's.
pub fn with_unknown_ids(calls: Vec<NamedCall>) -> Vec<NamedCall> {
    let replaced = |NamedCall { name, call }| {
        let path = call.path.replace(DEMO_IDS, UNKNOWN_IDS);
        let query = call.query.replace(DEMO_IDS, UNKNOWN_IDS);
        let body = String::from_utf8_lossy(&call.body).replace(DEMO_IDS, UNKNOWN_IDS).into_bytes();
        NamedCall { name, call: Call { path, query, body, ..call } }
    };
    calls.into_iter().map(replaced).collect()
}

/// Whether the key of `call` is another key of the demo set than `key`: only a service with the demo set knows it.
pub fn takes_another_demo_key(call: &Call, key: &str) -> bool {
    call.query.contains("api_key=in-demo-") && !call.query.contains(key)
}

/// Whether the call sends values of custom fields.
pub fn has_custom_fields(call: &Call) -> bool {
    String::from_utf8_lossy(&call.body).contains("\"custom_fields\":{\"")
}

/// Calls about the gateway itself: both places of the key and none, both forms of a path, and a text that is no path.
fn unrecorded(key: &str) -> Vec<NamedCall> {
    let (users, links) = (routes::GET_AGENT_LIST.path, routes::READ_LINK_TAG_ENTITY_LIST.path);
    let call = |name: &str, method: &str, path: &str, query: String| NamedCall {
        name: name.to_owned(),
        call: Call { method: method.to_owned(), path: path.to_owned(), query, ..Call::default() },
    };
    let query = format!("api_key={key}&size=1");
    let mut in_header = call("key in the header", "GET", users, "size=1".to_owned());
    in_header.call.headers.insert("authorization".to_owned(), format!("Bearer {key}"));
    vec![
        in_header,
        call("path without its slash", "GET", users.trim_end_matches('/'), query.clone()),
        call("path with a slash more", "GET", &format!("{links}/"), query.clone()),
        call("unknown path", "GET", "/api/v1/nothing", query.clone()),
        call("unknown method", "PUT", users, query),
        call("no key", "GET", routes::READ_OWN_USER.path, String::new()),
    ]
}

/// The request of `event`; `None` if it is no event of API Gateway.
fn call_of(event: &Value) -> Option<Call> {
    let mut query = Serializer::new(String::new());
    for (name, values) in event["multiValueQueryStringParameters"].as_object().into_iter().flatten() {
        for value in values.as_array()? {
            query.append_pair(name, value.as_str()?);
        }
    }
    let headers = event["headers"].as_object().into_iter().flatten();
    let headers = headers.filter(|(name, _)| !["host", "content-length"].contains(&name.to_lowercase().as_str()));
    let body = event["body"].as_str().unwrap_or_default();
    let encoded = event["isBase64Encoded"].as_bool()?;
    Some(Call {
        method: event["httpMethod"].as_str()?.to_owned(),
        path: event["path"].as_str()?.to_owned(),
        query: query.finish(),
        headers: headers
            .map(|(name, value)| Some((name.to_lowercase(), value.as_str()?.to_owned())))
            .collect::<Option<_>>()?,
        body: if encoded { STANDARD.decode(body).ok()? } else { body.as_bytes().to_vec() },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_converted_back_to_its_request() {
        let event = json!({
            "httpMethod": "POST",
            "path": "/api/v1/tag/%C3%A9",
            "headers": {"Accept": "*/*", "Host": "localhost", "content-length": "2"},
            "multiValueQueryStringParameters": {"a": ["1 2", "&"], "b": ["="]},
            "isBase64Encoded": true,
            "body": "/w==",
        });
        let call = call_of(&event).unwrap();
        assert_eq!((call.method.as_str(), call.path.as_str()), ("POST", "/api/v1/tag/%C3%A9"));
        assert_eq!(call.query, "a=1+2&a=%26&b=%3D");
        assert_eq!(call.headers, [("accept".to_owned(), "*/*".to_owned())].into());
        assert_eq!(call.body, [0xff]);
        assert!(call_of(&json!({"Records": []})).is_none());
    }

    #[test]
    fn calls_with_unknown_ids_have_no_demo_id() {
        let recorded = recorded(&repository::root()).unwrap();
        let holds = |calls: &[NamedCall], ids: &str| {
            calls.iter().any(|NamedCall { call, .. }| {
                call.path.contains(ids) || String::from_utf8_lossy(&call.body).contains(ids) || call.query.contains(ids)
            })
        };
        assert!(holds(&recorded.calls, DEMO_IDS));
        let other_key = |call: &&NamedCall| takes_another_demo_key(&call.call, &recorded.key);
        let other_keys: Vec<_> = recorded.calls.iter().filter(other_key).map(|call| call.name.as_str()).collect();
        assert_eq!(other_keys, ["read-own-user", "create-assistant.read-only-key"]);
        let unknown = with_unknown_ids(recorded.calls);
        assert!(!holds(&unknown, DEMO_IDS) && holds(&unknown, UNKNOWN_IDS));
    }
}
