//! JSON without the members that are null, for clients whose types know no null.

use crate::values::json::texts::end_of_string;

/// An object or an array that is not closed yet.
struct OpenValue {
    is_object: bool,
    /// Whether something in it was written: a comma comes before the rest.
    has_any: bool,
}

/// `json`, which is known to be JSON, without the members that are null, at any depth. Items of arrays stay. Names,
/// texts and numbers are copied as they are, in their order; the space between them is left out.
pub fn without_nulls(json: &str) -> String {
    let (mut is, mut open) = (String::with_capacity(json.len()), Vec::<OpenValue>::new());
    // The name of the member whose value comes next.
    let mut name = None;
    let mut at = 0;
    while at < json.len() {
        let token = &json[at..end_of_token(json, at)];
        at += token.len();
        match token {
            " " | "\t" | "\n" | "\r" | "," | ":" => {}
            "}" | "]" => {
                open.pop();
                is += token;
            }
            "null" if name.take().is_some() => {}
            _ if name.is_none() && open.last().is_some_and(|open| open.is_object) => name = Some(token),
            _ => {
                if open.last_mut().is_some_and(|open| std::mem::replace(&mut open.has_any, true)) {
                    is.push(',');
                }
                if let Some(name) = name.take() {
                    is += name;
                    is.push(':');
                }
                is += token;
                if let "{" | "[" = token {
                    open.push(OpenValue { is_object: token == "{", has_any: false });
                }
            }
        }
    }
    is
}

/// The end of the token that begins at `start`: a mark, a string, a number or a word.
fn end_of_token(json: &str, start: usize) -> usize {
    match json.as_bytes()[start] {
        b'"' => end_of_string(json, start),
        byte if is_plain(byte) => {
            let plain = json.as_bytes()[start..].iter().take_while(|byte| is_plain(**byte));
            start + plain.count()
        }
        _ => start + 1,
    }
}

/// Whether `byte` is part of a number or a word.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    /// `value` without the members that are null.
    fn pruned(value: Value) -> Value {
        match value {
            Value::Object(members) => {
                let kept = members.into_iter().filter(|(_, value)| !value.is_null());
                Value::Object(kept.map(|(name, value)| (name, pruned(value))).collect())
            }
            Value::Array(items) => items.into_iter().map(pruned).collect(),
            other => other,
        }
    }

    /// Any JSON. Texts and names have quotes, backslashes, marks and the word `null`.
    fn any_json() -> impl Strategy<Value = Value> {
        let text = "([a-zé\"\\\\{}\\[\\],: \n]|null){0,5}";
        let leaf = prop_oneof![
            3 => Just(Value::Null),
            1 => any::<bool>().prop_map(Value::from),
            1 => any::<i64>().prop_map(Value::from),
            1 => any::<f64>().prop_map(Value::from),
            2 => text.prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            let members = prop::collection::vec((text, inner.clone()), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(Value::from),
                members.prop_map(|members| Value::Object(Map::from_iter(members))),
            ]
        })
    }

    proptest! {
        #[test]
        fn only_members_that_are_null_are_left_out(value in any_json()) {
            let wanted = serde_json::to_string(&pruned(value.clone())).unwrap();
            prop_assert_eq!(without_nulls(&serde_json::to_string(&value).unwrap()), wanted.as_str());
            prop_assert_eq!(without_nulls(&serde_json::to_string_pretty(&value).unwrap()), wanted);
        }
    }

    #[test]
    fn numbers_names_and_their_order_stay_as_they_are() {
        for (json, wanted) in [
            (r#"{"b":1.10,"a":null,"A":1e400}"#, r#"{"b":1.10,"A":1e400}"#),
            (r#"{"a":12345678901234567890123,"a":null,"a":-0.0}"#, r#"{"a":12345678901234567890123,"a":-0.0}"#),
            (r#"{"null":"null","é\"":{"x":null}}"#, r#"{"null":"null","é\"":{}}"#),
            ("[null,{\"a\":[null,null]},null]", "[null,{\"a\":[null,null]},null]"),
            ("null", "null"),
            ("", ""),
        ] {
            assert_eq!(without_nulls(json), wanted);
        }
        let deep = format!("{}null{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(without_nulls(&deep).matches('{').count(), 100_000);
        assert_eq!(without_nulls(&json!({"a": null}).to_string()), "{}");
    }
}
