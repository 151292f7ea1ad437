//! Faults between the SDK and the database: what DynamoDB does on a bad day, and the embedded one never.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::config::{HttpClient, RuntimeComponents, SharedHttpClient};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

use crate::database::http_client;

/// What happens to one request on its way to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The database throttles: nothing is done.
    Throttle,
    /// The database fails: nothing is done.
    ServerError,
    /// The request never arrives, and no answer comes.
    LoseRequest,
    /// The request does its work, and no answer comes.
    LoseAnswer,
    /// A transaction meets another one: nothing is done.
    Conflict,
    /// A batch is left half unprocessed.
    Unprocessed,
}

type Plan = dyn FnMut(&str, usize) -> Fault + Send;

/// Decides the fate of each request. By default nothing goes wrong.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    plan: Option<Box<Plan>>,
    requests: Vec<String>,
    permissions: BTreeSet<String>,
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Faults")
    }
}

impl Faults {
    /// From now on `plan` decides, by the action (`PutItem`, say) and the number of requests that came before since it was set.
    pub fn plan(&self, plan: impl FnMut(&str, usize) -> Fault + Send + 'static) {
        self.state(|state| *state = State { plan: Some(Box::new(plan)), ..State::default() });
    }

    /// From now on nothing goes wrong.
    pub fn end(&self) {
        self.state(|state| *state = State::default());
    }

    /// The actions requested since the plan was set, retries included.
    pub fn requests(&self) -> Vec<String> {
        self.state(|state| state.requests.clone())
    }

    /// What a role must allow for the requests since the plan was set: `dynamodb:PutItem` and so on.
    pub fn permissions(&self) -> BTreeSet<String> {
        self.state(|state| state.permissions.clone())
    }

    /// An HTTP client that goes by the plan.
    pub fn http_client(&self) -> SharedHttpClient {
        SharedHttpClient::new(FaultyClient { faults: self.clone(), inner: http_client() })
    }

    fn decide(&self, action: &str, body: Option<&[u8]>) -> Fault {
        self.state(|state| {
            state.permissions.extend(permissions(action, body));
            let number = state.requests.len();
            state.requests.push(action.to_owned());
            state.plan.as_mut().map_or(Fault::None, |plan| plan(action, number))
        })
    }

    fn state<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct FaultyClient {
    faults: Faults,
    inner: SharedHttpClient,
}

impl HttpClient for FaultyClient {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(FaultyConnector { faults: self.faults.clone(), inner })
    }
}

#[derive(Debug)]
struct FaultyConnector {
    faults: Faults,
    inner: SharedHttpConnector,
}

impl HttpConnector for FaultyConnector {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let action = target.rsplit('.').next().unwrap_or_default().to_owned();
        let inner = self.inner.clone();
        match self.faults.decide(&action, request.body().bytes()) {
            Fault::None => inner.call(request),
            Fault::Throttle => answer(
                400,
                &json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"}),
            ),
            Fault::ServerError => answer(
                500,
                &json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "sorry"}),
            ),
            Fault::Conflict if action == "TransactWriteItems" => {
                let reasons =
                    json!([{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}]);
                let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
                answer(
                    400,
                    &json!({"__type": kind, "Message": "Transaction cancelled", "CancellationReasons": reasons}),
                )
            }
            Fault::Conflict => {
                let kind = "com.amazonaws.dynamodb.v20120810#TransactionConflictException";
                answer(400, &json!({"__type": kind, "message": "Transaction is ongoing for the item"}))
            }
            Fault::LoseRequest => HttpConnectorFuture::new(std::future::pending()),
            Fault::LoseAnswer => HttpConnectorFuture::new(async move {
                inner.call(request).await?;
                std::future::pending().await
            }),
            Fault::Unprocessed => {
                let held_back = hold_back_half(&mut request);
                HttpConnectorFuture::new(async move {
                    let mut response = inner.call(request).await?;
                    if let Some((name, value)) = held_back {
                        let body = std::mem::replace(response.body_mut(), SdkBody::empty());
                        let mut document: Value = body
                            .bytes()
                            .and_then(|bytes| serde_json::from_slice(bytes).ok())
                            .unwrap_or_else(|| json!({}));
                        document[name] = value;
                        *response.body_mut() = SdkBody::from(document.to_string());
                        response.headers_mut().remove("content-length");
                        response.headers_mut().remove("x-amz-crc32");
                    }
                    Ok(response)
                })
            }
        }
    }
}

/// A transaction needs the permission of each of its parts, and none of its own.
fn permissions(action: &str, body: Option<&[u8]>) -> Vec<String> {
    if action != "TransactWriteItems" {
        return vec![format!("dynamodb:{action}")];
    }
    let document: Value = body.and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
    let parts = document["TransactItems"].as_array().into_iter().flatten();
    let kinds = parts.filter_map(|part| part.as_object()?.keys().next());
    kinds
        .map(|kind| {
            if kind == "ConditionCheck" { "dynamodb:ConditionCheckItem".into() } else { format!("dynamodb:{kind}Item") }
        })
        .collect()
}

/// Takes the second half of a batch out of the request; returns it as the answer will name it.
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
