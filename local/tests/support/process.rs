//! Builds functions as their packages do, and runs a binary for one event, with a runtime API in the place of Lambda.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use local::Stack;
use local::gateway::RESPONSE_LIMIT;
use repository::functions::Function;
use repository::root;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::support::fixture::scratch;

/// The binaries of `functions`, by their names. They are built with the profile and the features of the tests, so cargo
/// only links them.
pub fn built(functions: &[&Function]) -> BTreeMap<String, PathBuf> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--locked", "--profile", "test", "--message-format", "json", "--package", "local"]);
    for Function { package, name, .. } in functions {
        command.args(["--package", package, "--bin", name]);
    }
    // The variables of this test's cargo would make build scripts and their dependents compile again.
    let of_cargo = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_cargo)) {
        command.env_remove(name);
    }
    let output = command.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages
        .filter_map(|message| {
            let (name, file) = (message["target"]["name"].as_str()?, message["executable"].as_str()?);
            Some((name.to_owned(), PathBuf::from(file)))
        })
        .collect()
}

/// The environment that the template gives every function, for the database and the bucket of `stack`.
pub fn environment(stack: &Stack) -> Vec<(&'static str, String)> {
    let environment = [
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_LAMBDA_FUNCTION_NAME", "tested"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
        ("TABLE_NAME", local::database::TABLE_NAME),
        ("FILES_BUCKET", local::bucket::BUCKET_NAME),
        ("FAILED_RECORDS_BUCKET", local::bucket::FAILED_RECORDS_NAME),
        ("SECRETS_KEY", local::kms::KEY),
        ("PAYMENT_API_BASE", &stack.gateway.service.config.payment_api_base),
        ("API_BASE_URL", &stack.url),
        ("SENDS_PER_SECOND", "10"),
        ("QUOTAS", "webhooks=100"),
        ("KEY_REQUESTS_PER_SECOND", "1000"),
        ("KEY_BURST", "10000"),
        ("AUDIT_DAYS", "400"),
        // The machine may be busy.
        ("TABLE_ATTEMPT_SECONDS", "60"),
        ("AWS_ENDPOINT_URL_DYNAMODB", &stack.dynamodb_url),
        ("AWS_ENDPOINT_URL_S3", &stack.s3_url),
        ("AWS_ENDPOINT_URL_KMS", &stack.kms_url),
    ];
    environment.map(|(name, value)| (name, value.to_owned())).into()
}

/// What a process has answered, and all of its output.
pub struct Invoked {
    pub answer: String,
    pub output: String,
}

/// The runtime API of one process and one event.
struct Api {
    event: String,
    /// Whether the event was handed over.
    begun: AtomicBool,
    answer: Mutex<String>,
    /// Told when the process asks for a second event: then it has written everything about the first one.
    ended: Notify,
}

/// Starts `binary` with these variables as its only environment, hands it `event`, and ends it after its answer.
pub async fn invoke(binary: &Path, environment: &[(&'static str, String)], event: &str) -> Invoked {
    let api = Arc::new(Api {
        event: event.to_owned(),
        begun: AtomicBool::default(),
        answer: Mutex::default(),
        ended: Notify::new(),
    });
    let router = Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{id}/response", post(answered))
        .route("/2018-06-01/runtime/invocation/{id}/error", post(answered))
        .layer(DefaultBodyLimit::max(RESPONSE_LIMIT))
        .with_state(Arc::clone(&api));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    // A file takes every line at once.
    let file = scratch(&format!("output-{}", uuid::Uuid::now_v7()));
    let written = File::create_new(&file).unwrap();
    let mut child = Command::new(binary)
        .env_clear()
        .env("AWS_LAMBDA_RUNTIME_API", address)
        .envs(environment.iter().map(|(name, value)| (*name, value)))
        .stdin(Stdio::null())
        .stderr(written.try_clone().unwrap())
        .stdout(written)
        .spawn()
        .unwrap();
    let died = tokio::select! {
        () = api.ended.notified() => None,
        status = ended(&mut child) => Some(status),
    };
    let _ = child.kill();
    child.wait().unwrap();
    server.abort();
    let output = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    assert!(died.is_none(), "{} has ended: {died:?}\n{output}", binary.display());
    let answer = api.answer.lock().unwrap().clone();
    Invoked { answer, output }
}

/// Waits until `child` has ended.
async fn ended(child: &mut Child) -> ExitStatus {
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn next(State(api): State<Arc<Api>>) -> Response {
    if api.begun.swap(true, Ordering::SeqCst) {
        api.ended.notify_one();
        return std::future::pending().await;
    }
    let headers = [
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd"),
        ("lambda-runtime-deadline-ms", "4102444800000"),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:000000000000:function:tested"),
        ("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0"),
        ("content-type", "application/json"),
    ];
    (headers, api.event.clone()).into_response()
}

async fn answered(State(api): State<Arc<Api>>, body: Bytes) -> axum::http::StatusCode {
    *api.answer.lock().unwrap() = String::from_utf8_lossy(&body).into_owned();
    axum::http::StatusCode::ACCEPTED
}
