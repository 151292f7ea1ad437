//! The samples of the document: each operation with its recorded request as a command of `curl`, and as code for the
//! clients in TypeScript and Python.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};
use shared::request::route::Route;

use crate::client_names::ClientName;
use crate::openapi::examples::RecordedRequest;

/// The member of an operation that has its samples.
pub const SAMPLES: &str = "x-codeSamples";

/// The widest value that stands in one line.
const WIDTH: usize = 60;

/// An operation with its recorded request.
struct Sample<'a> {
    route: &'a Route,
    name: ClientName,
    /// The operation in the document.
    operation: &'a Value,
    is_paged: bool,
    request: &'a RecordedRequest,
}

/// The samples of `operation`, whose answer has the schema `reply`.
pub(super) fn samples(route: &Route, operation: &Value, reply: &Value, request: &RecordedRequest) -> Value {
    let name = ClientName::of(route);
    let is_paged = is_paged(&name, reply);
    let sample = Sample { route, name, operation, is_paged, request };
    json!([
        {"lang": "shell", "label": "curl", "source": sample.curl()},
        {"lang": "typescript", "label": "TypeScript", "source": sample.typescript()},
        {"lang": "python", "label": "Python", "source": sample.python()},
    ])
}

impl Sample<'_> {
    fn curl(&self) -> String {
        let Self { route, request, .. } = self;
        let method = match (route.method, &request.body) {
            ("GET", None) | ("POST", Some(_)) => String::new(),
            (method, _) => format!("-X {method} "),
        };
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&request.query).finish();
        let query = if query.is_empty() { query } else { format!("?{query}") };
        let mut command = format!("curl {method}\"$API{}{query}\" -H \"authorization: Bearer $KEY\"", request.path);
        if let Some(body) = &request.body {
            let body = Language::Json.literal(body, 2).replace('\'', r"'\''");
            let _ = write!(command, " \\\n  --json '{body}'");
        }
        command
    }

    fn typescript(&self) -> String {
        let (language, request) = (Language::TypeScript, self.request);
        let mut arguments: Vec<String> = self.parts().map(|(_, value)| json!(value).to_string()).collect();
        match &request.body {
            Some(body) => arguments.push(language.literal(body, 0)),
            None if self.operation["requestBody"].is_null() || request.query.is_empty() => {}
            None => arguments.push("undefined".to_owned()),
        }
        if !request.query.is_empty() {
            let query: Value = request.query.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            arguments.push(language.literal(&query, 0));
        }
        let call = format!("client.{}({})", self.name.typescript(), arguments.join(", "));
        let line = if self.is_paged {
            format!("for await (const one of {call}) console.log(one);")
        } else {
            format!("console.log(await {call});")
        };
        format!(
            "import {{ Client }} from \"assistants-client\";\n\n\
             const {{ ASSISTANTS_URL: url = \"\", ASSISTANTS_API_KEY: key = \"\" }} = process.env;\n\
             const client = new Client({{ url, key }});\n{line}"
        )
    }

    fn python(&self) -> String {
        let mut models = BTreeSet::new();
        let mut arguments = Vec::new();
        for (name, value) in self.parts() {
            arguments.push(self.typed(("path", name), value, &mut models));
        }
        if let Some(body) = &self.request.body {
            let literal = Language::Python.literal(body, 4);
            let model = component(&self.operation["requestBody"]["content"]["application/json"]["schema"]);
            arguments.push(model.map_or_else(|| literal.clone(), |model| format!("{model}.from_dict({literal})")));
            models.extend(model.map(str::to_owned));
        }
        for (name, value) in &self.request.query {
            arguments.push(format!("{name}={}", self.typed(("query", name), value, &mut models)));
        }
        let call = format!("client.{}({})", self.name.python(), arguments.join(", "));
        let line =
            if self.is_paged { format!("for one in {call}:\n        print(one)") } else { format!("print({call})") };
        let uuid = if call.contains("UUID(") { "from uuid import UUID\n" } else { "" };
        let models = match models.into_iter().collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => names,
            names => format!("from assistants_client.models import {names}\n"),
        };
        format!(
            "import os\n{uuid}\nfrom assistants_client import Client\n{models}\n\
             with Client(os.environ[\"ASSISTANTS_URL\"], os.environ[\"ASSISTANTS_API_KEY\"]) as client:\n    {line}"
        )
    }

    /// A parameter in Python, by its schema. Adds the model that it needs.
    fn typed(&self, (place, name): (&str, &str), value: &str, models: &mut BTreeSet<String>) -> String {
        let parameters = self.operation["parameters"].as_array();
        let parameter = parameters.into_iter().flatten().find(|one| one["name"] == name && one["in"] == place);
        let schema = parameter.map_or(&Value::Null, |parameter| &parameter["schema"]);
        let literal = json!(value);
        match (component(schema), schema["format"].as_str(), schema["type"].as_str()) {
            (Some(model), ..) => {
                models.insert(model.to_owned());
                format!("{model}({literal})")
            }
            (_, Some("uuid"), _) => format!("UUID({literal})"),
            (_, _, Some("integer")) => value.to_owned(),
            _ => literal.to_string(),
        }
    }

    /// The parameters of the path with their values, in its order.
    fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.route.match_path(&self.request.path).into_iter().flatten()
    }
}

/// The component to which a schema refers.
fn component(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next())
}

/// Whether the clients walk through the pages of an answer with this schema.
fn is_paged(name: &ClientName, reply: &Value) -> bool {
    let members = &reply["properties"]["data"]["properties"];
    name.method.starts_with("list") && ["next", "next_page"].iter().any(|member| !members[member].is_null())
}

/// A language with literals for JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Json,
    TypeScript,
    Python,
}

impl Language {
    /// `value` as a literal: in one line if it is short, otherwise in lines that are indented by `indent` more.
    fn literal(self, value: &Value, indent: usize) -> String {
        let short = self.written(value, None);
        if short.chars().count() <= WIDTH { short } else { self.written(value, Some(indent)) }
    }

    fn written(self, value: &Value, indent: Option<usize>) -> String {
        let within = indent.map(|indent| indent + self.step());
        let (signs, parts): ([&str; 2], Vec<String>) = match value {
            Value::Array(items) => (["[", "]"], items.iter().map(|item| self.nested(item, within)).collect()),
            Value::Object(members) => {
                let member =
                    |(name, value): (&String, &Value)| format!("{}: {}", self.key(name), self.nested(value, within));
                (["{", "}"], members.iter().map(member).collect())
            }
            Value::Null | Value::Bool(_) if self == Self::Python => {
                return match value.as_bool() {
                    Some(true) => "True",
                    Some(false) => "False",
                    None => "None",
                }
                .to_owned();
            }
            single => return single.to_string(),
        };
        let [open, close] = signs;
        match within.filter(|_| !parts.is_empty()) {
            Some(within) => {
                let [inner, outer] = [within, within - self.step()].map(|width| " ".repeat(width));
                let end = if self == Self::Json { "" } else { "," };
                format!("{open}\n{inner}{}{end}\n{outer}{close}", parts.join(&format!(",\n{inner}")))
            }
            None if open == "{" && self == Self::TypeScript && !parts.is_empty() => {
                format!("{{ {} }}", parts.join(", "))
            }
            None => format!("{open}{}{close}", parts.join(", ")),
        }
    }

    /// A part of a value: short ones stay in one line.
    fn nested(self, value: &Value, indent: Option<usize>) -> String {
        indent.map_or_else(|| self.written(value, None), |indent| self.literal(value, indent))
    }

    const fn step(self) -> usize {
        if matches!(self, Self::Python) { 4 } else { 2 }
    }

    fn key(self, name: &str) -> String {
        let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if self == Self::TypeScript && is_plain && !name.starts_with(|first: char| first.is_ascii_digit()) {
            name.to_owned()
        } else {
            json!(name).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_in_each_language() {
        let value = json!({"name": "A", "is_new": true, "e-mail": null, "ids": [1]});
        assert_eq!(Language::Json.literal(&value, 0), r#"{"e-mail": null, "ids": [1], "is_new": true, "name": "A"}"#);
        let python = r#"{"e-mail": None, "ids": [1], "is_new": True, "name": "A"}"#;
        assert_eq!(Language::Python.literal(&value, 0), python);
        let typescript = r#"{ "e-mail": null, ids: [1], is_new: true, name: "A" }"#;
        assert_eq!(Language::TypeScript.literal(&value, 0), typescript);
    }

    #[test]
    fn a_long_value_has_a_line_for_each_member() {
        let value = json!({"text": "a".repeat(WIDTH), "tags": {}});
        let text = "a".repeat(WIDTH);
        assert_eq!(
            Language::Json.literal(&value, 2),
            format!("{{\n    \"tags\": {{}},\n    \"text\": \"{text}\"\n  }}")
        );
        let python = format!("{{\n        \"tags\": {{}},\n        \"text\": \"{text}\",\n    }}");
        assert_eq!(Language::Python.literal(&value, 4), python);
    }
}
