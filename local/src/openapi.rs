//! The OpenAPI document. It is made from the route table, from the schemas of records and operations, from the first
//! lines of the operations' files, from the names of the plain operations, and from the recorded events and their
//! answers. Only text that no code contains is written for the document alone.

mod examples;
pub mod guides;
mod names;
pub mod samples;
mod summaries;
mod tags;

use std::collections::BTreeMap;
use std::path::Path;

use repository::plain::{PlainOperation, own_file, spaced, with_article};
use serde_json::{Map, Value, json};
use shared::delivery::event;
use shared::input::Issue;
use shared::input::form::FORM;
use shared::input::schema::{ABOUT, MOST, Member, Schema as _, capitalised, described, object, titled};
use shared::request::idempotency;
use shared::request::limit::headers;
use shared::request::pipeline::Description;
use shared::request::route::{Access, Route};
use shared::routes;

pub use crate::client_names::operation_id;
use crate::functions::describe;
use crate::openapi::examples::Examples;
use crate::openapi::names::component_name;
pub(crate) use crate::openapi::summaries::summary;

/// The server in the file. The function that serves the document replaces it with its own address.
pub const SERVER: &str = "/";

/// The version of the API, as the paths have it. A release of the service does not change it.
pub const VERSION: &str = "v1";

/// The name of the scheme by which a key is sent: a name in the document has no space.
pub const KEY_SCHEME: &str = "API-key";

/// The document's description of the API as a whole.
const ABOUT_THE_API: &str = "Conversational assistants, and what is around them: widgets, contacts, campaigns, data sources, agencies. \
    Send the API key in the header `Authorization`, as a bearer token. Every success is an object with `message`, `meta` and `data`; every failure has the list `detail`, whose entries say where the input is wrong.";

/// The folder with an event of each kind, as an endpoint received it.
pub const EVENTS: &str = "local/tests/received";

/// Answers of an operation in addition to the ones of its route and the recorded ones.
const ALSO: [(u16, &[&str]); 3] = [
    (402, &["create-assistant", "add-message", "add-datasource-text-blob"]),
    (404, &["read-own-user", "read-usage"]),
    (502, &["setup-payment-webhook", "check-payment-webhook"]),
];

/// The parameters that every list has: they select nothing.
const OF_EVERY_LIST: [&str; 3] = ["order", "page", "size"];

/// The headers of an event, with their descriptions.
const EVENT_HEADERS: [(&str, &str); 3] = [
    ("webhook-id", "The event's id: the same on every attempt."),
    ("webhook-timestamp", "When this attempt was signed, in seconds since 1970."),
    (
        "webhook-signature",
        "`v1,` and the base64 of the HMAC-SHA256 of id, timestamp and body, joined by dots; one for each valid secret.",
    ),
];

/// The document of the checkout at `root`.
///
/// # Panics
/// Where a file of the checkout is not as the contract tests require it, or two components have the same name.
pub fn document(root: &Path) -> Value {
    let mut components = Components::default();
    let failure = components.hoist(failure_schema());
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in routes::ALL.iter().chain(routes::SIGNED) {
        let operation = operation(root, route, &failure, &mut components);
        for path in route.aliases {
            paths.entry(path).or_default().insert(route.method.to_lowercase(), alias(route, path, &operation));
        }
        paths.entry(route.path).or_default().insert(route.method.to_lowercase(), operation);
    }
    let failures = FAILURES
        .iter()
        .map(|(status, name, meaning)| ((*name).to_owned(), response(*status, meaning, &failure, &Map::new())));
    let failures: Map<_, _> = failures.collect();
    let events = event::schemas().into_iter().chain(shared::reactions::emit::schemas());
    let webhooks: Map<_, _> = events
        .map(|(kind, schema)| (kind.to_string(), webhook(root, kind.as_str(), schema, &mut components)))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": routes::TITLE,
            "version": VERSION,
            "description": format!("{ABOUT_THE_API}\n\n{}", guides::all(root)),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": SERVER}],
        "security": [{(KEY_SCHEME): []}, {"api_key": []}],
        "tags": tags::tags(&components.0),
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "securitySchemes": {
                (KEY_SCHEME): {"type": "http", "scheme": "bearer", "bearerFormat": "API key", "description": "An API key in the header `Authorization`."},
                "api_key": {"type": "apiKey", "in": "query", "name": "api_key", "description": "The same in the query, for callers that can set no header: addresses get into histories and logs."},
            },
            "headers": {
                "RequestId": {"description": "Names the request in the log.", "schema": {"type": "string"}},
                "RateLimit": {"description": "That nothing is left of the key's limit, and the seconds until something is.", "schema": {"type": "string"}},
                "RateLimitPolicy": {"description": "The key's limit: `q` requests at once, which take `w` seconds to come back.", "schema": {"type": "string"}},
                "RetryAfter": {"description": "Seconds after which to try again.", "schema": {"type": "integer"}},
                "WwwAuthenticate": {"description": "How to say who calls.", "schema": {"type": "string"}},
            },
            "responses": failures,
            "schemas": components.0,
        },
    })
}

/// A schema with a title is a component; each use of it is a reference.
#[derive(Debug, Default)]
struct Components(BTreeMap<String, Value>);

impl Components {
    /// `schema` with references in place of the components in it.
    fn hoist(&mut self, mut schema: Value) -> Value {
        match &mut schema {
            Value::Array(items) => items.iter_mut().for_each(|item| *item = self.hoist(item.take())),
            Value::Object(members) => {
                members.remove(MOST);
                // Generators of clients cannot read the default of an object with members.
                members.retain(|name, value| name != "default" || value.as_object().is_none_or(Map::is_empty));
                // A member may be called `title` or `default`: the map of the members is no schema itself.
                for property in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
                    *property.1 = self.hoist(property.1.take());
                }
                // A default value is no schema either.
                let inner = members
                    .iter_mut()
                    .filter(|(name, _)| !["default", "enum", "const", "properties"].contains(&name.as_str()));
                inner.for_each(|(_, member)| *member = self.hoist(member.take()));
                if let Some(title) = members.remove("title").and_then(|title| title.as_str().map(component_name)) {
                    let outside = ["description", "default"].map(|name| (name, members.remove(name)));
                    if let Some(about) = members.remove(ABOUT) {
                        members.insert("description".to_owned(), about);
                    }
                    let reference = format!("#/components/schemas/{title}");
                    let known = self.0.insert(title.clone(), schema.clone());
                    assert!(known.is_none_or(|known| known == schema), "two components are called {title}");
                    schema = json!({"$ref": reference});
                    for (name, value) in outside {
                        if let Some(value) = value {
                            schema[name] = value;
                        }
                    }
                }
            }
            _ => {}
        }
        schema
    }
}

/// The body of every failure.
fn failure_schema() -> Value {
    let issues = json!({"type": "array", "items": Issue::schema(), "minItems": 1});
    let detail = Member { name: "detail", required: true, schema: described(issues, "What is wrong, and where.") };
    titled(object(vec![detail]), "Failure", "The body of every failure.")
}

fn operation(root: &Path, route: &Route, failure: &Value, components: &mut Components) -> Value {
    let Description { path, query, body, form, reply, signature } = describe(route.name);
    let mut parameters = Vec::new();
    for (place, schema) in [("path", path), ("query", query)] {
        // In the order of the path.
        let order = |name: &str| route.parameters().position(|parameter| parameter == name);
        let required = schema["required"].clone();
        let mut members: Vec<_> = schema["properties"].as_object().cloned().unwrap_or_default().into_iter().collect();
        members.sort_by_key(|(name, _)| order(name));
        for (name, schema) in members {
            let mut schema = components.hoist(without_null(schema));
            // An address holds no longer text: the gateway refuses it.
            schema.get_mut("maxLength").iter_mut().for_each(|most| **most = most.as_u64().min(Some(8192)).into());
            let description = schema.as_object_mut().and_then(|members| members.remove("description"));
            let required = required.as_array().is_some_and(|names| names.contains(&json!(name)));
            parameters.push(json!({
                "name": name, "in": place, "required": required, "schema": schema, "description": description.unwrap_or_default(),
            }));
        }
    }
    if let Some(header) = signature {
        let words: Vec<_> = header.split('-').map(capitalised).collect();
        parameters.push(json!({
            "name": words.join("-"), "in": "header", "required": true, "schema": {"type": "string"},
            "description": "`t=` and the seconds since 1970, `,v1=` and the HMAC-SHA256 of these, a dot and the body, in hexadecimal digits; \
                one `v1` of several is enough. It holds for five minutes.",
        }));
    } else if route.method == "POST" {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "Whoever repeats a request with the same key gets the first answer, for a day.",
            "schema": {"type": "string", "pattern": idempotency::PATTERN},
        }));
    }
    let examples = Examples::read(root, route);
    let says = about(root, route);
    let mut operation = json!({
        "operationId": operation_id(route.name),
        "tags": [route.record],
        "summary": summary(route.name),
        "description": says,
        "parameters": parameters,
        "responses": responses(route, &components.hoist(reply.clone()), failure, &examples, &links(route, &reply)),
    });
    if let Some((schema, required)) = body {
        operation["requestBody"] = json!({
            "required": required,
            "content": {"application/json": content(&components.hoist(schema), &examples.requests)},
        });
    }
    if let Some(schema) = form {
        operation["requestBody"]["content"][FORM] = json!({"schema": components.hoist(schema)});
    }
    if signature.is_some() {
        operation["security"] = json!([]);
    } else if let Some(request) = &examples.usual {
        operation[samples::SAMPLES] = samples::samples(route, &operation, &reply, request);
    }
    operation
}

/// The `operation` of `route` at the alias `path`. A parameter of this path is not the query's.
fn alias(route: &Route, path: &str, operation: &Value) -> Value {
    let name = alias_name(route, path);
    let mut alias = operation.clone();
    alias["operationId"] = json!(operation_id(&name));
    alias["summary"] = json!(format!("{} at {path}", summary(route.name)));
    alias["description"] =
        json!(format!("The same as `{} {}`, for clients that call `{path}`.", route.method, route.path));
    for parameter in alias["parameters"].as_array_mut().into_iter().flatten() {
        if parameter["name"].as_str().is_some_and(|name| path.contains(&format!("{{{name}}}"))) {
            parameter["in"] = json!("path");
            parameter["required"] = json!(true);
        }
    }
    // The examples, the samples and the links stand at the operation itself.
    alias.as_object_mut().into_iter().for_each(|members| drop(members.remove(samples::SAMPLES)));
    for (_, response) in alias["responses"].as_object_mut().into_iter().flatten() {
        response.as_object_mut().into_iter().for_each(|response| drop(response.remove("links")));
        without_examples(response);
    }
    alias.get_mut("requestBody").into_iter().for_each(without_examples);
    alias
}

/// The name of `route` at the alias `path`, in kebab case.
pub fn alias_name(route: &Route, path: &str) -> String {
    let words = path.trim_start_matches("/api/v1/").split('/').filter(|word| !word.starts_with('{'));
    format!("{}-at-{}", route.name, words.collect::<Vec<_>>().join("-").replace('_', "-"))
}

/// Removes the examples of a body.
fn without_examples(body: &mut Value) {
    if let Some(content) = body.pointer_mut("/content/application~1json").and_then(Value::as_object_mut) {
        content.remove("examples");
    }
}

/// The answers of an operation: its success, the ones that follow from its route, and the recorded ones.
fn responses(route: &Route, reply: &Value, failure: &Value, examples: &Examples, links: &Map<String, Value>) -> Value {
    let mut statuses = vec![route.success, 401, 413, 429, 500, 503];
    // A signed operation has none of these failures: it gives no details to a sender whose signature is invalid, and
    // accepts every signed request.
    let is_signed = route.access == Access::Signed;
    if !is_signed {
        // A key may lack the scope of any operation.
        statuses.extend([403, 422]);
        statuses.extend((route.method == "POST").then_some(409));
        statuses.extend(route.parameters().next().map(|_| 404));
    }
    statuses.extend(ALSO.iter().filter(|(_, names)| names.contains(&route.name)).map(|(status, _)| *status));
    statuses.extend(examples.answers.keys());
    let one = |status: u16| match (examples.answers.get(&status), FAILURES.iter().find(|failure| failure.0 == status)) {
        (None, Some((_, name, _))) => json!({"$ref": format!("#/components/responses/{name}")}),
        (Some(recorded), Some((_, _, meaning))) => {
            let meaning = if (status, is_signed) == (401, true) { UNSIGNED } else { meaning };
            let mut failed = response(status, meaning, failure, recorded);
            // Only a POST has an idempotency key that may be in use. No other conflict ends by itself.
            if (status, route.method == "POST") == (409, false)
                && let Some(headers) = failed["headers"].as_object_mut()
            {
                headers.remove("retry-after");
            }
            failed
        }
        (recorded, None) => {
            let meaning = if status == 201 { "Made." } else { "Done." };
            let mut made = response(status, meaning, reply, recorded.unwrap_or(&Map::new()));
            if !links.is_empty() {
                made["links"] = json!(links);
            }
            made
        }
    };
    statuses.into_iter().map(|status| (status.to_string(), one(status))).collect::<Map<_, _>>().into()
}

/// The operations for the record that `route` creates: their path has its id, and otherwise only parameters that the
/// path of `route` has.
fn links(route: &Route, reply: &Value) -> Map<String, Value> {
    let reads_one =
        |other: &&&Route| (other.record, other.method) == (route.record, "GET") && other.path.ends_with('}');
    let its_id = routes::ALL.iter().find(reads_one).and_then(|one| one.parameters().last());
    let known: Vec<&str> = route.parameters().collect();
    let Some(its_id) = its_id.filter(|name| route.method == "POST" && !known.contains(name)) else { return Map::new() };
    let members = &reply["properties"]["data"]["properties"];
    let Some(member) = [its_id, "id"].into_iter().find(|name| !members[name].is_null()) else { return Map::new() };
    let value = |name: &str| match name {
        name if name == its_id => Some((name.to_owned(), json!(format!("$response.body#/data/{member}")))),
        name => known.contains(&name).then(|| (name.to_owned(), json!(format!("$request.path.{name}")))),
    };
    let link = |other: &&Route| {
        let parameters: Map<_, _> = other.parameters().map(value).collect::<Option<_>>()?;
        let target = operation_id(other.name);
        parameters
            .contains_key(its_id)
            .then(|| (target.clone(), json!({"operationId": target, "parameters": parameters})))
    };
    routes::ALL.iter().filter_map(link).collect()
}

/// The meaning of 401 for an operation without a key.
const UNSIGNED: &str = "The signature is missing, wrong or too old, or nobody could have made one.";

/// Every failure: its status, its component, its meaning.
const FAILURES: &[(u16, &str, &str)] = &[
    (401, "Unauthorized", "The key is missing or not valid."),
    (402, "QuotaExceeded", "The billing plan of the key's user blocks it, because a limit is reached."),
    (403, "Forbidden", "The key may not do this."),
    (404, "NotFound", "There is no such record in the organisation of the key."),
    (409, "Conflict", "The state of a record forbids it, or a request with the same idempotency key is still running."),
    (413, "TooLarge", "The body is too large."),
    (422, "Invalid", "The input is not valid. Every issue is listed."),
    (
        429,
        "TooManyRequests",
        "There were too many requests: with this key (`rate_limited`), or of all callers together (`throttled`).",
    ),
    (500, "InternalError", "A defect of the service."),
    (502, "PaymentProviderError", "The payment provider failed, or refused the request."),
    (503, "Unavailable", "The service is busy."),
];

fn response(status: u16, meaning: &str, schema: &Value, recorded: &Map<String, Value>) -> Value {
    let mut headers = json!({"x-request-id": {"$ref": "#/components/headers/RequestId"}});
    if [409, 429, 503].contains(&status) {
        headers["retry-after"] = json!({"$ref": "#/components/headers/RetryAfter"});
    }
    // A refusal of the gateway itself has neither.
    if status == 429 {
        headers[headers::REMAINING] = json!({"$ref": "#/components/headers/RateLimit"});
    }
    if status == 429 || status < 300 {
        headers[headers::POLICY] = json!({"$ref": "#/components/headers/RateLimitPolicy"});
    }
    if status == 401 {
        headers["www-authenticate"] = json!({"$ref": "#/components/headers/WwwAuthenticate"});
    }
    let content = json!({"application/json": content(schema, recorded)});
    json!({"description": meaning, "headers": headers, "content": content})
}

fn content(schema: &Value, examples: &Map<String, Value>) -> Value {
    let mut content = json!({"schema": schema});
    if !examples.is_empty() {
        content["examples"] =
            examples.iter().map(|(name, value)| (name.clone(), json!({"value": value}))).collect::<Map<_, _>>().into();
    }
    content
}

/// An event, as the endpoint of a customer receives it.
fn webhook(root: &Path, name: &str, schema: Value, components: &mut Components) -> Value {
    let header = |(name, says): (&str, &str)| json!({"name": name, "in": "header", "required": true, "description": says, "schema": {"type": "string"}});
    let id = operation_id(&name.replace('.', "-"));
    let file = root.join(EVENTS).join(format!("{name}.json"));
    let recorded = std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok());
    let examples = recorded.map(|body: Value| ("usual".to_owned(), body)).into_iter().collect();
    let tag = match name.split_once('.') {
        Some(("campaign", _)) => "campaign",
        Some(("message" | "call", _)) => "conversation",
        _ => "webhook",
    };
    json!({"post": {
        "operationId": id,
        "tags": [tag],
        "summary": format!("The event {name}"),
        "description": format!("{} Any status from 200 to 299 takes it. 410 says that no event is wanted any more; after another one it is sent again.", occasion(name)),
        "security": [],
        "parameters": EVENT_HEADERS.map(header),
        "requestBody": {"required": true, "content": {"application/json": content(&components.hoist(schema), &examples)}},
        "responses": {"2XX": {"description": "The event has arrived."}, "410": {"description": "No event is wanted any more."}},
    }})
}

/// Events whose occasion does not follow from their names.
const OCCASIONS: [(&str, &str); 5] = [
    ("campaign.call", "Asks the connector of a widget to call a contact of a campaign."),
    ("campaign.message", "Asks the connector of a widget to send a message to a contact of a campaign."),
    ("export.failed", "Comes when an export has failed."),
    ("payment.updated", "Comes when the payment provider has changed what a user pays for."),
    ("webhook.test", "Comes when `send-test-event` was called, to try out a server."),
];

/// When an event comes: a sentence.
fn occasion(name: &str) -> String {
    if let Some((_, says)) = OCCASIONS.iter().find(|(known, _)| *known == name) {
        return (*says).to_owned();
    }
    let (record, change) = name.split_once('.').unwrap_or((name, "sent"));
    format!("Comes when {} was {change}.", with_article(&spaced(&record.replace('_', "-"))))
}

/// The description of an operation: the first lines of its file, or for a plain one a text from its name and its filters.
pub(crate) fn about(root: &Path, route: &Route) -> String {
    if let Some(plain) = PlainOperation::of(root, route.record, route.name) {
        let query = describe(route.name).query;
        let names = query["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        return plain.about(&names.filter(|name| !OF_EVERY_LIST.contains(&name.as_str())).collect::<Vec<_>>());
    }
    let file = root.join(own_file(route.record, route.name));
    let source = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines: Vec<&str> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let text = lines.join(" ");
    let (_, says) = text.split_once("`: ").unwrap_or_else(|| panic!("{} does not say what it is for", file.display()));
    capitalised(says)
}

/// `schema` of a parameter: a query has no null.
fn without_null(schema: Value) -> Value {
    let Some([inner, _]) = schema["anyOf"].as_array().map(Vec::as_slice) else { return schema };
    let mut inner = inner.clone();
    for name in ["description", "default"] {
        if !schema[name].is_null() {
            inner[name] = schema[name].clone();
        }
    }
    inner
}
