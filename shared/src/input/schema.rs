//! JSON schemas, made from the same declarations that parse and print.

pub use serde_json::Value;
use serde_json::{Map, json};

/// A type with a JSON schema.
pub trait Schema {
    /// The JSON schema (draft 2020-12, as OpenAPI 3.1 uses it).
    fn schema() -> Value;
}

/// One member of an object.
#[derive(Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Whether it is required.
    pub required: bool,
    /// Its schema.
    pub schema: Value,
}

/// The schema of an object with these members, in their order.
pub fn object(members: Vec<Member>) -> Value {
    let required: Vec<_> = members.iter().filter(|member| member.required).map(|member| member.name).collect();
    let properties: Map<_, _> = members.into_iter().map(|member| (member.name.to_owned(), member.schema)).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// `schema` with more members.
pub fn extended(mut schema: Value, members: Vec<Member>) -> Value {
    for Member { name, required, schema: member } in members {
        if let Some(names) = schema["required"].as_array_mut().filter(|_| required) {
            names.push(name.into());
        }
        schema["properties"][name] = member;
    }
    schema
}

/// The member in which the schema of a component is described: at each use, `description` has the purpose of the field.
pub const ABOUT: &str = "$comment";

/// The most characters of a text that a caller may send. It does not limit answers: a stored text may be longer.
pub const MOST: &str = "$most";

/// `text` with a capital letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// `schema` as the component `name`.
pub fn titled(mut schema: Value, name: &str, doc: &str) -> Value {
    schema["title"] = name.into();
    schema[ABOUT] = doc.trim().into();
    schema
}

/// `schema`, or null.
pub fn nullable(mut schema: Value) -> Value {
    if schema["anyOf"].is_array() {
        return schema;
    }
    let mut around = json!({});
    for outside in ["description", "default"] {
        if let Some(value) = schema.as_object_mut().and_then(|members| members.remove(outside)) {
            around[outside] = value;
        }
    }
    around["anyOf"] = json!([schema, {"type": "null"}]);
    around
}

/// `schema` with a description, if there is one.
pub fn described(mut schema: Value, doc: &str) -> Value {
    if let (Some(members), doc @ [_, ..]) = (schema.as_object_mut(), doc.trim().as_bytes()) {
        members.insert("description".into(), String::from_utf8_lossy(doc).into());
    }
    schema
}

impl<T: Schema + ?Sized> Schema for &T {
    fn schema() -> Value {
        T::schema()
    }
}

impl Schema for str {
    fn schema() -> Value {
        json!({"type": "string"})
    }
}

impl Schema for String {
    fn schema() -> Value {
        str::schema()
    }
}

impl Schema for bool {
    fn schema() -> Value {
        json!({"type": "boolean"})
    }
}

impl Schema for i64 {
    fn schema() -> Value {
        json!({"type": "integer"})
    }
}

impl Schema for u32 {
    fn schema() -> Value {
        json!({"type": "integer", "minimum": 0})
    }
}

impl Schema for u64 {
    fn schema() -> Value {
        json!({"type": "integer", "minimum": 0})
    }
}

impl<T: Schema> Schema for Option<T> {
    fn schema() -> Value {
        json!({"anyOf": [T::schema(), {"type": "null"}]})
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
}
