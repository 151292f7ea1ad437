//! `POST /api/v1/assistant`: makes an assistant.

use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, data, id, kind, post, stack};
use crate::support::records::{ACME_ORG, Items, NOBODYS, changes, detail, fresh, inserted, issue, items};

/// How many assistants the demo set has.
const NEXT: u32 = 2;

const TYPES: [&str; 5] = ["simple", "chat", "phone", "nl2sql", "realtime_openai"];

const MODELS: [&str; 12] = [
    "gpt-4-0125-preview",
    "gpt-3.5-turbo-0125",
    "gpt-3.5-turbo-1106",
    "gpt-3.5-turbo",
    "gpt-4-1106-preview",
    "gpt-4o-2024-05-13",
    "gpt-4o-mini",
    "llama-3.1-70b-versatile",
    "gpt-4o-realtime-preview",
    "gpt-4o-mini-realtime-preview",
    "deepseek-r1-distill-llama-70b",
    "o3-mini",
];

async fn create(stack: &Stack, body: &Value) -> Answer {
    stack.answer(&post("/api/v1/assistant", ACME, body.to_string())).await
}

/// The assistant that an empty body makes.
fn defaults() -> Value {
    json!({
        "id": fresh(0, NEXT),
        "name": null,
        "description": null,
        "attributes": {},
        "system_prompt": "",
        "voice": false,
        "custom_voice": false,
        "voice_languages": [],
        "org_id": ACME_ORG,
        "show_images": false,
        "hide_ds": false,
        "webhook_id": null,
        "has_human_agent": false,
        "use_tools": false,
        "conversation_flow_id": null,
        "assistant_type": "simple",
        "llm_model": "gpt-4-0125-preview",
        "conversation": {"idle_close_minutes": null},
        "warnings": ["The provider has retired the model 'gpt-4-0125-preview' on 2026-03-26; 'gpt-4o-mini' replaces it"],
    })
}

/// A body with another value than the default in every field.
fn full_body() -> Value {
    json!({
        "name": "Reception",
        "description": "Greets and helps",
        "attributes": {"": [1, {"deep": null}]},
        "system_prompt": "You are friendly.",
        "voice": true,
        "custom_voice": true,
        "voice_languages": ["en-GB", "fil-PH"],
        "org_id": ACME_ORG,
        "show_images": true,
        "hide_ds": true,
        "webhook_id": id('a', kind::WEBHOOK, 1),
        "has_human_agent": true,
        "use_tools": true,
        "conversation_flow_id": NOBODYS,
        "assistant_type": "realtime_openai",
        "llm_model": "o3-mini",
        "conversation": {"idle_close_minutes": 43_200},
    })
}

#[tokio::test]
async fn stores_every_field_and_defaults_absent_and_null_fields() {
    let mut nulls = full_body();
    nulls.as_object_mut().unwrap().values_mut().for_each(|value| *value = Value::Null);
    for (body, mut wanted) in [(json!({}), defaults()), (nulls, defaults()), (full_body(), full_body())] {
        let stack = stack().await;
        let before = items(&stack).await;
        wanted["id"] = fresh(0, NEXT).into();
        let mut answered = data(&create(&stack, &body).await);
        let warnings = answered.as_object_mut().unwrap().remove("warnings");
        assert_eq!(warnings, Some(wanted.as_object_mut().unwrap().remove("warnings").unwrap_or(json!([]))), "{body}");
        assert_eq!(answered, wanted, "{body}");
        // Warnings follow from the model, and are not stored.
        let row = inserted("ASSISTANT", NEXT, &wanted, &["attributes"]);
        assert_eq!(changes(&stack, &before).await, row, "{body}");
    }
}

#[tokio::test]
async fn the_service_assigns_ids_in_the_order_of_creation() {
    let stack = stack().await;
    for number in 0..2 {
        let created = data(&create(&stack, &json!({"id": NOBODYS, "created_at": "1970", "unknown": {}})).await);
        let mut wanted = defaults();
        wanted["id"] = fresh(number as usize, NEXT + number).into();
        assert_eq!(created, wanted);
    }
}

#[tokio::test]
async fn accepts_every_type_and_model_and_lists_them_in_the_refusal() {
    let stack = stack().await;
    for (field, words) in [("assistant_type", &TYPES[..]), ("llm_model", &MODELS)] {
        for word in words {
            assert_eq!(data(&create(&stack, &json!({field: word})).await)[field], *word);
        }
        let (last, others) = words.split_last().unwrap();
        let msg = format!("Input should be '{}' or '{last}'", others.join("', '"));
        for wrong in [json!("Simple"), json!("gpt-4"), json!(""), json!(" chat"), json!(1), json!(true), json!({})] {
            let wanted = json!([issue(&json!(["body", field]), "enum", &msg)]);
            assert_eq!(detail(&create(&stack, &json!({field: wrong})).await), (422, wanted), "{field} {wrong}");
        }
    }
}

#[tokio::test]
async fn refuses_a_voice_language_that_is_no_locale_code() {
    let stack = stack().await;
    let fine = json!(["en-GB", "nl-NL", "fil-PH", "es-419", "en-GB"]);
    assert_eq!(data(&create(&stack, &json!({"voice_languages": fine})).await)["voice_languages"], fine);
    let wrong = json!([
        "en-GB", "english", "es-41", "es-4190", "es-4A9", "EN-gb", "en_GB", "e-GB", "engl-GB", "en-G", "en-GBR",
        "en-GB-x", "en-GB\n", " en-GB", "", "én-GB", 3, null,
    ]);
    let issues = (1..18).map(|index| {
        let (kind, msg) = if index < 16 {
            ("string_pattern_mismatch", "String should match pattern '^[a-z]{2,3}-([A-Z]{2}|[0-9]{3})$'")
        } else {
            ("string_type", "Input should be a valid string")
        };
        issue(&json!(["body", "voice_languages", index]), kind, msg)
    });
    assert_eq!(detail(&create(&stack, &json!({"voice_languages": wrong})).await), (422, issues.collect()));
}

#[tokio::test]
async fn refuses_an_unknown_webhook_with_422() {
    let stack = stack().await;
    let before = items(&stack).await;
    // The second id belongs to an assistant.
    for webhook in [NOBODYS, &id('a', kind::ASSISTANT, 1)] {
        let wanted = json!([issue(&json!(["body", "webhook_id"]), "not_found", "Not found")]);
        assert_eq!(detail(&create(&stack, &json!({"webhook_id": webhook})).await), (422, wanted));
    }
    assert_eq!(changes(&stack, &before).await, (Items::new(), Items::new()));
}

#[tokio::test]
async fn answers_ids_of_any_form_in_lower_case_with_hyphens() {
    let stack = stack().await;
    for field in ["org_id", "webhook_id", "conversation_flow_id"] {
        let id = full_body()[field].as_str().unwrap().to_owned();
        for form in [id.to_uppercase(), id.replace('-', ""), format!("{{{id}}}"), format!("urn:uuid:{id}")] {
            assert_eq!(data(&create(&stack, &json!({field: form})).await)[field], id, "{form}");
        }
    }
}

#[tokio::test]
async fn issues_follow_the_order_of_the_fields_and_precede_not_found() {
    let wanted: Vec<_> =
        "name description attributes system_prompt voice custom_voice voice_languages org_id show_images \
                          hide_ds webhook_id has_human_agent use_tools conversation_flow_id assistant_type llm_model"
            .split(' ')
            .collect();
    let stack = stack().await;
    let body = wanted.iter().rev().map(|field| format!(r#""{field}":2"#)).collect::<Vec<_>>().join(",");
    let answer = stack.answer(&post("/api/v1/assistant", ACME, format!("{{{body}}}"))).await;
    let (status, issues) = detail(&answer);
    let fields: Vec<_> = issues.as_array().unwrap().iter().map(|issue| issue["loc"][1].as_str().unwrap()).collect();
    assert_eq!((status, fields), (422, wanted));
    let wanted = json!([issue(&json!(["body", "name"]), "string_type", "Input should be a valid string")]);
    assert_eq!(detail(&create(&stack, &json!({"webhook_id": NOBODYS, "name": 1})).await), (422, wanted));
}
