//! Faults between the SDK and the database that DynamoDB may have and the embedded one never has.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::calls::{self, DatabaseCall};
use crate::in_progress::{InProgress, Interference, cancelled, conflict, conflict_of_one, exception};
use crate::roles::bucket_action;

/// The actions that change nothing.
const READS: [&str; 5] = ["GetItem", "BatchGetItem", "Query", "GetObject", "ListObjectsV2"];

/// The fault of one request on its way to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The database throttles: nothing is done.
    Throttle,
    /// The database fails: nothing is done.
    ServerError,
    /// The request never arrives, and no answer comes.
    LoseRequest,
    /// The request never arrives: the process crashes while another request is running.
    Stall,
    /// The request takes effect, and no answer comes.
    LoseAnswer,
    /// The connection breaks before the request arrives.
    BreakRequest,
    /// The request takes effect, and the connection breaks before the answer.
    BreakAnswer,
    /// A transaction conflicts with another one: nothing is done.
    Conflict,
    /// A transaction is throttled, and its cancellation says so; the SDK does not retry it: nothing is done.
    ThrottledTransaction,
    /// Half of a batch is left unprocessed.
    Unprocessed,
    /// An index returns its answer to the previous query: an index is updated a moment after its table.
    StaleIndex,
    /// The request waits until its [`Pause`] ends.
    Pause,
    /// The connection breaks while a transaction is in progress. So many later calls meet the transaction
    /// ([`in_progress`](crate::in_progress)).
    InProgress {
        /// The number of these calls.
        meets: usize,
        /// Whether it is committed after them.
        commits: bool,
    },
}

/// A request that waits while a test does something else.
#[derive(Debug, Clone, Default)]
pub struct Pause {
    reached: Arc<Notify>,
    ended: Arc<Notify>,
}

impl Pause {
    /// Waits until the paused request is made.
    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Lets the request continue.
    pub fn end(&self) {
        self.ended.notify_one();
    }
}

impl Fault {
    /// Whether this fault is possible for `action`; otherwise it is left out: only single writes and transactions
    /// conflict, only transactions are cancelled, and only batches are left unprocessed.
    pub fn applies_to(self, action: &str) -> bool {
        match self {
            Self::Conflict => ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"].contains(&action),
            Self::ThrottledTransaction | Self::InProgress { .. } => action == "TransactWriteItems",
            Self::Unprocessed => action.starts_with("Batch"),
            Self::StaleIndex => action == "Query",
            _ => true,
        }
    }

    /// The status and the body with which `action` is refused; `None` if it is not.
    fn refusal(self, action: &str) -> Option<(u16, Value)> {
        match self {
            Self::Throttle if action.contains("Object") || action.contains("Upload") => Some((503, json!({}))),
            Self::Throttle => Some((400, exception("ThrottlingException", "slow down"))),
            Self::ServerError => Some((500, exception("InternalServerError", "sorry"))),
            // The first action is the reason.
            Self::Conflict if action == "TransactWriteItems" => Some((400, conflict(&[true, false]))),
            Self::Conflict => Some((400, conflict_of_one())),
            Self::ThrottledTransaction => {
                let reason = json!({"Code": "ThrottlingError", "Message": "It may succeed a moment later"});
                Some((400, cancelled(vec![reason, json!({"Code": "None"})])))
            }
            _ => None,
        }
    }
}

type Plan = dyn FnMut(&str, usize) -> Fault + Send;

/// Decides the fault of each request. By default there is none.
#[derive(Clone, Default)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    /// The longest additional latency of each request, in microseconds.
    latency: Arc<AtomicU64>,
    /// The last answer of each partition of an index.
    shown: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    in_progress: InProgress,
}

#[derive(Default)]
struct State {
    plan: Option<Box<Plan>>,
    requests: Vec<String>,
    /// The calls of the database, where they are noted.
    calls: Option<Vec<DatabaseCall>>,
    lost: Arc<Notify>,
    pause: Pause,
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Faults")
    }
}

impl Faults {
    /// Sets the plan. The plan gets the action, such as `PutItem`, and the number of requests since it was set.
    pub fn plan(&self, plan: impl FnMut(&str, usize) -> Fault + Send + 'static) {
        self.state(|state| *state = State { plan: Some(Box::new(plan)), ..State::default() });
    }

    /// Sets a plan without faults: the requests are recorded from now on.
    pub fn watch(&self) {
        self.plan(|_, _| Fault::None);
    }

    /// Sets a plan in which the first request waits for which `is_it` is true. `is_it` gets the arguments of a plan.
    pub fn pause_at(&self, mut is_it: impl FnMut(&str, usize) -> bool + Send + 'static) -> Pause {
        let mut found = false;
        self.plan(move |action, number| {
            let waits = !found && is_it(action, number);
            found |= waits;
            if waits { Fault::Pause } else { Fault::None }
        });
        self.state(|state| state.pause.clone())
    }

    /// Adds a latency of up to `most` to each request.
    pub fn set_latency(&self, most: Duration) {
        self.latency.store(u64::try_from(most.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// The process crashes after so many writes have taken effect. A crash at any other point, at a read or before the
    /// next write arrives, leaves the table in the same state.
    pub fn die_after_writes(&self, writes: usize) {
        let mut begun = 0;
        self.plan(move |action, _| {
            if READS.contains(&action) {
                return Fault::None;
            }
            begun += 1;
            match begun.cmp(&writes) {
                Ordering::Less => Fault::None,
                Ordering::Equal => Fault::LoseAnswer,
                Ordering::Greater if writes == 0 => Fault::LoseRequest,
                Ordering::Greater => Fault::Stall,
            }
        });
    }

    /// Ends all faults. Transactions in progress end with the next call that meets them.
    pub fn end(&self) {
        self.state(|state| *state = State::default());
        self.in_progress.end();
    }

    /// The actions requested since the plan was set, including retries.
    pub fn requests(&self) -> Vec<String> {
        self.state(|state| state.requests.clone())
    }

    /// Notes the calls of the database, with their keys, until a plan is set.
    pub fn note_calls(&self) {
        self.state(|state| state.calls = Some(Vec::new()));
    }

    /// The calls that were noted, retries included.
    pub fn calls(&self) -> Vec<DatabaseCall> {
        self.state(|state| state.calls.clone().unwrap_or_default())
    }

    /// The number of requests since the plan was set, including retries.
    pub fn number_of_requests(&self) -> usize {
        self.state(|state| state.requests.len())
    }

    /// The number of requests since the plan was set that may have changed something, including retries.
    pub fn writes(&self) -> usize {
        self.state(|state| state.requests.iter().filter(|action| !READS.contains(&action.as_str())).count())
    }

    /// Waits until a request or an answer has been lost since the plan was set: the process crashes at this point.
    async fn lost(&self) {
        self.state(|state| Arc::clone(&state.lost)).notified().await;
    }

    /// Whether the process crashes before `work` ends. After that it sends nothing more: the future is dropped at once.
    pub async fn kill(&self, work: impl Future) -> bool {
        tokio::select! {
            biased;
            () = self.lost() => true,
            _ = work => false,
        }
    }

    /// `inner`, whose requests follow the plan.
    pub fn connector(&self, inner: SharedHttpConnector) -> SharedHttpConnector {
        SharedHttpConnector::new(FaultyConnector { faults: self.clone(), inner })
    }

    fn note(&self, request: &HttpRequest) {
        self.state(|state| {
            if let Some(calls) = &mut state.calls {
                calls.extend(calls::begun(request));
            }
        });
    }

    fn decide(&self, action: &str) -> Fault {
        self.state(|state| {
            let number = state.requests.len();
            state.requests.push(action.to_owned());
            let planned = state.plan.as_mut().map(|plan| plan(action, number));
            planned.filter(|fault| fault.applies_to(action)).unwrap_or(Fault::None)
        })
    }

    fn state<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct FaultyConnector {
    faults: Faults,
    inner: SharedHttpConnector,
}

impl HttpConnector for FaultyConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let most = self.faults.latency.load(Relaxed);
        let answer = self.answer(request);
        if most == 0 {
            return answer;
        }
        HttpConnectorFuture::new(async move {
            tokio::time::sleep(Duration::from_micros(fastrand::u64(0..=most))).await;
            answer.await
        })
    }
}

impl FaultyConnector {
    /// Passes a request on, unless it meets a transaction in progress.
    fn after_transactions_in_progress(&self, action: &str, request: HttpRequest) -> HttpConnectorFuture {
        let inner = self.inner.clone();
        match self.faults.in_progress.check_call(action, &request) {
            Interference::Refusal(refusal) => answer(400, &refusal),
            Interference::Ended(transactions) => HttpConnectorFuture::new(async move {
                for transaction in transactions {
                    inner.call(transaction).await?;
                }
                inner.call(request).await
            }),
        }
    }

    fn answer(&self, request: HttpRequest) -> HttpConnectorFuture {
        let action = match request.headers().get("x-amz-target") {
            Some(target) => target.rsplit('.').next().unwrap_or_default().to_owned(),
            None => bucket_action(request.method(), request.uri()).to_owned(),
        };
        self.faults.note(&request);
        let inner = self.inner.clone();
        let lost = self.faults.state(|state| Arc::clone(&state.lost));
        let fault = self.faults.decide(&action);
        if let Some((status, body)) = fault.refusal(&action) {
            return answer(status, &body);
        }
        match fault {
            Fault::InProgress { meets, commits } => {
                self.faults.in_progress.hold(request, meets, commits);
                HttpConnectorFuture::ready(Err(broken()))
            }
            Fault::LoseRequest => HttpConnectorFuture::new(async move {
                lost.notify_one();
                std::future::pending().await
            }),
            Fault::Stall => HttpConnectorFuture::new(std::future::pending()),
            Fault::Pause => {
                let pause = self.faults.state(|state| state.pause.clone());
                HttpConnectorFuture::new(async move {
                    pause.reached.notify_one();
                    pause.ended.notified().await;
                    inner.call(request).await
                })
            }
            Fault::LoseAnswer => HttpConnectorFuture::new(async move {
                inner.call(request).await?;
                lost.notify_one();
                std::future::pending().await
            }),
            Fault::BreakRequest => HttpConnectorFuture::ready(Err(broken())),
            Fault::BreakAnswer => HttpConnectorFuture::new(async move {
                inner.call(request).await?;
                Err(broken())
            }),
            Fault::StaleIndex => self.stale_index_answer(request),
            Fault::Unprocessed => self.half_of_a_batch(request),
            Fault::None | Fault::Throttle | Fault::ServerError | Fault::Conflict | Fault::ThrottledTransaction => {
                self.after_transactions_in_progress(&action, request)
            }
        }
    }

    /// Passes a query of an index on, and returns the answer of the query before it.
    fn stale_index_answer(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (inner, shown) = (self.inner.clone(), Arc::clone(&self.faults.shown));
        let Some(partition) = index_partition(request.body().bytes()) else { return inner.call(request) };
        HttpConnectorFuture::new(async move {
            with_body(inner.call(request).await?, |body| {
                let before = shown.lock().unwrap_or_else(PoisonError::into_inner).insert(partition, body);
                let nothing = || json!({"Items": [], "Count": 0, "ScannedCount": 0}).to_string().into_bytes();
                before.unwrap_or_else(nothing)
            })
            .await
        })
    }

    /// Passes the first half of a batch on, and answers that the rest is unprocessed.
    fn half_of_a_batch(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let inner = self.inner.clone();
        let Some((name, rest)) = hold_back_half(&mut request) else { return inner.call(request) };
        HttpConnectorFuture::new(async move {
            with_body(inner.call(request).await?, |body| {
                let mut document: Value = serde_json::from_slice(&body).unwrap_or_else(|_| json!({}));
                document[name] = rest;
                document.to_string().into_bytes()
            })
            .await
        })
    }
}

/// Replaces the body of a response by the result of `change`.
async fn with_body(
    mut response: HttpResponse,
    change: impl FnOnce(Vec<u8>) -> Vec<u8>,
) -> Result<HttpResponse, ConnectorError> {
    let body = ByteStream::new(std::mem::replace(response.body_mut(), SdkBody::taken())).collect().await;
    let body = body.map_err(|error| ConnectorError::io(error.into()))?;
    *response.body_mut() = SdkBody::from(change(body.to_vec()));
    response.headers_mut().remove("content-length");
    response.headers_mut().remove("x-amz-crc32");
    Ok(response)
}

/// The partition of an index that a query reads; `None` if it reads the table.
fn index_partition(body: Option<&[u8]>) -> Option<String> {
    let document: Value = serde_json::from_slice(body?).ok()?;
    document["IndexName"].as_str()?;
    Some(document["ExpressionAttributeValues"][":due_pk"]["S"].as_str()?.to_owned())
}

fn broken() -> ConnectorError {
    ConnectorError::io("the connection broke".into())
}

/// Takes the second half of a batch out of the request; returns it in the form of the answer.
fn hold_back_half(request: &mut HttpRequest) -> Option<(&'static str, Value)> {
    let mut document: Value = serde_json::from_slice(request.body().bytes()?).ok()?;
    let (table, wanted) = document["RequestItems"].as_object_mut()?.iter_mut().next()?;
    let table = table.clone();
    let held = if wanted.is_array() {
        let writes = wanted.as_array_mut()?;
        let rest = writes.split_off(writes.len().div_ceil(2));
        (!rest.is_empty()).then(|| ("UnprocessedItems", json!({table: rest})))
    } else {
        let keys = wanted["Keys"].as_array_mut()?;
        let rest = keys.split_off(keys.len().div_ceil(2));
        let mut unprocessed = wanted.clone();
        unprocessed["Keys"] = rest.clone().into();
        (!rest.is_empty()).then(|| ("UnprocessedKeys", json!({table: unprocessed})))
    };
    let body = document.to_string();
    request.headers_mut().insert("content-length", body.len().to_string());
    *request.body_mut() = SdkBody::from(body);
    held
}

fn answer(status: u16, body: &Value) -> HttpConnectorFuture {
    let status = StatusCode::try_from(status).unwrap_or_else(|_| StatusCode::try_from(500).expect("500 is a status"));
    HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body.to_string()))))
}
