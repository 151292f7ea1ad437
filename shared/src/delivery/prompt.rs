//! The variables in the prompt of an assistant: `{{name}}` stands for the value that the caller of start-call gave for it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::records::event::LONGEST;
use crate::values::json::JsonObject;

/// The most bytes between the braces: a longer text is no name.
const LONGEST_NAME: usize = 256;

/// `prompt` with the values of `variables`. A text stands as it is, any other value as its JSON. A name without a value
/// stays as it is written, and so does one whose value would make the prompt too long for an event. Values are not
/// searched for names.
pub(super) fn filled(prompt: &str, variables: &JsonObject) -> String {
    let values: BTreeMap<String, Box<RawValue>> = variables.read().unwrap_or_default();
    let (mut is, mut rest) = (String::new(), prompt);
    while let Some((before, after)) = rest.split_once("{{") {
        is += before;
        let end = after.as_bytes().windows(2).take(LONGEST_NAME).position(|two| two == b"}}");
        let value = end.and_then(|end| values.get(after[..end].trim())).map(|value| text_of(value));
        let fitting = end.zip(value).filter(|(_, value)| is.len() + value.len() + after.len() <= LONGEST);
        let (text, behind) = fitting.map_or(("{{".into(), 0), |(end, value)| (value, end + 2));
        is += &text;
        rest = &after[behind..];
    }
    is + rest
}

fn text_of(value: &RawValue) -> String {
    serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_replaced_by_their_values_once() {
        let variables = JsonObject::of(&json!({"name": "Ada", "seats": 3, "a b": "{{name}}", "none": null})).unwrap();
        for (prompt, wanted) in [
            ("", ""),
            ("Hello", "Hello"),
            ("Hello {{name}}, {{ seats }} seats", "Hello Ada, 3 seats"),
            ("{{a b}}{{none}}", "{{name}}null"),
            ("{{other}} {{name}}", "{{other}} Ada"),
            ("{{name", "{{name"),
            ("{{{{name}}}}", "{{Ada}}"),
            ("é{{é}}{{name}}", "é{{é}}Ada"),
        ] {
            assert_eq!(filled(prompt, &variables), wanted, "{prompt}");
        }
    }

    #[test]
    fn a_prompt_does_not_grow_beyond_an_event() {
        let variables = JsonObject::of(&json!({"long": "x".repeat(30_000)})).unwrap();
        let is = filled(&"{{long}}".repeat(1000), &variables);
        assert!(is.len() <= LONGEST && is.len() > LONGEST - 60_000 && is.ends_with("{{long}}"), "{}", is.len());
        let braces = "{".repeat(131_072);
        assert_eq!(filled(&braces, &variables), braces);
    }
}
