//! JSON schemas, read off the same declarations that parse and print.

pub use serde_json::Value;
use serde_json::{Map, json};

/// A type that can say what its JSON looks like.
pub trait Schema {
    /// The JSON schema (draft 2020-12, as OpenAPI 3.1 uses it).
    fn schema() -> Value;
}

/// One member of an object.
#[derive(Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
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

/// `schema` with the members of `others`. In an answer they are all there, whether or not a request has to have them.
pub fn extended<const N: usize>(mut schema: Value, others: [Value; N]) -> Value {
    for mut other in others {
        let Some(Value::Object(properties)) = other.as_object_mut().and_then(|other| other.remove("properties")) else {
            continue;
        };
        for (name, property) in properties {
            if let Some(required) = schema["required"].as_array_mut() {
                required.push(name.clone().into());
            }
            schema["properties"][name] = property;
        }
    }
    schema
}

/// `schema` with a description, where there is one.
pub fn described(mut schema: Value, doc: &str) -> Value {
    if let (Some(members), doc @ [_, ..]) = (schema.as_object_mut(), doc.trim().as_bytes()) {
        members.insert("description".into(), String::from_utf8_lossy(doc).into());
    }
    schema
}

impl Schema for String {
    fn schema() -> Value {
        json!({"type": "string"})
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
