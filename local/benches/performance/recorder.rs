//! A proxy between a binary and the database and the payment provider that records the calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Result;

/// The header in which the SDK names the called operation.
const TARGET: &str = "x-amz-target";
/// The headers that belong to a single connection.
const OWN: [HeaderName; 4] = [header::HOST, header::CONTENT_LENGTH, header::CONNECTION, header::TRANSFER_ENCODING];

/// A running recorder.
pub struct Recorder {
    /// Its address; it answers for both.
    pub url: String,
    seen: Seen,
    server: JoinHandle<()>,
}

type Seen = Arc<Mutex<Calls>>;

/// Calls in rounds: the calls of a round ran at the same time.
#[derive(Default)]
struct Calls {
    rounds: Vec<Vec<Value>>,
    under_way: usize,
}

#[derive(Clone)]
struct Between {
    database: String,
    provider: String,
    client: reqwest::Client,
    seen: Seen,
}

impl Recorder {
    /// Starts a recorder in front of the database and the provider at these addresses.
    pub async fn start(database: &str, provider: &str) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_backend_preconfigured(shared::network::tls::client_config(None)?)
            .build()?;
        let seen = Seen::default();
        let between =
            Between { database: database.to_owned(), provider: provider.to_owned(), client, seen: Arc::clone(&seen) };
        let router = Router::new().fallback(pass).with_state(between);
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, router.into_make_service()).await;
        });
        Ok(Self { url, seen, server })
    }

    /// The calls since the last request for them.
    pub fn take(&self) -> Vec<Vec<Value>> {
        std::mem::take(&mut locked(&self.seen).rounds)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn locked(seen: &Seen) -> MutexGuard<'_, Calls> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn pass(State(between): State<Between>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers.get(TARGET).and_then(|target| target.to_str().ok()?.rsplit('.').next()).map(str::to_owned);
    let (url, call) = if let Some(target) = target {
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        (between.database.clone(), json!({"target": target, "body": body}))
    } else {
        let url = format!("{}{uri}", between.provider);
        let authorization = headers.get(header::AUTHORIZATION).and_then(|key| key.to_str().ok());
        let body = json!({"url": url, "body": String::from_utf8_lossy(&body), "authorization": authorization});
        (url, json!({"target": "POST", "body": body}))
    };
    between.begin(call);
    let answer = between.forward(&url, headers, body).await;
    locked(&between.seen).under_way -= 1;
    answer.unwrap_or_else(|error| (StatusCode::BAD_GATEWAY, error.to_string()).into_response())
}

impl Between {
    fn begin(&self, call: Value) {
        let mut calls = locked(&self.seen);
        let joins = calls.under_way > 0;
        match calls.rounds.last_mut() {
            Some(round) if joins => round.push(call),
            _ => calls.rounds.push(vec![call]),
        }
        calls.under_way += 1;
    }

    async fn forward(&self, url: &str, mut headers: HeaderMap, body: Bytes) -> Result<Response> {
        strip(&mut headers);
        let answer = self.client.post(url).headers(headers).body(body).send().await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        strip(&mut headers);
        Ok((status, headers, answer.bytes().await?).into_response())
    }
}

fn strip(headers: &mut HeaderMap) {
    for name in OWN {
        headers.remove(name);
    }
}
