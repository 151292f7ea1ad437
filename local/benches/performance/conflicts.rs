//! A proxy between the functions and the database that adds what the embedded database lacks: the latency of a network,
//! and conflicts of overlapping writes. At its end it reports the hottest partitions of the table.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use embedded_dynamodb::Embedded;
use local::Stack;
use local::calls::written;
use local::in_progress::{conflict, conflict_of_one};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Result;

/// The content type of DynamoDB's answers.
const JSON: &str = "application/x-amz-json-1.0";
/// The header in which the SDK names the called operation.
const TARGET: &str = "x-amz-target";
/// The latency of a call in addition to the database's own time.
pub const LATENCY: Duration = Duration::from_millis(6);

/// A running proxy.
pub struct Proxy {
    /// Its address; it answers as the database does.
    pub url: String,
    between: Arc<Between>,
    server: JoinHandle<()>,
}

struct Between {
    database: Embedded,
    calls: AtomicUsize,
    /// Tenths of write units; DynamoDB bills whole units.
    tenths: AtomicUsize,
    under_way: Mutex<HashMap<String, UnderWay>>,
}

/// The running writes of one item.
#[derive(Default)]
struct UnderWay {
    transactions: usize,
    plain: usize,
}

/// The writes of a call: the keys, each as a text.
struct Writes {
    keys: Vec<String>,
    transaction: bool,
}

impl Proxy {
    /// Starts a proxy in front of the stack's database.
    pub async fn start(stack: &Stack) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let between = Arc::new(Between {
            database: stack.embedded.clone(),
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

    /// The number of calls since the last request for it.
    pub fn calls(&self) -> usize {
        self.between.calls.swap(0, Ordering::Relaxed)
    }

    /// The number of write units since the last request for it.
    pub fn write_units(&self) -> f64 {
        crate::figures::figure(self.between.tenths.swap(0, Ordering::Relaxed) as u64) / 10.0
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
        eprint!("{}", self.between.database.partitions());
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
            let answer = between.answer(target, &body, target.contains("Write") || !writes.keys.is_empty());
            between.end(&writes);
            answer
        }
        Err(conflict) => {
            tokio::time::sleep(LATENCY).await;
            conflict.into_response()
        }
    }
}

/// The writes of a call. A batch counts as many plain writes, of which none is refused.
fn writes_of(target: &str, body: &[u8]) -> Writes {
    Writes { keys: written(target, body), transaction: target == "TransactWriteItems" }
}

impl Between {
    /// Registers the writes, unless one of them conflicts: any write conflicts with a transaction, and a transaction
    /// with any write.
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

    fn answer(&self, action: &str, body: &[u8], write: bool) -> Response {
        let (status, text) = self.database.answer(action, body);
        if write {
            let document: Value = serde_json::from_str(&text).unwrap_or_default();
            let consumed = match &document["ConsumedCapacity"] {
                Value::Array(tables) => tables.iter().filter_map(|table| table["CapacityUnits"].as_f64()).sum(),
                table => table["CapacityUnits"].as_f64().unwrap_or_default(),
            };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "units are few and positive")]
            self.tenths.fetch_add((consumed * 10.0) as usize, Ordering::Relaxed);
        }
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, [(header::CONTENT_TYPE, JSON)], text).into_response()
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<String, UnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A refusal in the form that DynamoDB uses.
struct Conflict {
    /// For a transaction: which of its actions conflicted with another write.
    of_transaction: Option<Vec<bool>>,
}

impl IntoResponse for Conflict {
    fn into_response(self) -> Response {
        let body = self.of_transaction.map_or_else(conflict_of_one, |met| conflict(&met));
        (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, JSON)], body.to_string()).into_response()
    }
}
