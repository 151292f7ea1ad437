//! The recorded request of every operation, for people: as a file for editors that can send HTTP requests, and as a
//! collection for Bruno.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use shared::request::route::Route;
use shared::routes;

use crate::Trouble;
use crate::openapi::{about, summary};
use crate::replay::calls::{self, NamedCall};

/// The folder of Bruno's collection.
pub const BRUNO: &str = "clients/bruno";

/// The address of `cargo local`.
const LOCAL: &str = "http://127.0.0.1:3000";

/// A request that succeeds as long as the demo set is unchanged.
struct Example {
    route: &'static Route,
    about: String,
    /// Names and values of the query, without the key.
    query: Vec<(String, String)>,
    /// Names and values of the parameters in the path.
    parameters: BTreeMap<String, String>,
    /// Indented.
    body: Option<String>,
}

/// The collections.
pub struct Collections {
    key: String,
    examples: Vec<Example>,
}

impl Collections {
    /// The collections of the checkout at `root`.
    ///
    /// # Errors
    /// [`Trouble`] where a file of `events/` cannot be read, or is missing.
    pub fn read(root: &Path) -> Result<Self, Trouble> {
        let recorded = calls::recorded(root)?;
        let example = |route: &&'static Route| {
            let call = recorded.calls.iter().find(|NamedCall { name, .. }| name == route.name);
            let call = &call.ok_or_else(|| Trouble(format!("events/{}.json is missing", route.name)))?.call;
            let query = form_urlencoded::parse(call.query.as_bytes()).into_owned();
            let body: Option<Value> = serde_json::from_slice(&call.body).ok();
            Ok(Example {
                route,
                about: about(root, route),
                query: query.filter(|(name, _)| name != "api_key").collect(),
                parameters: route
                    .match_path(&call.path)
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
                body: body.map(|body| serde_json::to_string_pretty(&body).unwrap_or_default()),
            })
        };
        let mut examples = routes::ALL.iter().map(example).collect::<Result<Vec<_>, Trouble>>()?;
        // Records that are read, changed or deleted exist before; created records are not needed by other requests. A
        // campaign cannot be resumed after it was cancelled.
        let order = |route: &Route| ["GET", "POST", "PUT", "DELETE"].iter().position(|method| *method == route.method);
        examples.sort_by_key(|Example { route, .. }| (order(route), route.name == routes::CANCEL_CAMPAIGN.name));
        Ok(Self { key: recorded.key, examples })
    }

    /// The file for editors.
    pub fn http(&self) -> String {
        let mut file = format!(
            "# A request of each operation, for editors that send them. They succeed with the demo set of `cargo local`.\n\
             # Written by `cargo generate`.\n\n@api = {LOCAL}\n@key = {}\n",
            self.key
        );
        for Example { route, about, query, parameters, body } in &self.examples {
            let path = filled(route, |name| parameters[name].clone());
            let query = encoded(query);
            let _ = write!(
                file,
                "\n### {}: {about}\n{} {{{{api}}}}{path}{query}\nAuthorization: Bearer {{{{key}}}}\n",
                summary(route.name),
                route.method
            );
            if let Some(body) = body {
                let _ = write!(file, "Content-Type: application/json\n\n{body}\n");
            }
        }
        file
    }

    /// The files of Bruno's collection, by their paths in [`BRUNO`].
    pub fn bruno(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let collection = json!({
            "opencollection": "1.0.0",
            "info": {"name": routes::TITLE},
            "request": {"auth": {"type": "bearer", "token": "{{key}}"}},
            "bundled": false,
        });
        files.insert("opencollection.yml".to_owned(), yaml(&collection));
        let variables = json!([{"name": "api", "value": LOCAL}, {"name": "key", "value": self.key}]);
        files.insert("environments/local.yml".to_owned(), yaml(&json!({"name": "local", "variables": variables})));
        for (number, example) in self.examples.iter().enumerate() {
            let route = example.route;
            // A record that belongs to another one has a longer name, and is deleted before it.
            let place = 100 - route.record.len();
            let folder =
                json!({"info": {"name": route.record, "type": "folder", "seq": place}, "request": {"auth": "inherit"}});
            files.insert(format!("{}/folder.yml", route.record), yaml(&folder));
            files.insert(format!("{}/{}.yml", route.record, route.name), yaml(&request(number + 1, example)));
        }
        files
    }
}

/// One request of Bruno's collection, which checks the status of the answer.
fn request(number: usize, Example { route, about, query, parameters, body }: &Example) -> Value {
    let one = |kind: &str, (name, value): (&String, &String)| json!({"name": name, "value": value, "type": kind});
    let path = parameters.iter().map(|(name, value)| one("path", (name, value)));
    // Bruno sends the query of the address, and shows these parameters.
    let sent = encoded(query);
    let query = query.iter().map(|(name, value)| one("query", (name, value)));
    // The key of the collections names no user.
    let status = if **route == routes::READ_OWN_USER { 404 } else { route.success };
    let mut request = json!({
        "info": {"name": summary(route.name), "type": "http", "seq": number, "tags": [route.method.to_lowercase()]},
        "http": {
            "method": route.method,
            "url": format!("{{{{api}}}}{}{sent}", filled(route, |name| format!(":{name}"))),
            "params": path.chain(query).collect::<Vec<_>>(),
            "auth": "inherit",
        },
        "runtime": {"assertions": [{"expression": "res.status", "operator": "eq", "value": status.to_string()}]},
        "docs": about,
    });
    if let Some(body) = body {
        request["http"]["body"] = json!({"type": "json", "data": body});
    }
    request
}

/// `query` as an address has it, with its question mark; empty without parameters.
fn encoded(query: &[(String, String)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    if query.is_empty() { query } else { format!("?{query}") }
}

/// The path of `route` with the `value` of each of its parameters.
fn filled(route: &Route, value: impl Fn(&str) -> String) -> String {
    route.parameters().fold(route.path.to_owned(), |path, name| path.replace(&format!("{{{name}}}"), &value(name)))
}

fn yaml(value: &Value) -> String {
    serde_yaml_ng::to_string(value).unwrap_or_default()
}
