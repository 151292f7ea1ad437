//! The console of a stack, as a browser asks it.

use std::sync::Arc;

use local::{Settings, Stack, inbox};
use repository::root;
use serde_json::{Value, json};
use shared::values::time::Clock;

use super::fixture::{http_client, streaming};

/// A stack whose endpoints lead to the inbox, with a clock that starts at the machine's time and can skip time.
pub async fn watched() -> Stack {
    let (clock, demo) = (Clock::Ahead(Arc::default()), Settings::of(&root()).demo);
    let stack = Stack::start(Settings { clock, demo, log: true, ..streaming() }).await.unwrap();
    inbox::connect(&stack.url, &stack.api).await.unwrap();
    stack.settle().await.unwrap();
    stack
}

/// The page at `path`, which has a policy without exceptions.
pub async fn text(stack: &Stack, path: &str) -> String {
    let answer = http_client().get(format!("{}{path}", stack.url)).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    let policy = answer.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    answer.text().await.unwrap()
}

/// Sends the form of `operation` for the first organisation, and returns what the console says.
pub async fn send(stack: &Stack, operation: &str, fields: &Value) -> Value {
    submit(stack, &format!("{operation}?org=acme"), fields).await
}

/// Sends the form of a page that stays, and returns its message.
pub async fn operate(stack: &Stack, operation: &str, fields: &Value) -> String {
    let says = submit(stack, &format!("{operation}?org=acme&stay=yes"), fields).await;
    says["message"].as_str().or(says["error"].as_str()).unwrap().to_owned()
}

async fn submit(stack: &Stack, form: &str, fields: &Value) -> Value {
    let answer = http_client().post(format!("{}/console/forms/{form}", stack.url)).json(fields).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{form}");
    answer.json().await.unwrap()
}

/// Skips time, and returns what the page says.
pub async fn skip(stack: &Stack, seconds: u64) -> String {
    let skip = http_client().post(format!("{}/console/time", stack.url)).json(&json!({"seconds": seconds}));
    let says: Value = skip.send().await.unwrap().error_for_status().unwrap().json().await.unwrap();
    stack.settle().await.unwrap();
    says["message"].as_str().unwrap().to_owned()
}
