//! Lambda's event filtering: decides which records of a stream match a pattern.

use serde_json::Value;

use crate::Trouble;

/// Whether `value` matches `pattern`: every member of an object must match, and one rule of an array.
pub fn fits(pattern: &Value, value: Option<&Value>) -> bool {
    match pattern {
        Value::Object(members) => {
            members.iter().all(|(name, pattern)| fits(pattern, value.and_then(|value| value.get(name))))
        }
        Value::Array(rules) => rules.iter().any(|rule| match value {
            // A list matches if one of its elements does.
            Some(Value::Array(elements)) => elements.iter().any(|element| obeys(rule, Some(element))),
            // Rules are about leaves: an object has no value, not even for `exists`.
            value => obeys(rule, value.filter(|value| !value.is_object())),
        }),
        _ => false,
    }
}

fn obeys(rule: &Value, leaf: Option<&Value>) -> bool {
    let Some(operator) = rule.as_object() else { return leaf == Some(rule) };
    let text = leaf.and_then(Value::as_str);
    operator.iter().all(|(name, wanted)| match name.as_str() {
        "prefix" => text.zip(wanted.as_str()).is_some_and(|(text, prefix)| text.starts_with(prefix)),
        "exists" => leaf.is_some() == (*wanted == Value::Bool(true)),
        "anything-but" => leaf.is_some_and(|leaf| match wanted {
            Value::Array(unwanted) => !unwanted.contains(leaf),
            unwanted => unwanted != leaf,
        }),
        _ => false,
    })
}

/// Refuses a pattern with an unknown rule, which would silently match nothing.
///
/// # Errors
/// [`Trouble`] names the rule.
pub fn check(pattern: &Value) -> Result<(), Trouble> {
    match pattern {
        Value::Object(members) => members.values().try_for_each(check),
        Value::Array(rules) => rules.iter().filter_map(Value::as_object).flatten().try_for_each(|(name, wanted)| {
            let known = match name.as_str() {
                "prefix" => wanted.is_string(),
                "exists" => wanted.is_boolean(),
                "anything-but" => !wanted.is_object(),
                _ => false,
            };
            if known { Ok(()) } else { Err(Trouble(format!("the filter rule {name}: {wanted} is not known here"))) }
        }),
        other => Err(Trouble(format!("a filter has {other} where a list of rules belongs"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filters_match_as_in_lambda() {
        let image = json!({"state": {"S": "ready"}, "gone": {"NULL": true}, "names": {"SS": ["a", "b"]}, "no": null});
        let record = json!({"eventName": "REMOVE", "dynamodb": {"Keys": {"sk": {"S": "TAG#1"}}, "NewImage": image}});
        let sk = |rule: Value| json!({"dynamodb": {"Keys": {"sk": {"S": [rule]}}}});
        let of_image = |pattern: Value| json!({"dynamodb": {"NewImage": pattern}});
        for (filter, wanted) in [
            (json!({"eventName": ["REMOVE"]}), true),
            (json!({"eventName": ["INSERT", "REMOVE"]}), true),
            (json!({"eventName": ["INSERT"]}), false),
            (json!({"eventName": ["REMOVE"], "dynamodb": {"Keys": {"sk": {"S": ["TAG#1"]}}}}), true),
            (json!({"eventName": ["REMOVE"], "dynamodb": {"Keys": {"sk": {"S": ["FORM"]}}}}), false),
            (sk(json!({"prefix": "TAG#"})), true),
            (sk(json!({"prefix": "FORM#"})), false),
            (sk(json!({"anything-but": ["FORM", "TAG"]})), true),
            (sk(json!({"anything-but": ["FORM", "TAG#1"]})), false),
            (sk(json!({"anything-but": "TAG#1"})), false),
            (of_image(json!({"missing": {"S": [{"anything-but": ["x"]}]}})), false),
            (of_image(json!({"missing": {"S": [{"exists": false}]}})), true),
            (of_image(json!({"state": {"S": [{"exists": true}]}})), true),
            (of_image(json!({"state": {"S": [{"exists": false}]}})), false),
            (of_image(json!({"state": [{"exists": true}]})), false),
            (of_image(json!({"gone": {"NULL": [true]}})), true),
            (of_image(json!({"no": [null]})), true),
            (of_image(json!({"missing": [null]})), false),
            (of_image(json!({"names": {"SS": ["b"]}})), true),
            (of_image(json!({"names": {"SS": ["c"]}})), false),
        ] {
            check(&filter).unwrap();
            assert_eq!(fits(&filter, Some(&record)), wanted, "{filter}");
        }
    }

    #[test]
    fn an_unknown_rule_is_refused() {
        for (filter, wanted) in [
            (json!({"count": {"N": [{"numeric": [">", 1]}]}}), "the filter rule numeric"),
            (json!({"eventName": [{"anything-but": {"prefix": "R"}}]}), "the filter rule anything-but"),
            (json!({"eventName": "REMOVE"}), "where a list of rules belongs"),
        ] {
            let trouble = check(&filter).unwrap_err().to_string();
            assert!(trouble.contains(wanted), "{trouble}");
        }
    }
}
