//! `openapi.json` says what the service does: every answer that a test gets, and every event that is delivered, is compared with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use local::collections::{BRUNO, Collections};
use local::http::{Answer, Call};
use local::openapi::{EVENTS, document, operation_id};
use local::receiver::Received;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;
use shared::routes;

use crate::campaigns::Sender;
use crate::contract::{generated, generating, names_in};
use crate::fixture::{call, root, stack};
use crate::sending::{World, id_of};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&root()));

/// The components, without members that they do not name: a client may get more than it knows, but no test may.
static COMPONENTS: LazyLock<Value> = LazyLock::new(|| {
    let mut components = DOCUMENT["components"].clone();
    close(&mut components["schemas"]);
    components
});

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            // A member that is called `properties` is none.
            if members.get("type") == Some(&json!("object")) && members.contains_key("properties") {
                members.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Compares `value` with the schema that the document has at `pointer`.
fn compare(pointer: &str, value: &Value, what: &str) {
    static VALIDATORS: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let schema = DOCUMENT.pointer(pointer).unwrap_or_else(|| panic!("{what}: the document has no {pointer}"));
    let make = || {
        let mut schema = schema.clone();
        schema["components"] = COMPONENTS.clone();
        Arc::new(jsonschema::options().should_validate_formats(true).build(&schema).unwrap())
    };
    let validator = Arc::clone(VALIDATORS.lock().unwrap().entry(pointer.to_owned()).or_insert_with(make));
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{what}: not as documented: {wrong:?}\n{value}");
}

/// `text` as a part of a JSON pointer.
fn escaped(text: &str) -> String {
    text.replace('~', "~0").replace('/', "~1")
}

/// An answer is one of those that the document has for its request.
pub fn documented(call: &Call, answer: &Answer) {
    // What is recorded anew may be an answer that the document does not have yet.
    let Some(route) = routes::find(&call.method, &call.path).filter(|_| !generating()) else { return };
    if !routes::ALL.contains(&route) && !routes::SIGNED.contains(&route) {
        return;
    }
    let (path, method, status) = (escaped(route.path), route.method.to_lowercase(), answer.status);
    let mut pointer = format!("/paths/{path}/{method}/responses/{status}");
    if let Some(component) = DOCUMENT.pointer(&pointer).and_then(|response| response["$ref"].as_str()) {
        component[1..].clone_into(&mut pointer);
    }
    // What a caller has stored may be deeper, or have larger numbers, than this program can hold.
    let Ok(body) = serde_json::from_str(&answer.body) else { return };
    compare(&format!("{pointer}/content/application~1json/schema"), &body, &format!("{} {status}", route.name));
}

/// An event is one of those that the document has.
pub fn documented_event(received: &Received) {
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    let name = body["event"].as_str().unwrap();
    compare(&format!("/webhooks/{name}/post/requestBody/content/application~1json/schema"), &body, name);
    for parameter in DOCUMENT["webhooks"][name]["post"]["parameters"].as_array().unwrap() {
        assert!(received.headers.contains_key(parameter["name"].as_str().unwrap()), "{name} without {parameter}");
    }
}

/// Records an event of each kind, as its endpoint received it.
#[tokio::test]
async fn an_event_of_each_kind_is_recorded() {
    let mut received = Vec::new();
    for kind in [WidgetType::Whatsapp, WidgetType::Phone] {
        let sender = Sender::of(World::start().await, kind, true, 1).await;
        let campaign = sender.run(json!({"message": "We open an hour earlier this week."})).await;
        sender.minute(&[&campaign]).await;
        let (world, org) = (&sender.world, &sender.org);
        if kind == WidgetType::Whatsapp {
            world.close(org, &sender.conversations().await[0]).await;
            let webhooks = world.get(org, "/api/v1/outbound_webhook/list").await;
            let test = format!("/api/v1/outbound_webhook/{}/test", id_of(&webhooks["items"][0]));
            world.post(org, &test, Value::Null).await;
        }
        let (path, body) = if kind.calls() {
            ("call", json!({"to": "+49 151 2345678", "prompt_dynamic_variables": {"name": "Ada", "table": 7}}))
        } else {
            ("messaging", json!({"to": "+49 151 2345678", "message": "Your table is ready."}))
        };
        world.post(org, &format!("/api/v1/{path}/{}", sender.widget.id), body).await;
        world.settle().await;
        received.extend(world.receiver.all());
    }
    let mut kinds = BTreeSet::new();
    for one in received {
        let body: Value = serde_json::from_slice(&one.body).unwrap();
        let kind = body["event"].as_str().unwrap().to_owned();
        generated(&format!("{EVENTS}/{kind}.json"), &(serde_json::to_string_pretty(&body).unwrap() + "\n"));
        assert!(kinds.insert(kind), "{kinds:?}");
    }
    let known: BTreeSet<String> = DOCUMENT["webhooks"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(kinds, known);
}

#[tokio::test]
async fn the_document_is_served_to_anybody() {
    let stack = stack().await;
    let answer = stack.answer(&call("GET", routes::READ_OPENAPI.path, "")).await;
    assert_eq!((answer.status, answer.headers["content-type"].as_str()), (200, "application/json"));
    let file = std::fs::read_to_string(root().join("openapi.json")).unwrap();
    let server = |url: &str| format!("\"url\": \"{url}\"");
    assert_eq!(answer.body, file.replacen(&server("/"), &server(&stack.url), 1));
    assert_ne!(answer.body, file);
}

#[test]
fn the_document_is_up_to_date() {
    generated("openapi.json", &(serde_json::to_string_pretty(&*DOCUMENT).unwrap() + "\n"));
}

#[test]
fn every_example_of_the_document_is_as_documented() {
    let mut compared = 0;
    for (path, operations) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let mut contents = vec!["requestBody".to_owned()];
            contents
                .extend(operation["responses"].as_object().unwrap().keys().map(|status| format!("responses/{status}")));
            for place in contents {
                let pointer = format!("/paths/{}/{method}/{place}/content/application~1json", escaped(path));
                let Some(content) = DOCUMENT.pointer(&pointer) else { continue };
                for (case, example) in content["examples"].as_object().into_iter().flatten() {
                    // A request may have more than is documented.
                    compare(&format!("{pointer}/schema"), &example["value"], &format!("{method} {path} {case}"));
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > routes::ALL.len(), "{compared}");
}

#[test]
fn every_operation_and_every_component_is_in_the_document_once() {
    let operations: Vec<&str> = DOCUMENT["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|operations| operations.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let routes = routes::ALL.iter().chain(routes::SIGNED);
    let known: BTreeSet<String> = routes.map(|route| operation_id(route.name)).collect();
    assert_eq!(operations.len(), known.len());
    assert_eq!(operations.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), known);
    let text = DOCUMENT.to_string();
    for name in DOCUMENT["components"]["schemas"].as_object().unwrap().keys() {
        assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "{name} is used nowhere");
    }
    // What a component would be has a title. None is left where it is used.
    assert!(!text.contains("\"title\":\"New") && !text.contains("$comment"));
}

#[test]
fn the_collections_have_the_recorded_request_of_every_operation() {
    let collections = Collections::read(&root()).unwrap();
    generated("clients/api.http", &collections.http());
    let files = collections.bruno();
    for (path, text) in &files {
        generated(&format!("{BRUNO}/{path}"), text);
    }
    let folders = names_in(BRUNO).into_iter().filter(|name| root().join(BRUNO).join(name).is_dir());
    let names = folders.flat_map(|folder| {
        names_in(&format!("{BRUNO}/{folder}")).into_iter().map(move |name| format!("{folder}/{name}"))
    });
    let left: Vec<String> = names.filter(|path| !files.contains_key(path)).collect();
    assert_eq!(left, Vec::<String>::new(), "no operation has these");
}
