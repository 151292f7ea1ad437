//! Tests that valid input is stored and returned unchanged: deep values, large numbers, empty keys, Unicode.

use std::collections::BTreeSet;

use local::functions::describe;
use local::http::Call;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use repository::read;
use serde_json::Value;
use shared::routes;
use shared::values::id::ordinal;

use crate::exercises::{EXERCISES, Exercise};
use crate::support::documented::DOCUMENT;
use crate::support::fixture::{
    ACME, call, data, failure, fields, get, json, member, not_null, path, post, stack, valid_body, valid_call,
};
use crate::support::sweep::{cases, seen_in};

/// A random JSON text. Its numbers are made of digits, because a float would lose some of them.
fn json_text() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,60})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?";
    let string = any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap());
    let leaf = prop_oneof![Just("null".to_owned()), Just("true".into()), number, string.clone(), Just("\"\"".into())];
    leaf.prop_recursive(8, 64, 6, move |inner| {
        let member = (string.clone(), inner.clone()).prop_map(|(name, value)| format!("{name}:{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

#[tokio::test]
async fn a_free_form_object_is_stored_byte_for_byte() {
    let stack = stack().await;
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    for _ in 0..64 {
        let value = json_text().new_tree(&mut runner).unwrap().current();
        let sent = format!("{{\"\":{value},\"x\":[{value}]}}");
        let answer =
            stack.answer(&post("/api/v1/agency", ACME, format!("{{\"attributes\":1,\"branding\":{sent}}}"))).await;
        assert_eq!(answer.status, 201, "{sent} {}", answer.body);
        assert!(answer.body.contains(&format!("\"branding\":{sent}")), "{sent}\n{}", answer.body);
        let id = member(&member(&answer.body, "data"), "id").trim_matches('"').to_owned();
        let pk = "ORG#01900000-0000-7000-8000-a00000000001#LIST#AGENCY#ROWS".to_owned();
        let sk = format!("{:010}", ordinal(id.parse().unwrap()));
        let get = stack.client.get_item().table_name(local::database::TABLE_NAME);
        let key = |value: String| aws_sdk_dynamodb::types::AttributeValue::S(value);
        let item = get.key("pk", key(pk)).key("sk", key(sk)).send().await.unwrap().item.unwrap();
        assert_eq!(item["branding"].as_s().unwrap(), &sent);
    }
}

#[tokio::test]
async fn an_odd_but_valid_value_is_returned_unchanged() {
    let stack = stack().await;
    let deep = 15_000;
    for value in [
        format!("{{\"deep\":{}{}}}", "[".repeat(deep), "]".repeat(deep)),
        "{\"big\":123456789012345678901234567890123456789012345678901234567890,\"small\":1e-400,\"huge\":1E+999}"
            .into(),
        "{\"\":{\"\":\"\"}}".into(),
        "{\"\\u0000\":\"\\u0000\",\"nul\":\"a\\u0000b\"}".into(),
        "{\"twice\":1,\"twice\":2}".into(),
        "{\"half\":\"\\ud800\",\"\\udc00\":1}".into(),
        "{\"minus\":-0,\"point\":1.0,\"exponent\":1e0}".into(),
        "{ \"spaces\" : [ 1 , 2 ] }".into(),
        "{\"pk\":\"x\",\"$serde_json::private::RawValue\":\"y\"}".into(),
        format!("{{\"{}\":1}}", "k".repeat(30_000)),
    ] {
        let answer = stack.answer(&post("/api/v1/assistant", ACME, format!("{{\"attributes\":{value}}}"))).await;
        assert_eq!(answer.status, 201, "{} {}", &value[..value.len().min(80)], &answer.body[..200]);
        assert!(answer.body.contains(&format!("\"attributes\":{value}")), "{}", &value[..value.len().min(80)]);
    }
}

#[tokio::test]
async fn a_text_is_returned_unchanged() {
    let stack = stack().await;
    let fields = ["name", "system_prompt", "description"];
    let short = ["", " ", "\0", "a\u{301}", "😀", "\u{feff}", "\u{202e}abc", "null", "{}"];
    let short = short.map(|text| fields.map(|_| text.to_owned()));
    // The largest record, with characters of one byte and of four.
    let long = [("x", 1), ("😀", 4)]
        .map(|(character, bytes)| fields.map(|field| character.repeat(longest(field).min(LARGEST / 3 / bytes))));
    for texts in short.into_iter().chain(long) {
        let body: Value =
            fields.into_iter().zip(&texts).map(|(field, text)| (field.to_owned(), serde_json::json!(text))).collect();
        let answered = data(&stack.answer(&post("/api/v1/assistant", ACME, body.to_string())).await);
        for (field, text) in fields.into_iter().zip(texts) {
            assert!(answered[field] == text, "{field} of {} bytes", text.len());
        }
    }
}

/// A time is stored in UTC with a year of four digits; another year would be unreadable.
#[tokio::test]
async fn a_time_outside_the_years_0_to_9999_in_utc_is_refused() {
    let stack = stack().await;
    let create = async |birthdate: &str| {
        let email = format!("{}@example.com", birthdate.replace([':', '+'], "."));
        let body =
            serde_json::json!({"first_name": "Ada", "last_name": "Lovelace", "email": email, "birthdate": birthdate});
        stack.answer(&post("/api/v1/user", ACME, body.to_string())).await
    };
    for beyond in ["9999-12-31T23:59:59-12:00", "0000-01-01T00:00:00+12:00"] {
        let refused = (422, vec![r#"["body","birthdate"] datetime_parsing"#.to_owned()]);
        assert_eq!(failure(&create(beyond).await), refused, "{beyond}");
    }
    for (last, shown) in [
        ("9999-12-31T23:59:59.9999Z", "9999-12-31T23:59:59.999Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
    ] {
        let user = data(&create(last).await);
        assert_eq!(user["birthdate"], shown);
        let path = format!("/api/v1/user/{}", user["id"].as_str().unwrap());
        assert_eq!(get(&stack, &path).await["birthdate"], shown);
        assert_eq!(stack.answer(&call("DELETE", &path, ACME)).await.status, 200, "{last}");
    }
}

/// The most bytes of a record as JSON.
const LARGEST: usize = 360 * 1024;

/// The most bytes of a free-form value.
const FREE_FORM: usize = 32 * 1024;

/// The most characters of a text `name`, as the contract gives them.
fn longest(name: &str) -> usize {
    match name {
        "outcome" => 100,
        "reason" => 200,
        "name" | "external_id" => 256,
        "recording_url" => 2048,
        "summary" => 4096,
        "system_prompt" => 131_072,
        "description" | "trigger_instructions" => 65_536,
        "text" | "message" | "opening_message" | "user_opening_messages" | "intro_message" => 32_768,
        _ => 8192,
    }
}

/// The largest valid value of `member`, a value that is one larger, and the type of the issue for the second.
fn limits(route: &shared::request::route::Route, name: &str, member: &Value) -> Option<(Value, Value, &'static str)> {
    let choices = member["anyOf"].as_array().cloned().unwrap_or_else(|| vec![member.clone()]);
    if let Some(most) = choices.iter().find_map(|choice| choice["maxLength"].as_u64()) {
        let most = usize::try_from(most).unwrap();
        let is_address = ["endpoint", "connector_url"].contains(&name);
        let wanted = match name {
            "endpoint" | "connector_url" => 2048,
            // That of a close has 200.
            "reason" if route.record == "suppression" => 256,
            _ => longest(name),
        };
        assert_eq!(most, wanted, "{name}");
        let kind = if is_address { "url_too_long" } else { "string_too_long" };
        return Some(("é".repeat(most).into(), "é".repeat(most + 1).into(), kind));
    }
    let text = |bytes: usize| "x".repeat(bytes);
    match member["type"].as_str()? {
        "object" if member.get("properties").is_none() => {
            let frame = r#"{"x":""}"#.len();
            let object = |bytes: usize| serde_json::json!({"x": text(bytes - frame)});
            Some((object(FREE_FORM), object(FREE_FORM + 1), "too_long"))
        }
        "array" if member.get("items").is_none() => {
            let frame = r#"[""]"#.len();
            let array = |bytes: usize| serde_json::json!([text(bytes - frame)]);
            Some((array(FREE_FORM), array(FREE_FORM + 1), "too_long"))
        }
        _ => None,
    }
}

#[tokio::test]
async fn every_text_and_every_free_form_value_has_a_limit() {
    let mut limited = Vec::new();
    for route in cases(routes::ALL.iter().filter(|route| describe(route.name).body.is_some())) {
        for (name, member) in fields(route) {
            let Some((most, more, kind)) = limits(route, &name, not_null(&member)) else { continue };
            let issue = format!("[\"body\",\"{name}\"] {kind}");
            for (value, refused) in [(most, false), (more, true)] {
                let mut body: Value = serde_json::from_str(&valid_body(route, 'a')).unwrap();
                body[&name] = value;
                let answer =
                    stack().await.answer(&Call { body: body.to_string().into(), ..valid_call(route, 'a', ACME) }).await;
                let (status, issues) = failure(&answer);
                // A long text is no address, names no record and is no filter. The limit is the first thing that is checked.
                let wanted = match name.as_str() {
                    // Each text of a mapping has a limit of its own.
                    "contact_mapping" => (422, vec![format!("[\"body\",\"{name}\",\"x\"] string_too_long")]),
                    _ if refused => (422, vec![issue.clone()]),
                    "endpoint" | "connector_url" => (422, vec![format!("[\"body\",\"{name}\"] url_parsing")]),
                    "recording_url" => (422, vec![format!("[\"body\",\"{name}\"] value_error")]),
                    "entity_id" => (422, vec![format!("[\"body\",\"{name}\"] not_found")]),
                    "custom_fields" | "field_values" => {
                        (422, vec![format!("[\"body\",\"{name}\",\"x\"] extra_forbidden")])
                    }
                    "name" if route.name == routes::UPDATE_CONTACT_CUSTOM_FIELD.name => {
                        (422, vec![format!("[\"body\",\"{name}\"] value_error")])
                    }
                    "filters" => (422, vec![format!("[\"body\",\"{name}\",\"x\"] dict_type")]),
                    _ => (route.success, Vec::new()),
                };
                assert_eq!((status, issues), wanted, "{} {name}", route.name);
            }
            limited.push(format!("{} {name}", route.name));
        }
    }
    seen_in(limited.len(), 21);
}

#[tokio::test]
async fn an_oversized_page_names_a_size_that_works() {
    let stack = stack().await;
    let conversation =
        data(&stack.answer(&post("/api/v1/conversation", ACME, valid_body(&routes::OPEN_CONVERSATION, 'a'))).await);
    let path = format!("/api/v1/conversation/{}", conversation["id"].as_str().unwrap());
    // Messages of characters with one byte, with four bytes, and with two bytes in the function's response.
    for (character, count) in [("x", 10), ("😀", 2), ("\"", 100)] {
        for _ in 0..count {
            let body = serde_json::json!({"sender_type": "user", "text": character.repeat(32_000)});
            let said = stack.answer(&post(&format!("{path}/message"), ACME, body.to_string())).await;
            assert_eq!(said.status, 201, "{}", said.body);
        }
    }
    let read =
        async |page: u64, size: u64| stack.answer(&call("GET", &format!("{path}?page={page}&size={size}"), ACME)).await;
    let mut refused = Vec::new();
    for (page, size) in [(1, 100), (2, 100), (2, 62), (3, 50), (4, 31), (10, 10), (1, 10)] {
        let answer = read(page, size).await;
        let passed_on = serde_json::to_string(&answer.body).unwrap().len();
        assert!(passed_on < 6_291_556 - 4096, "{page} {size} {passed_on}");
        if answer.status == 200 {
            continue;
        }
        refused.push((page, size));
        assert_eq!(failure(&answer), (422, vec![r#"["query","size"] page_too_large"#.into()]));
        let msg = json(&answer)["detail"][0]["msg"].as_str().unwrap().to_owned();
        let works: u64 = msg.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(works < size, "{msg}");
        assert_eq!(read(page, works).await.status, 200, "{page} {msg}");
    }
    assert_eq!(refused, [(1, 100), (2, 62)]);
}

#[tokio::test]
async fn the_largest_text_of_any_characters_fits_an_item() {
    let keyed = |call: Call| {
        let headers = [("idempotency-key".to_owned(), "largest".to_owned())].into();
        Call { headers, ..call }
    };
    let texts =
        |exercise: &'static Exercise| (exercise.texts)().into_iter().map(|(rest, field)| (exercise.route, rest, field));
    for (route, rest, field) in cases(EXERCISES.iter().flat_map(texts)) {
        // Characters of one to four bytes, plain and as escapes, and some that are longer when they are printed.
        for character in
            ["x", "é", "€", "😀", r"\u00e9", r"\u20ac", r"\ud83d\ude00", r"\u0001", r"\n", r#"\""#, "\u{7f}"]
        {
            let (begin, end) = if field == "attributes" { (r#"{"":""#, r#""}"#) } else { ("\"", "\"") };
            let mut body = rest.to_string();
            body.truncate(body.len() - 1);
            body += &format!(r#","{field}":{begin}"#);
            let room = (route.body_limit - body.len() - end.len() - 1) / character.len();
            let most = if field == "attributes" {
                (32 * 1024 - begin.len() - end.len()) / character.len()
            } else {
                longest(field)
            };
            // As many as the whole record may have in its answer, beside the other fields.
            let printed: String = serde_json::from_str(&format!("\"{character}\"")).unwrap();
            let bytes = serde_json::to_string(&printed).unwrap().len() - 2;
            body += &format!("{}{end}}}", character.repeat(room.min(most).min((LARGEST - 4096) / bytes)));
            let stack = stack().await;
            let call = keyed(Call { body: body.clone().into(), ..valid_call(route, 'a', ACME) });
            let first = stack.answer(&call).await;
            assert_eq!(first.status, route.success, "{} {field} {character}", route.name);
            let sent: Value = serde_json::from_str(&body).unwrap();
            assert!(json(&first)["data"][field] == sent[field], "{} {field} {character}", route.name);
            let again = stack.answer(&call).await;
            assert!(again.body == first.body || route.method == "PUT", "{} {field} {character}", route.name);
            assert!(again.cost.calls == 1 || route.method == "PUT", "{} {:?}", route.name, again.cost);
        }
    }
}

#[tokio::test]
async fn an_answer_stays_below_the_limit_of_lambda() {
    let stack = stack().await;
    let limit = routes::CREATE_ASSISTANT.body_limit;
    let body = format!(r#"{{"voice_languages":[1{}]}}"#, ",1".repeat(limit / 2 - 20));
    let answer = stack.answer(&post("/api/v1/assistant", ACME, body)).await;
    assert_eq!(answer.status, 422);
    assert!(answer.body.len() < 6_000_000, "{} bytes", answer.body.len());
}

#[tokio::test]
async fn random_input_is_refused_or_valid() {
    let stack = stack().await;
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    let (mut refused, mut asked) = (0, 0);
    for route in cases(routes::ALL) {
        for _ in 0..12 {
            let body = bytes.new_tree(&mut runner).unwrap().current();
            let text = json_text().new_tree(&mut runner).unwrap().current();
            let odd = "[ -~é%]{0,40}".new_tree(&mut runner).unwrap().current();
            let encoded: String = form_urlencoded::byte_serialize(odd.as_bytes()).collect();
            for body in
                [body, text.into_bytes(), format!("{{\"name\":{odd:?},\"contact_ids\":[{odd:?}]}}").into_bytes()]
            {
                let path = path(route, |_| if encoded.is_empty() { "x".into() } else { encoded.clone() });
                let mut odd_call = call(route.method, &path, ACME);
                odd_call.query += &format!("&page={encoded}&size={encoded}&{encoded}");
                odd_call.body = body;
                let answer = stack.answer(&odd_call).await;
                // Nothing throttles here. A random body may be valid where no field is required.
                let possible = [route.success, 404, 422];
                assert!(possible.contains(&answer.status), "{odd_call:?} {} {}", answer.status, answer.body);
                refused += usize::from(answer.status == 422);
                asked += 1;
            }
        }
    }
    // The input reaches the operations, which together refuse nearly all of it. Some of them require no field.
    seen_in(refused, asked * 9 / 10 + 1);
}

/// `number` as the documents write it.
fn written(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

#[test]
fn the_table_of_limits_has_every_limit_of_the_document() {
    fn limits(schema: &Value, found: &mut BTreeSet<u64>) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| limits(item, found)),
            Value::Object(members) => {
                // A list that may have each word of an enum once has no limit of its own.
                let words =
                    members.get("items").and_then(|items| DOCUMENT.pointer(items["$ref"].as_str()?.strip_prefix('#')?));
                let words = words.and_then(|schema| Some(schema["enum"].as_array()?.len() as u64));
                let length = members.get("maxLength").and_then(Value::as_u64);
                let items = members.get("maxItems").and_then(Value::as_u64).filter(|most| Some(*most) != words);
                found.extend(length.into_iter().chain(items));
                members
                    .iter()
                    .filter(|(name, _)| !name.starts_with("example"))
                    .for_each(|(_, member)| limits(member, found));
            }
            _ => {}
        }
    }
    let page = read("docs/API.md");
    let table = page.split("\n## ").find(|section| section.starts_with("Limits\n")).unwrap();
    let mut found = BTreeSet::new();
    limits(&DOCUMENT, &mut found);
    found.extend(routes::ALL.iter().map(|route| u64::try_from(route.body_limit / 1024).unwrap()));
    found.insert(u64::try_from(LARGEST).unwrap());
    assert!(found.len() > 8, "{found:?}");
    for limit in found {
        assert!(table.contains(&written(limit)), "{limit}");
    }
}
