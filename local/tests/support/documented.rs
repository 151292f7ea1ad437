//! Compares every answer and every delivered event of the tests with the document of the API.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use local::http::{Answer, Call};
use local::openapi::document;
use local::receiver::Received;
use repository::root;
use serde_json::{Value, json};
use shared::routes;

use crate::support::generated::generating;

/// The document.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&root()));

/// The components, closed to unknown members. A client may get unknown members, but a test may get none.
static COMPONENTS: LazyLock<Value> = LazyLock::new(|| {
    let mut components = DOCUMENT["components"].clone();
    close(&mut components["schemas"]);
    components
});

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            // A member may be called `properties`; only a schema of an object has both.
            if members.get("type") == Some(&json!("object")) && members.contains_key("properties") {
                members.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// The components that `schema` refers to, and these to others. The tests compile hundreds of schemas, each with them.
fn components_of(schema: &Value) -> Value {
    let (mut found, mut unread) = (json!({}), references(schema));
    while let Some(reference) = unread.pop() {
        let [kind, name] = reference.splitn(2, '/').collect::<Vec<_>>()[..] else { panic!("{reference}") };
        if found[kind][name].is_null() {
            let component = &COMPONENTS[kind][name];
            unread.extend(references(component));
            found[kind][name] = component.clone();
        }
    }
    found
}

/// Where `schema` refers to, below the components.
fn references(schema: &Value) -> Vec<&str> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str).map(|reference| {
                reference.strip_prefix("#/components/").unwrap_or_else(|| panic!("{reference} is no component"))
            });
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// Compares `value` with the schema that the document has at `pointer`.
pub fn compare(pointer: &str, value: &Value, case: &str) {
    static VALIDATORS: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let schema = DOCUMENT.pointer(pointer).unwrap_or_else(|| panic!("{case}: the document has no {pointer}"));
    let make = || {
        let mut schema = schema.clone();
        schema["components"] = components_of(&schema);
        Arc::new(jsonschema::options().should_validate_formats(true).build(&schema).unwrap())
    };
    let validator = Arc::clone(VALIDATORS.lock().unwrap().entry(pointer.to_owned()).or_insert_with(make));
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{case}: not as documented: {wrong:?}\n{value}");
}

/// `text` as a part of a JSON pointer.
pub fn escaped(text: &str) -> String {
    text.replace('~', "~0").replace('/', "~1")
}

/// Asserts that the document has this answer for its request.
pub fn documented(call: &Call, answer: &Answer) {
    // While `cargo generate` writes the document, it may lack an answer.
    let Some(route) = routes::find(&call.method, &call.path).filter(|_| !generating()) else { return };
    if !routes::ALL.contains(&route) && !routes::SIGNED.contains(&route) {
        return;
    }
    let (path, method, status) = (escaped(route.path), route.method.to_lowercase(), answer.status);
    let mut pointer = format!("/paths/{path}/{method}/responses/{status}");
    if let Some(component) = DOCUMENT.pointer(&pointer).and_then(|response| response["$ref"].as_str()) {
        component[1..].clone_into(&mut pointer);
    }
    // A stored body may be too deep, or have too large numbers, for this parser.
    let Ok(body) = serde_json::from_str(&answer.body) else { return };
    compare(&format!("{pointer}/content/application~1json/schema"), &body, &format!("{} {status}", route.name));
}

/// Asserts that the document has this event.
pub fn documented_event(received: &Received) {
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    let name = body["event"].as_str().unwrap();
    compare(&format!("/webhooks/{name}/post/requestBody/content/application~1json/schema"), &body, name);
    for parameter in DOCUMENT["webhooks"][name]["post"]["parameters"].as_array().unwrap() {
        assert!(received.headers.contains_key(parameter["name"].as_str().unwrap()), "{name} without {parameter}");
    }
}
