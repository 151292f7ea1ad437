//! Stands between the functions and the database, and adds what the embedded one lacks: the time that a call takes on a network, and
//! conflicts of writes that overlap.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Result;

/// The header in which the SDK names what it calls.
const TARGET: &str = "x-amz-target";
/// The time that a call takes more than the database itself.
pub const LATENCY: Duration = Duration::from_millis(6);

/// A running proxy.
pub struct Proxy {
    /// Where it answers as the database does.
    pub url: String,
    between: Arc<Between>,
    server: JoinHandle<()>,
}

struct Between {
    database: String,
    client: reqwest::Client,
    calls: AtomicUsize,
    /// Tenths of write units, of which DynamoDB bills whole ones.
    tenths: AtomicUsize,
    under_way: Mutex<HashMap<String, UnderWay>>,
}

/// The writes of one item that are under way.
#[derive(Default)]
struct UnderWay {
    transactions: usize,
    plain: usize,
}

/// What a call writes: the keys, each as a text.
struct Writes {
    keys: Vec<String>,
    transaction: bool,
}

impl Proxy {
    /// Stands in front of the database at this address.
    pub async fn start(database: &str) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_backend_preconfigured(shared::runtime::tls::client_config(None)?)
            .build()?;
        let database = database.to_owned();
        let between = Arc::new(Between {
            database,
            client,
            calls: AtomicUsize::default(),
            tenths: AtomicUsize::default(),
            under_way: Mutex::default(),
        });
        let router = Router::new().fallback(pass).with_state(Arc::clone(&between));
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, router.into_make_service()).await;
        });
        Ok(Self { url, between, server })
    }

    /// How many calls there were since it was last asked.
    pub fn calls(&self) -> usize {
        self.between.calls.swap(0, Ordering::Relaxed)
    }

    /// How many write units there were since it was last asked.
    pub fn write_units(&self) -> f64 {
        crate::figures::figure(self.between.tenths.swap(0, Ordering::Relaxed) as u64) / 10.0
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn pass(State(between): State<Arc<Between>>, headers: HeaderMap, body: Bytes) -> Response {
    between.calls.fetch_add(1, Ordering::Relaxed);
    let target = headers.get(TARGET).and_then(|target| target.to_str().ok()?.rsplit('.').next());
    let target = &target.unwrap_or_default().to_owned();
    let writes = writes_of(target, &body);
    match between.begin(&writes) {
        Ok(()) => {
            tokio::time::sleep(LATENCY).await;
            let answer = between.forward(headers, body, target.contains("Write") || !writes.keys.is_empty()).await;
            between.end(&writes);
            answer.unwrap_or_else(|error| (StatusCode::BAD_GATEWAY, error.to_string()).into_response())
        }
        Err(conflict) => {
            tokio::time::sleep(LATENCY).await;
            conflict.into_response()
        }
    }
}

/// What a call writes. Batches are many plain writes, of which none is refused.
fn writes_of(target: &str, body: &[u8]) -> Writes {
    let none = Writes { keys: Vec::new(), transaction: false };
    if !["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"].contains(&target) {
        return none;
    }
    let Ok(document) = serde_json::from_slice::<Value>(body) else { return none };
    let key = |action: &Value| {
        let item = if action["Key"].is_null() { &action["Item"] } else { &action["Key"] };
        format!("{} {}", item["pk"]["S"], item["sk"]["S"])
    };
    match document["TransactItems"].as_array() {
        Some(items) => {
            let actions = items.iter().filter_map(|item| item.as_object()?.values().next());
            Writes { keys: actions.map(key).collect(), transaction: true }
        }
        None => Writes { keys: vec![key(&document)], transaction: false },
    }
}

impl Between {
    /// Notes the writes, unless one of them meets a transaction, or a transaction meets one of them.
    fn begin(&self, writes: &Writes) -> std::result::Result<(), Conflict> {
        let mut under_way = self.under_way();
        let meets = |key: &String| {
            let there = under_way.get(key);
            there.is_some_and(|there| there.transactions > 0 || (writes.transaction && there.plain > 0))
        };
        let met: Vec<bool> = writes.keys.iter().map(meets).collect();
        if met.contains(&true) {
            return Err(Conflict { of_transaction: writes.transaction.then_some(met) });
        }
        for key in &writes.keys {
            let there = under_way.entry(key.clone()).or_default();
            *(if writes.transaction { &mut there.transactions } else { &mut there.plain }) += 1;
        }
        Ok(())
    }

    fn end(&self, writes: &Writes) {
        let mut under_way = self.under_way();
        for key in &writes.keys {
            let Some(there) = under_way.get_mut(key) else { continue };
            *(if writes.transaction { &mut there.transactions } else { &mut there.plain }) -= 1;
            if there.transactions + there.plain == 0 {
                under_way.remove(key);
            }
        }
    }

    async fn forward(&self, mut headers: HeaderMap, body: Bytes, write: bool) -> Result<Response> {
        for name in [header::HOST, header::CONTENT_LENGTH, header::CONNECTION] {
            headers.remove(name);
        }
        let answer = self.client.post(&self.database).headers(headers).body(body).send().await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        headers.remove(header::TRANSFER_ENCODING);
        let body = answer.bytes().await?;
        if write {
            let document: Value = serde_json::from_slice(&body).unwrap_or_default();
            let consumed = match &document["ConsumedCapacity"] {
                Value::Array(tables) => tables.iter().filter_map(|table| table["CapacityUnits"].as_f64()).sum(),
                table => table["CapacityUnits"].as_f64().unwrap_or_default(),
            };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "units are few and positive")]
            self.tenths.fetch_add((consumed * 10.0) as usize, Ordering::Relaxed);
        }
        Ok((status, headers, body).into_response())
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<String, UnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A refusal, in the words of DynamoDB.
struct Conflict {
    /// Of a transaction: which of its actions met another write.
    of_transaction: Option<Vec<bool>>,
}

impl IntoResponse for Conflict {
    fn into_response(self) -> Response {
        let body = if let Some(met) = self.of_transaction {
            let reason = |met: bool| {
                if met {
                    json!({"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"})
                } else {
                    json!({"Code": "None"})
                }
            };
            let reasons: Vec<Value> = met.into_iter().map(reason).collect();
            let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
            json!({"__type": kind, "Message": "Transaction cancelled", "CancellationReasons": reasons})
        } else {
            let kind = "com.amazonaws.dynamodb.v20120810#TransactionConflictException";
            json!({"__type": kind, "message": "Transaction is ongoing for the item"})
        };
        (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/x-amz-json-1.0")], body.to_string())
            .into_response()
    }
}
