//! `GET /api/v1/llm_model`: the catalogue of language models.

use local::http::Call;
use repository::read;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, ACME_READ_ONLY, GLOBEX, call, data, post, stack};

#[tokio::test]
async fn answers_the_file_to_every_organisation() {
    let stack = stack().await;
    let file: Value = serde_json::from_str(&read("models.json")).unwrap();
    let total = file.as_array().unwrap().len();
    for key in [ACME_READ_ONLY, GLOBEX] {
        let answered = data(&stack.answer(&call("GET", "/api/v1/llm_model", key)).await);
        assert_eq!(answered, json!({"items": file, "total": total}));
    }
}

#[tokio::test]
async fn every_answer_with_a_retired_model_has_a_warning() {
    let stack = stack().await;
    let models = data(&stack.answer(&call("GET", "/api/v1/llm_model", ACME)).await)["items"].clone();
    for model in models.as_array().unwrap() {
        let (name, is_active) = (&model["name"], model["status"] == "active");
        let created =
            data(&stack.answer(&post("/api/v1/assistant", ACME, json!({"llm_model": name}).to_string())).await);
        let path = format!("/api/v1/assistant/{}", created["id"].as_str().unwrap());
        let updated =
            data(&stack.answer(&Call { method: "PUT".into(), ..post(&path, ACME, r#"{"name":"Reception"}"#) }).await);
        let read = data(&stack.answer(&call("GET", &path, ACME)).await);
        let listed = data(&stack.answer(&call("GET", "/api/v1/assistant?order=desc&size=1", ACME)).await);
        for answer in [&created, &updated, &read, &listed["items"][0]] {
            let warnings = answer["warnings"].as_array().unwrap();
            assert_eq!(warnings.is_empty(), is_active, "{answer}");
            assert!(warnings.iter().all(|text| text.as_str().unwrap().contains(name.as_str().unwrap())), "{answer}");
        }
    }
}
