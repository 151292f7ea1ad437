//! Tests of keys whose answers leave out nulls: every answer does, and what is kept for a repeat has them.

use local::http::{Answer, Call};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::routes;
use shared::values::time::{Clock, Timestamp};

use crate::support::fixture::{ACME, NOW, call, data, id, json, key_of, kind, path, post, settings, valid_call};
use crate::support::records::{detail, make_key, wrong};
use crate::support::sweep::{cases, seen_in};

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

/// The members of `value`. Each other value than null is replaced: two stacks have different addresses.
fn members(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), self::members(value))).collect(),
        Value::Array(items) => items.iter().map(members).collect(),
        Value::Null => Value::Null,
        _ => json!("a value"),
    }
}

/// A stack, a key of Acme that leaves out nulls if `omits`, and the key's id.
async fn stack_with_key(omits: bool) -> (Stack, String, String) {
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    // The document describes answers with their nulls.
    let stack = Stack::start(Settings { clock, look: None, ..settings() }).await.unwrap();
    let user = id('a', kind::USER, 1);
    let (key, id) =
        make_key(&stack, ACME, &json!({"name": "Shop", "role": "admin", "user_id": user, "omit_nulls": omits})).await;
    (stack, key, id)
}

/// The answer of Acme's `call` with `key` in place of its key.
async fn with_key(stack: &Stack, key: &str, call: Call) -> Answer {
    stack.answer(&Call { query: call.query.replace(key_of(&call), key), ..call }).await
}

#[tokio::test]
async fn every_answer_of_the_key_leaves_out_nulls() {
    let mut left_out = 0;
    for route in cases(routes::ALL) {
        let wrong = call(route.method, &path(route, |_| "x".into()), ACME);
        for call in [valid_call(route, 'a', ACME), Call { body: b"{".into(), ..wrong }] {
            let mut answers = Vec::new();
            for omits in [false, true] {
                let (stack, key, _) = stack_with_key(omits).await;
                answers.push(with_key(&stack, &key, call.clone()).await);
            }
            let [whole, without] = answers.try_into().unwrap_or_else(|_| panic!("two answers"));
            assert_eq!(without.status, whole.status, "{}", route.name);
            let [whole, without] = [&whole, &without].map(|answer| members(&json(answer)));
            left_out += usize::from(whole != without);
            assert_eq!(without, pruned(whole), "{}", route.name);
        }
    }
    seen_in(left_out, 21);
}

#[tokio::test]
async fn a_free_form_value_keeps_its_numbers_and_the_items_of_arrays() {
    let (stack, key, _) = stack_with_key(true).await;
    let body = r#"{"widget_type":"chat","attributes":{"z":1.10,"a":null,"list":[null,{"b":null}],"big":12345678901234567890123}}"#;
    let answer = stack.answer(&post(routes::CREATE_WIDGET.path, &key, body)).await;
    let kept = r#""attributes":{"z":1.10,"list":[null,{}],"big":12345678901234567890123}"#;
    assert!(answer.status == 201 && answer.body.contains(kept), "{}", answer.body);
    assert!(
        answer.body.starts_with(r#"{"message":"Data created successfully","meta":{},"data":{"id":"#),
        "{}",
        answer.body
    );
}

/// The setting of the key when the answer is sent counts, not that when it was made.
#[tokio::test]
async fn an_answer_that_is_kept_for_a_repeat_has_its_nulls() {
    let (stack, key, id) = stack_with_key(true).await;
    let clock = &stack.gateway.service.clock;
    let body = json!({"name": "VIP"}).to_string();
    let headers = [("idempotency-key".to_owned(), "one".to_owned())].into();
    let call = Call { headers, ..post(routes::CREATE_TAG.path, &key, body) };
    let (first, again) = (stack.answer(&call).await, stack.answer(&call).await);
    assert_eq!((first.status, &again.body), (201, &first.body));
    assert!(!first.body.contains("null"), "{}", first.body);
    let path = format!("{}/{id}", routes::LIST_KEYS.path);
    let set =
        |omits: Value| Call { body: json!({"omit_nulls": omits}).to_string().into(), ..self::call("PUT", &path, ACME) };
    assert_eq!(data(&stack.answer(&set(json!(false))).await)["omit_nulls"], json!(false));
    clock.set(Timestamp::from_unix_millis(NOW + 5000));
    let whole = stack.answer(&call).await;
    assert_eq!((whole.status, pruned(json(&whole))), (201, json(&first)));
    assert!(whole.body.contains("null"), "{}", whole.body);
    let null = detail(&stack.answer(&set(Value::Null)).await);
    assert_eq!(null, wrong("omit_nulls", "bool_type", "Input should be a valid boolean"));
}

#[tokio::test]
async fn keys_of_operators_have_the_setting_and_lists_show_it() {
    let (stack, _, _) = stack_with_key(false).await;
    let invoke = async |function: &str, payload: Value| {
        json(&stack.gateway.invoke_by_name(function, payload.to_string().as_bytes()).await)
    };
    let issued = invoke("issue-api-key", json!({"name": "A", "omit_nulls": true})).await;
    let (key, ids) = (issued["api_key"].as_str().unwrap(), json!({"org_id": issued["org_id"], "id": issued["id"]}));
    let page = stack.answer(&call("GET", routes::LIST_TAGS.path, key)).await;
    assert!(issued["omit_nulls"] == true && !page.body.contains("null"), "{}", page.body);
    for (payload, wanted) in [(json!({"requests_per_second": 5}), true), (json!({"omit_nulls": false}), false)] {
        let mut changes = ids.clone();
        changes.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
        assert_eq!(invoke("update-api-key", changes).await["omit_nulls"], wanted);
        assert_eq!(invoke("list-api-keys", json!({"org_id": ids["org_id"]})).await[0]["omit_nulls"], wanted);
    }
    let of_demo = json!({"org_id": "01900000-0000-7000-8000-a00000000001", "id": id('a', kind::API_KEY, 2)});
    assert_eq!(invoke("update-api-key", of_demo).await["omit_nulls"], false);
}
