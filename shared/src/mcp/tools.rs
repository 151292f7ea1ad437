//! The tools: one for each operation, made from its description in the document of the API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::request::error::{Error, Result};
use crate::request::route::Route;
use crate::routes;

/// A tool.
#[derive(Debug)]
pub struct Tool {
    /// The operation.
    pub route: &'static Route,
    /// Its declaration for clients.
    pub declared: Value,
}

impl Tool {
    /// The names that `place` accepts; `None` if the operation has no arguments there.
    pub fn names(&self, place: &str) -> Option<&Map<String, Value>> {
        self.declared["inputSchema"]["properties"].get(place)?["properties"].as_object()
    }

    /// The places of its arguments.
    pub fn places(&self) -> Option<&Map<String, Value>> {
        self.declared["inputSchema"]["properties"].as_object()
    }
}

/// The tools of `document`, in the order of the route table. A process makes them once.
///
/// # Errors
/// [`Error::Internal`] where the document does not have the operations. A test excludes this.
pub fn list(document: &'static str) -> Result<&'static [Tool]> {
    static TOOLS: OnceLock<std::result::Result<Vec<Tool>, String>> = OnceLock::new();
    let tools = TOOLS.get_or_init(|| made(document).map_err(|error| error.to_string()));
    tools.as_deref().map_err(|error| Error::Internal(format!("the document of the API: {error}")))
}

/// The reason why there are no tools.
#[derive(Debug, thiserror::Error)]
enum NoTools {
    #[error(transparent)]
    Unreadable(#[from] serde_json::Error),
    #[error("it does not have {0}")]
    Missing(&'static str),
}

/// The parts of the document that are read. The answers, which are most of it, are skipped.
#[derive(Deserialize)]
struct ApiDocument {
    paths: BTreeMap<String, BTreeMap<String, DocumentedOperation>>,
    components: DocumentedComponents,
}

#[derive(Deserialize)]
struct DocumentedComponents {
    schemas: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocumentedOperation {
    summary: String,
    description: String,
    parameters: Vec<Parameter>,
    request_body: Option<RequestBody>,
    responses: BTreeMap<String, Box<RawValue>>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    #[serde(rename = "in")]
    place: String,
    required: bool,
    description: String,
    schema: Value,
}

#[derive(Deserialize)]
struct RequestBody {
    required: bool,
    content: MediaTypes,
}

#[derive(Deserialize)]
struct MediaTypes {
    #[serde(rename = "application/json")]
    json: MediaType,
}

#[derive(Deserialize)]
struct MediaType {
    schema: Value,
}

fn made(document: &str) -> std::result::Result<Vec<Tool>, NoTools> {
    let mut document: ApiDocument = serde_json::from_str(document)?;
    let mut tool = |route: &'static Route| {
        let methods = document.paths.get_mut(route.path);
        let operation = methods.and_then(|methods| methods.remove(&route.method.to_lowercase()));
        let operation = operation.ok_or(NoTools::Missing(route.name))?;
        Ok(Tool { route, declared: declared(route, operation, &document.components.schemas) })
    };
    routes::ALL.iter().map(|route| tool(route)).collect()
}

fn declared(route: &Route, operation: DocumentedOperation, components: &BTreeMap<String, Value>) -> Value {
    // An operation that only creates a record changes no existing one.
    let successes: Vec<_> = operation.responses.keys().filter(|status| status.starts_with('2')).collect();
    let adds = successes == ["201"];
    let annotations = json!({
        "readOnlyHint": !route.writes(),
        "destructiveHint": route.writes() && !adds,
        "idempotentHint": route.method != "POST",
    });
    let (title, description) = (operation.summary.clone(), operation.description.clone());
    json!({
        "name": route.name,
        "title": title,
        "description": description,
        "inputSchema": input_schema(operation, components),
        "annotations": annotations,
    })
}

/// The arguments, grouped by their place in a request. The `loc` of an issue contains the same names as the path to an
/// argument.
fn input_schema(operation: DocumentedOperation, components: &BTreeMap<String, Value>) -> Value {
    let mut places: BTreeMap<String, (Map<String, Value>, Vec<String>)> = BTreeMap::new();
    for Parameter { name, place, required, description, mut schema } in operation.parameters {
        // The names of headers are compared without regard to case; an issue has them in lower case.
        let name = if place == "header" { name.to_lowercase() } else { name };
        schema["description"] = description.into();
        let (properties, needed) = places.entry(place).or_default();
        if required {
            needed.push(name.clone());
        }
        properties.insert(name, schema);
    }
    let (mut properties, mut needed) = (Map::new(), Vec::new());
    for (place, (members, required)) in places {
        if !required.is_empty() {
            needed.push(place.clone());
        }
        properties.insert(place, closed(&members, &required));
    }
    if let Some(RequestBody { required, content: MediaTypes { json } }) = operation.request_body {
        if required {
            needed.push("body".to_owned());
        }
        properties.insert("body".to_owned(), json.schema);
    }
    let mut schema = closed(&properties, &needed);
    let (mut used, mut defs) = (BTreeSet::new(), Map::new());
    take_references(&mut schema, &mut used);
    while let Some(name) = used.pop_first() {
        if let Some(component) = components.get(&name).filter(|_| !defs.contains_key(&name)) {
            let mut component = component.clone();
            take_references(&mut component, &mut used);
            defs.insert(name, component);
        }
    }
    if !defs.is_empty() {
        schema["$defs"] = defs.into();
    }
    schema
}

/// An object with these members and no others.
fn closed(properties: &Map<String, Value>, required: &[String]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Makes references to components point to the schema's own definitions, and collects the names of these.
fn take_references(schema: &mut Value, used: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            let component = |reference: &str| reference.strip_prefix("#/components/schemas/").map(str::to_owned);
            if let Some(name) = members.get("$ref").and_then(Value::as_str).and_then(component) {
                members.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
                used.insert(name);
            }
            members.values_mut().for_each(|member| take_references(member, used));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_references(item, used)),
        _ => {}
    }
}
