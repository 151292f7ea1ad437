//! Tests of the rules that hold for every update of a record, with every PUT route.

use futures_util::future::join_all;
use local::Stack;
use local::http::{Answer, Call};
use serde_json::{Value, json};
use shared::request::route::Route;
use shared::routes;

use crate::support::fixture::{
    ACME, call, data, demo_id, everything, failure, fields, get, id, json, kind, not_null, path, stack, valid_call,
};
use crate::support::records::{NOBODYS, TEST_TIME, changes, issue, items, nothing};
use crate::support::sweep::{cases, seen_in};

fn updates() -> impl Iterator<Item = &'static Route> {
    routes::ALL.iter().copied().filter(|route| route.method == "PUT")
}

async fn update(stack: &Stack, route: &Route, body: &Value) -> Answer {
    stack.answer(&Call { body: body.to_string().into(), ..valid_call(route, 'a', ACME) }).await
}

/// The updates of records that can be read and whose fields are independent. The fields of a campaign depend on each
/// other: see `update_campaign.rs`; so do those of a custom field: see `custom_fields.rs`. A key is only listed: see
/// `customer_keys.rs`.
fn plain_updates() -> impl Iterator<Item = &'static Route> {
    let others =
        [&routes::UPDATE_CAMPAIGN, &routes::UPDATE_CONTACT_CUSTOM_FIELD, &routes::UPDATE_KEY].map(|route| route.name);
    updates().filter(move |route| !others.contains(&route.name))
}

/// The record that `route` updates.
async fn read(stack: &Stack, route: &Route) -> Value {
    assert!(routes::ALL.iter().any(|read| read.method == "GET" && read.path == route.path), "{}", route.name);
    own_fields(get(stack, &path(route, |parameter| demo_id('a', parameter))).await)
}

/// The data of an answer without the secret of a widget, which only the request that makes it answers, without the
/// warnings of an assistant, which follow from other fields, and without the messages of a conversation.
fn own_fields(mut data: Value) -> Value {
    data.as_object_mut().unwrap().retain(|name, _| !["secret", "warnings", "transcript"].contains(&name.as_str()));
    data
}

/// `record` after a change.
fn touched(mut record: Value) -> Value {
    if record.get("updated_at").is_some() {
        record["updated_at"] = TEST_TIME.into();
    }
    record
}

/// The value of a nullable field after null: the default that its description names, or null itself.
fn default_of(schema: &Value) -> Option<Value> {
    assert_eq!(schema.get("default"), None, "an absent field stays as it is: {schema}");
    let nullable = schema["anyOf"].as_array().is_some_and(|choices| choices.contains(&json!({"type": "null"})));
    let says = schema["description"].as_str().and_then(|says| says.split_once("Null means the default, `"));
    let default = says.map(|(_, default)| serde_json::from_str(default.strip_suffix("`.").unwrap()).unwrap());
    nullable.then(|| default.unwrap_or_default())
}

/// Another value than `is`.
fn sample(name: &str, schema: &Value, is: &Value) -> Value {
    let schema = not_null(schema);
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().find(|word| *word != is).unwrap().clone();
    }
    match (schema["type"].as_str().unwrap(), schema["format"].as_str()) {
        ("boolean", _) => json!(is != &json!(true)),
        ("integer", _) => {
            let bound = |name: &str, none| schema[name].as_i64().unwrap_or(none);
            json!(7.clamp(bound("minimum", i64::MIN), bound("maximum", i64::MAX)))
        }
        ("object", _) if schema["properties"].is_object() => {
            let members = schema["properties"].as_object().unwrap();
            members.iter().map(|(name, schema)| (name.clone(), sample(name, schema, &is[name]))).collect()
        }
        ("object", _) if name == "custom_fields" => json!({"plan": "gold"}),
        ("object", _) if schema["additionalProperties"].is_object() => json!({"sample": "email"}),
        // The fields of the form of the demo set.
        ("object", _) if name == "field_values" => json!({"phone": "sample"}),
        ("object", _) => json!({"sample": [1, null]}),
        ("array", _) if schema["items"]["enum"].is_array() => json!([schema["items"]["enum"][0]]),
        ("array", _) => match (schema["items"]["type"].as_str(), schema["items"]["pattern"].as_str()) {
            (Some("string"), Some(_)) => json!(["fr-FR"]),
            (Some("string"), None) if schema["items"]["format"] == "uuid" => json!([NOBODYS]),
            (Some("string"), None) => json!(["sample"]),
            (Some("integer"), _) => json!([7]),
            _ => json!([{"sample": 1}]),
        },
        (_, Some("uuid")) => match name {
            "assistant_id" => id('a', kind::ASSISTANT, 0).into(),
            "webhook_id" => id('a', kind::WEBHOOK, 0).into(),
            _ => NOBODYS.into(),
        },
        (_, Some("time-zone")) => "Europe/Berlin".into(),
        (_, Some("date-time")) => "2000-01-01T00:00:00.000Z".into(),
        _ => match name {
            "endpoint" | "connector_url" => "https://93.184.215.14/sample".into(),
            "email" => "sample@acme.example".into(),
            "phone" | "phone_number" => "+31201234567".into(),
            "time_window_start" | "time_window_end" => "09:30".into(),
            _ => "sample".into(),
        },
    }
}

#[tokio::test]
async fn an_update_keeps_absent_fields_and_ignores_unknown_ones() {
    for route in cases(plain_updates()) {
        let stack = stack().await;
        let before = read(&stack, route).await;
        let others =
            before.as_object().unwrap().keys().filter(|name| fields(route).iter().all(|(field, _)| field != *name));
        let mut ignored: serde_json::Map<String, Value> = others.map(|name| (name.clone(), json!("another"))).collect();
        for (name, value) in
            [("id", NOBODYS), ("org_id", NOBODYS), ("created_at", "2000-01-01T00:00:00Z"), ("unknown", "x")]
        {
            ignored.insert(name.to_owned(), value.into());
        }
        for body in [json!({}), Value::Object(ignored)] {
            let answer = update(&stack, route, &body).await;
            let wanted = json!({"message": "Data updated successfully", "meta": {}, "data": touched(before.clone())});
            let mut answered = json(&answer);
            answered["data"] = own_fields(answered["data"].take());
            assert_eq!((answer.status, answered), (200, wanted.clone()), "{} {body}", route.name);
            assert_eq!(read(&stack, route).await, wanted["data"], "{} {body}", route.name);
        }
    }
}

#[tokio::test]
async fn null_resets_a_field_with_a_default_and_is_refused_elsewhere() {
    let mut seen = [0, 0];
    for route in cases(plain_updates()) {
        for (name, schema) in fields(route) {
            // `widget/create_widget.rs` tests what a widget shows in place of null.
            if route.record == "widget" && ["name", "display_name", "widget_provider"].contains(&name.as_str()) {
                continue;
            }
            let stack = stack().await;
            if let Some(default) = default_of(&schema) {
                let mut wanted = touched(read(&stack, route).await);
                wanted[&name] = default;
                let answer = update(&stack, route, &json!({&name: null})).await;
                assert_eq!(own_fields(data(&answer)), wanted, "{} {name}", route.name);
                seen[0] += 1;
                continue;
            }
            let before = items(&stack).await;
            let (status, issues) = failure(&update(&stack, route, &json!({&name: null})).await);
            assert_eq!((status, issues.len()), (422, 1), "{} {name}", route.name);
            assert!(issues[0].starts_with(&format!("[\"body\",\"{name}\"] ")), "{} {issues:?}", route.name);
            assert_eq!(changes(&stack, &before).await, nothing(), "{} {name}", route.name);
            seen[1] += 1;
        }
    }
    seen_in(seen[0], 21);
    seen_in(seen[1], 6);
}

#[tokio::test]
async fn concurrent_updates_lose_no_field() {
    for route in cases(plain_updates()) {
        let stack = stack().await;
        let mut wanted = read(&stack, route).await;
        let samples: Vec<_> = fields(route)
            .into_iter()
            .map(|(name, schema)| (name.clone(), sample(&name, &schema, &wanted[&name])))
            .collect();
        let bodies: Vec<Value> = samples.iter().map(|(name, value)| json!({name: value})).collect();
        for answer in join_all(bodies.iter().map(|body| update(&stack, route, body))).await {
            assert_eq!(answer.status, 200, "{} {}", route.name, answer.body);
        }
        for (name, value) in samples {
            wanted[name] = value;
        }
        assert_eq!(read(&stack, route).await, touched(wanted), "{}", route.name);
    }
}

#[tokio::test]
async fn an_update_of_a_missing_record_answers_404() {
    let stack = stack().await;
    let before = everything(&stack).await;
    for route in updates() {
        let body: Value =
            fields(route).iter().map(|(name, schema)| (name.clone(), sample(name, schema, &Value::Null))).collect();
        let last = route.parameters().last().unwrap();
        let path = path(route, |name| if name == last { NOBODYS.to_owned() } else { demo_id('a', name) });
        let mut body = body;
        // The body names a forbidden address as well: the missing record is still the only issue.
        for name in ["endpoint", "connector_url"] {
            if body.get(name).is_some() {
                body[name] = "https://169.254.169.254/".into();
            }
        }
        let answer = stack.answer(&Call { body: body.to_string().into(), ..call("PUT", &path, ACME) }).await;
        assert_eq!(failure(&answer), (404, vec![format!("[\"path\",\"{last}\"] not_found")]), "{}", route.name);
    }
    assert_eq!(everything(&stack).await, before);
}

#[tokio::test]
async fn an_update_that_makes_the_record_too_large_is_refused() {
    let stack = stack().await;
    let widget = routes::ALL.iter().find(|route| route.name == "update-widget").unwrap();
    let most = "😀".repeat(32_768);
    assert_eq!(update(&stack, widget, &json!({"opening_message": most})).await.status, 200);
    let before = read(&stack, widget).await;
    let answer = update(&stack, widget, &json!({"user_opening_messages": [most, most]})).await;
    let issues = json(&answer)["detail"].clone();
    let msg = issues[0]["msg"].as_str().unwrap().to_owned();
    assert!(msg.starts_with("The record should have at most 368640 bytes, not "), "{msg}");
    assert_eq!((answer.status, issues), (422, json!([issue(&json!(["body"]), "too_long", &msg)])));
    assert_eq!(read(&stack, widget).await, before);
}
