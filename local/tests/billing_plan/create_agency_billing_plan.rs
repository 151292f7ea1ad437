//! `POST /api/v1/agency/billing/{agency_id}/billing_plan`: makes a billing plan of an agency.

use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, data, failure, id, kind, post, stack};
use crate::support::records::{Items, NOBODYS, changes, detail, fresh, inserted, issue, items};

const REQUIRED: [&str; 7] =
    ["name", "description", "bots_count", "queries_count", "words_count", "voice_seconds", "premium_support"];
const COUNTS: [&str; 4] = ["bots_count", "queries_count", "words_count", "voice_seconds"];
const FLAGS: [&str; 5] = ["premium_support", "default_plan", "remove_branding", "advanced_intents", "auto_intents"];

fn agency() -> String {
    id('a', kind::AGENCY, 1)
}

async fn create_at(stack: &Stack, agency: &str, body: &Value) -> Answer {
    stack.answer(&post(&format!("/api/v1/agency/billing/{agency}/billing_plan"), ACME, body.to_string())).await
}

async fn create(stack: &Stack, body: &Value) -> Answer {
    create_at(stack, &agency(), body).await
}

/// A body with the required fields only.
fn least() -> Value {
    json!({
        "name": "Pro",
        "description": "All of it",
        "bots_count": 5,
        "queries_count": 1000,
        "words_count": 0,
        "voice_seconds": i64::MAX,
        "premium_support": true,
    })
}

/// `body` with the members of `changes`.
fn with(mut body: Value, changes: &Value) -> Value {
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    body
}

/// The plan that `body` makes.
fn plan(body: &Value) -> Value {
    let defaults = json!({
        "id": fresh(0, 2),
        "overage": "allow",
        "default_plan": false,
        "remove_branding": false,
        "advanced_intents": false,
        "auto_intents": false,
        "billing_plan_group": null,
        "credits": {},
        "attributes": {},
        "agency_id": agency(),
        "plan_lookup_key": null,
    });
    with(defaults, body)
}

#[tokio::test]
async fn stores_every_field_and_defaults_absent_and_null_fields() {
    let mut nulls = plan(&json!({}));
    nulls.as_object_mut().unwrap().values_mut().for_each(|value| *value = Value::Null);
    let more = json!({
        "overage": "block",
        "default_plan": true,
        "remove_branding": true,
        "advanced_intents": true,
        "auto_intents": true,
        "billing_plan_group": "main",
        "credits": {"monthly": [1, 2.5]},
        "attributes": {"": {}},
        "agency_id": agency(),
        "plan_lookup_key": "pro_monthly",
    });
    let (list, more) = (format!("BILLING_PLAN#{}", agency()), with(least(), &more));
    for (body, wanted) in [(least(), least()), (with(nulls, &least()), least()), (more.clone(), more)] {
        let (stack, wanted) = (stack().await, plan(&wanted));
        let before = items(&stack).await;
        let answer = create(&stack, &body).await;
        assert_eq!(data(&answer), wanted, "{body}");
        let row = inserted(&list, 2, &wanted, &["credits", "attributes"]);
        let (mut gone, mut new) = changes(&stack, &before).await;
        // A new default changes the former one: see `update_agency_billing_plan.rs`.
        for items in [&mut gone, &mut new] {
            items.retain(|(pk, sk), _| !pk.contains("#DEFAULT_PLAN#") && sk != "0000000000");
        }
        assert_eq!((gone, new), row, "{body}");
    }
}

#[tokio::test]
async fn missing_fields_are_listed_after_the_issues_of_the_path() {
    let stack = stack().await;
    let missing = REQUIRED.map(|name| issue(&json!(["body", name]), "missing", "Field required"));
    assert_eq!(detail(&create(&stack, &json!({})).await), (422, json!(missing)));
    let reason = "Input should be a valid UUID, invalid length: expected length 32 for simple format, found 2";
    let mut all = vec![issue(&json!(["path", "agency_id"]), "uuid_parsing", reason)];
    all.extend(missing);
    assert_eq!(detail(&create_at(&stack, "ab", &json!({})).await), (422, json!(all)));
}

#[tokio::test]
async fn refuses_null_for_each_required_field() {
    let stack = stack().await;
    for name in REQUIRED {
        let (kind, msg) = match name {
            "name" | "description" => ("string_type", "Input should be a valid string"),
            "premium_support" => ("bool_type", "Input should be a valid boolean"),
            _ => ("int_type", "Input should be a valid integer"),
        };
        let wanted = json!([issue(&json!(["body", name]), kind, msg)]);
        assert_eq!(detail(&create(&stack, &with(least(), &json!({name: null}))).await), (422, wanted));
    }
}

#[tokio::test]
async fn counts_accept_every_form_of_an_integer_from_0() {
    let stack = stack().await;
    for (sent, read) in [
        (json!("12"), 12),
        (json!(" 12 "), 12),
        (json!("1_000"), 1000),
        (json!("3.00"), 3),
        (json!(1.0), 1),
        (json!(true), 1),
        (json!(false), 0),
        (json!(0), 0),
        (json!("-0"), 0),
    ] {
        for name in COUNTS {
            let answer = create(&stack, &with(least(), &json!({name: sent}))).await;
            assert_eq!(data(&answer)[name], read, "{name} {sent}");
        }
    }
    for (sent, kind, msg) in [
        (json!(-1), "greater_than_equal", "Input should be greater than or equal to 0"),
        (json!("-1"), "greater_than_equal", "Input should be greater than or equal to 0"),
        (json!(1.5), "int_from_float", "Input should be a valid integer, got a number with a fractional part"),
        (json!("x"), "int_parsing", "Input should be a valid integer, unable to parse string as an integer"),
        (json!(""), "int_parsing", "Input should be a valid integer, unable to parse string as an integer"),
        (json!([]), "int_type", "Input should be a valid integer"),
        (json!({}), "int_type", "Input should be a valid integer"),
        (
            json!(9_223_372_036_854_775_808_u64),
            "int_parsing_size",
            "Unable to parse input string as an integer, exceeded maximum size",
        ),
    ] {
        let body: Value = COUNTS.iter().map(|name| ((*name).to_owned(), sent.clone())).collect();
        let issues = COUNTS.map(|name| issue(&json!(["body", name]), kind, msg));
        assert_eq!(detail(&create(&stack, &with(least(), &body)).await), (422, json!(issues)), "{sent}");
    }
}

#[tokio::test]
async fn flags_accept_every_form_of_a_boolean() {
    let stack = stack().await;
    let all = |sent: &Value| with(least(), &FLAGS.iter().map(|name| ((*name).to_owned(), sent.clone())).collect());
    for (read, forms) in [
        (true, json!([true, 1, 1.0, "true", "T", "Yes", "y", "ON", "1"])),
        (false, json!([false, 0, 0.0, "false", "F", "No", "n", "oFF", "0"])),
    ] {
        for sent in forms.as_array().unwrap() {
            let created = data(&create(&stack, &all(sent)).await);
            assert_eq!(FLAGS.map(|name| created[name].as_bool()), [Some(read); 5], "{sent}");
        }
    }
    for (kind, msg, wrong) in [
        (
            "bool_parsing",
            "Input should be a valid boolean, unable to interpret input",
            json!(["maybe", "", " true", 2, -1, 2.0]),
        ),
        ("bool_type", "Input should be a valid boolean", json!([[], {}, 0.5, 1e19])),
    ] {
        for sent in wrong.as_array().unwrap() {
            let issues = FLAGS.map(|name| issue(&json!(["body", name]), kind, msg));
            assert_eq!(detail(&create(&stack, &all(sent)).await), (422, json!(issues)), "{sent}");
        }
    }
}

#[tokio::test]
async fn the_body_may_repeat_but_not_contradict_the_agency_of_the_path() {
    let stack = stack().await;
    for same in [agency().to_uppercase(), agency().replace('-', ""), format!("urn:uuid:{}", agency())] {
        let answer = create(&stack, &with(least(), &json!({"agency_id": same}))).await;
        assert_eq!(data(&answer)["agency_id"], agency());
    }
    let before = items(&stack).await;
    // The answer is the same for unknown agencies: the input is validated before the agency is read.
    for (path, body) in [(agency(), id('a', kind::AGENCY, 2)), (agency(), NOBODYS.into()), (NOBODYS.into(), agency())] {
        let answer = create_at(&stack, &path, &with(least(), &json!({"agency_id": body}))).await;
        assert_eq!(failure(&answer), (422, vec![r#"["body","agency_id"] value_error"#.into()]));
    }
    assert_eq!(changes(&stack, &before).await, (Items::new(), Items::new()));
}
