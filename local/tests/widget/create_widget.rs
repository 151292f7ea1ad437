//! `POST /api/v1/widget`: makes a widget.

use local::Stack;
use local::http::{Answer, Call};
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, data, failure, get, id, kind, post, stack};
use crate::support::records::{ACME_ORG, TEST_TIME, changes, detail, fresh, inserted, items, wrong};

async fn create(stack: &Stack, body: &Value) -> Answer {
    stack.answer(&post("/api/v1/widget", ACME, body.to_string())).await
}

/// The widget that a body with only a channel makes.
fn defaults() -> Value {
    json!({
        "id": fresh(0, 4),
        "name": null,
        "description": null,
        "display_name": null,
        "assistant_id": null,
        "widget_type": "chat",
        "widget_provider": null,
        "intro_message": null,
        "opening_message": null,
        "user_opening_messages": [],
        "action_buttons": [],
        "style_params": {},
        "remove_branding": false,
        "connector_url": null,
        "attributes": {},
        "org_id": ACME_ORG,
        "created_at": TEST_TIME,
        "updated_at": TEST_TIME,
    })
}

#[tokio::test]
async fn stores_every_field_and_defaults_absent_and_null_fields() {
    let mut nulls = defaults();
    for (name, value) in nulls.as_object_mut().unwrap() {
        if !["id", "widget_type"].contains(&name.as_str()) {
            *value = Value::Null;
        }
    }
    let all = json!({
        "name": "Shop",
        "description": "Beside every product",
        "display_name": "Ask us",
        "assistant_id": id('a', kind::ASSISTANT, 1),
        "widget_type": "whatsapp",
        "widget_provider": "twilio",
        "intro_message": "We answer at once",
        "opening_message": "Hello",
        "user_opening_messages": ["Where is my order?", ""],
        "action_buttons": [{"label": "Call", "": [1.50]}, {}],
        "style_params": {"colour": "#2980b9"},
        "remove_branding": true,
        "connector_url": "https://93.184.215.14/connector",
        "attributes": {"deep": [[{}]]},
        "org_id": ACME_ORG,
    });
    let mut said = defaults();
    said.as_object_mut().unwrap().extend(all.as_object().unwrap().clone());
    for (body, widget) in [(json!({"widget_type": "chat"}), defaults()), (nulls, defaults()), (all, said)] {
        let stack = stack().await;
        let before = items(&stack).await;
        let answer = create(&stack, &body).await;
        let (mut answered, mut widget) = (widget.clone(), widget);
        (answered["secret"], widget["secrets"]) = (Value::Null, json!([]));
        if widget["display_name"].is_null() {
            (answered["display_name"], answered["widget_provider"]) = ("chat".into(), "chat".into());
        }
        if !widget["connector_url"].is_null() {
            // The secret takes the first id.
            let secret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
            (answered["secret"], widget["secrets"]) = (secret.into(), json!([{"secret": secret, "expires_at": null}]));
            (answered["id"], widget["id"]) = (fresh(1, 4).into(), fresh(1, 4).into());
        }
        assert_eq!(data(&answer), answered, "{body}");
        let free_form = ["action_buttons", "style_params", "attributes"];
        assert_eq!(changes(&stack, &before).await, inserted("WIDGET", 4, &widget, &free_form), "{body}");
    }
    assert_eq!(detail(&create(&stack().await, &json!({})).await), wrong("widget_type", "missing", "Field required"));
}

#[tokio::test]
async fn refuses_buttons_that_are_no_objects_or_too_long_together() {
    let stack = stack().await;
    let widget = |buttons: Value| json!({"widget_type": "chat", "action_buttons": buttons});
    let answer = create(&stack, &widget(json!([{}, 7, [], "x"]))).await;
    let wanted = [1, 2, 3].map(|index| format!(r#"["body","action_buttons",{index}] dict_type"#));
    assert_eq!(failure(&answer), (422, wanted.to_vec()));
    let answer = create(&stack, &widget(json!({}))).await;
    assert_eq!(failure(&answer), (422, vec![r#"["body","action_buttons"] list_type"#.into()]));
    let button = json!({"x": "x".repeat(20_000)});
    assert_eq!(create(&stack, &widget(json!([button]))).await.status, 201);
    let answer = create(&stack, &widget(json!([button, button]))).await;
    assert_eq!(failure(&answer), (422, vec![r#"["body","action_buttons"] too_long"#.into()]));
}

#[tokio::test]
async fn the_first_user_message_replaces_a_missing_opening_message() {
    let stack = stack().await;
    for (opening, messages, said) in [
        (json!(null), json!(["First", "Second"]), Some("First")),
        (json!("Opening"), json!(["First"]), Some("Opening")),
        (json!(null), json!([]), None),
    ] {
        let body = json!({"widget_type": "chat", "opening_message": opening, "user_opening_messages": messages});
        let widget = data(&create(&stack, &body).await)["id"].as_str().unwrap().to_owned();
        let run = json!({"contact_ids": [id('a', kind::CONTACT, 1)]}).to_string();
        let answer = stack.answer(&post(&format!("/api/v1/campaign/run/{widget}"), ACME, run)).await;
        let Some(said) = said else {
            assert_eq!(failure(&answer), (422, vec![r#"["body","message"] missing"#.into()]));
            continue;
        };
        let campaign = data(&answer)["campaign_id"].as_str().unwrap().to_owned();
        let read = stack.answer(&call("GET", &format!("/api/v1/campaign/get/{campaign}"), ACME)).await;
        assert_eq!(data(&read)["message"], said);
    }
}

#[tokio::test]
async fn refuses_a_user_message_above_32_768_characters() {
    let stack = stack().await;
    for (count, status) in [(32_768, 201), (32_769, 422)] {
        let text = "é".repeat(count);
        let body = json!({"widget_type": "chat", "user_opening_messages": ["Hi", text]});
        let answer = create(&stack, &body).await;
        assert_eq!(answer.status, status);
        if status == 422 {
            assert_eq!(failure(&answer).1, [r#"["body","user_opening_messages",1] string_too_long"#]);
        }
    }
}

/// The names that an answer shows.
fn shown(widget: &Value) -> [&str; 2] {
    ["display_name", "widget_provider"].map(|name| widget[name].as_str().unwrap())
}

#[tokio::test]
async fn every_answer_names_a_widget_and_its_provider() {
    let stack = stack().await;
    let page = get(&stack, "/api/v1/widget").await;
    let names: Vec<_> = page["items"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(names, [["Without an assistant", "html"], ["Web chat", "chat"], ["Telephone", "phone"], ["SMS", "sms"]]);
    let made = data(&create(&stack, &json!({"widget_type": "sms", "name": "", "display_name": ""})).await);
    assert_eq!((shown(&made), &made["name"]), (["sms", "sms"], &json!("")));
    let path = format!("/api/v1/widget/{}", made["id"].as_str().unwrap());
    for (body, wanted) in [
        (json!({"name": "Texts"}), ["Texts", "sms"]),
        (json!({"display_name": "Write to us", "widget_provider": "twilio"}), ["Write to us", "twilio"]),
        (json!({"name": "Shop"}), ["Write to us", "twilio"]),
        (json!({"display_name": null, "widget_provider": null}), ["Shop", "sms"]),
        (json!({"name": null}), ["sms", "sms"]),
    ] {
        let put = Call { body: body.to_string().into(), ..call("PUT", &path, ACME) };
        assert_eq!(shown(&data(&stack.answer(&put).await)), wanted, "{body}");
        assert_eq!(shown(&get(&stack, &path).await), wanted, "{body}");
    }
    let rotated = data(&stack.answer(&post(&format!("{path}/rotate_secret"), ACME, "")).await);
    assert_eq!(shown(&rotated), ["sms", "sms"]);
    assert_eq!(shown(&data(&stack.answer(&call("DELETE", &path, ACME)).await)), ["sms", "sms"]);
}
