//! A stand-in for the payment provider: the calls that register, read and remove a webhook, with the provider's rules
//! for keys and repeats. Like the provider, it repeats the first result of an idempotency key, and answers 409 while
//! the first request is running. It sends the events of [`event`], signed, on request.

pub mod event;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use ring::hmac::{HMAC_SHA256, Key, sign};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::network::tls::client_config;
use shared::values::cause::chain;
use shared::values::time::Clock;

use crate::Trouble;
use crate::inbox::InboxRefusal;
use crate::payment_provider::event::NewPaymentEvent;

/// The path of requests to send an event.
pub const SEND: &str = "/send";

/// The state of the stand-in, and its planned failures.
#[derive(Debug, Clone)]
pub struct ProviderStandIn {
    known: Arc<Mutex<Known>>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct Known {
    endpoints: HashMap<String, RegisteredEndpoint>,
    /// The first answer to each idempotency key; `None` while the first request is running.
    by_idempotency_key: HashMap<String, Option<(StatusCode, Value)>>,
    requests: usize,
    failures: Vec<StatusCode>,
    delay: Duration,
    made: usize,
    sent: usize,
}

/// A registered endpoint.
#[derive(Debug, Clone, Default)]
pub struct RegisteredEndpoint {
    /// The address for its events.
    pub url: String,
    /// The types of its events.
    pub events: Vec<String>,
    /// Its signing secret.
    pub secret: String,
}

/// An event that was sent, and the answer of its receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentPaymentEvent {
    /// The address to which it was sent.
    pub url: String,
    /// The event.
    pub event: Value,
    /// The status of the answer.
    pub status: u16,
    /// The answer.
    pub answer: Value,
}

impl ProviderStandIn {
    /// A stand-in whose events have the time of `clock`.
    pub fn new(clock: Clock) -> Self {
        Self { known: Arc::default(), clock }
    }

    /// Its routes: those of the provider, and [`SEND`].
    pub fn router(&self) -> Router {
        Router::new()
            .route("/v1/webhook_endpoints", post(create))
            .route("/v1/webhook_endpoints/{id}", post(update).get(read).delete(remove))
            .route(SEND, post(send))
            .with_state(self.clone())
    }

    /// Every endpoint, by its id.
    pub fn endpoints(&self) -> HashMap<String, RegisteredEndpoint> {
        self.known(|known| known.endpoints.clone())
    }

    /// The number of requests so far.
    pub fn requests(&self) -> usize {
        self.known(|known| known.requests)
    }

    /// Delays every request that creates an endpoint.
    pub fn delay(&self, delay: Duration) {
        self.known(|known| known.delay = delay);
    }

    /// Makes the next requests fail with these statuses, the last one first, without an effect.
    pub fn fail(&self, statuses: &[u16]) {
        let statuses = statuses.iter().filter_map(|status| StatusCode::from_u16(*status).ok()).collect();
        self.known(|known| known.failures = statuses);
    }

    /// Forgets an endpoint, as if it had been removed at the provider.
    pub fn forget(&self, id: &str) {
        self.known(|known| known.endpoints.remove(id));
    }

    /// The answer to a request about the endpoint `id`, unless it is refused: `with` changes the endpoint and returns
    /// the answer.
    fn answer(
        &self,
        headers: &HeaderMap,
        id: &str,
        with: impl FnOnce(&mut HashMap<String, RegisteredEndpoint>) -> Value,
    ) -> (StatusCode, Json<Value>) {
        self.known(|known| {
            known.requests += 1;
            if !authorized(headers) {
                return refuse(StatusCode::UNAUTHORIZED, "Invalid API key provided");
            }
            if !known.endpoints.contains_key(id) {
                return refuse(StatusCode::NOT_FOUND, "No such webhook endpoint");
            }
            let failure = known.failures.pop().map(|status| refuse(status, "told to fail"));
            failure.unwrap_or_else(|| (StatusCode::OK, Json(with(&mut known.endpoints))))
        })
    }

    /// Sends a signed event to the address that is registered for it, and waits for the answer.
    ///
    /// # Errors
    /// [`Trouble`] where no webhook or several are registered for it, or where there is no answer.
    pub async fn send(&self, event: &NewPaymentEvent) -> Result<SentPaymentEvent, Trouble> {
        let RegisteredEndpoint { url, secret, .. } = self.endpoint_for(event)?;
        let number = self.known(|known| {
            known.sent += 1;
            known.sent
        });
        let now = self.clock.now().unix_seconds();
        let event = event.body(number, now);
        let body = event.to_string();
        let trouble = |error: reqwest::Error| Trouble(chain(&error));
        let tls = client_config(None).map_err(|error| Trouble(chain(&error)))?;
        let client = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().map_err(trouble)?;
        let request = client.post(&url).header("content-type", "application/json");
        let request = request.header("stripe-signature", signature(&secret, now, body.as_bytes())).body(body);
        let response = request.send().await.map_err(trouble)?;
        let status = response.status().as_u16();
        let text = response.text().await.map_err(trouble)?;
        let answer = serde_json::from_str(&text).unwrap_or_else(|_| text.into());
        Ok(SentPaymentEvent { url, event, status, answer })
    }

    /// The one endpoint that is registered for `event`.
    fn endpoint_for(&self, event: &NewPaymentEvent) -> Result<RegisteredEndpoint, Trouble> {
        let wants = |endpoint: &RegisteredEndpoint| {
            let agency = event.agency_id.as_ref();
            endpoint.events.contains(&event.kind)
                && agency.is_none_or(|id| endpoint.url.rsplit('/').next() == Some(id.as_str()))
        };
        let mut endpoints: Vec<_> = self.endpoints().into_values().filter(wants).collect();
        match (endpoints.pop(), endpoints.len()) {
            (Some(endpoint), 0) => Ok(endpoint),
            (None, _) => {
                let kind = &event.kind;
                Err(Trouble(format!("no webhook is registered for {kind}: `setup-payment-webhook` registers one")))
            }
            (Some(_), more) => {
                Err(Trouble(format!("{} webhooks are registered: say which agency's is meant", more + 1)))
            }
        }
    }

    fn known<T>(&self, with: impl FnOnce(&mut Known) -> T) -> T {
        with(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn create(
    State(provider): State<ProviderStandIn>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, Json<Value>) {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    let begun = provider.known(|known| {
        known.requests += 1;
        if !authorized(&headers) {
            return Err(refuse(StatusCode::UNAUTHORIZED, "Invalid API key provided"));
        }
        match known.by_idempotency_key.get(&key) {
            Some(Some((status, answer))) => Err((*status, Json(answer.clone()))),
            Some(None) => Err(refuse(StatusCode::CONFLICT, "A request with the same Idempotency-Key is under way")),
            None => {
                known.by_idempotency_key.insert(key.clone(), None);
                Ok(known.delay)
            }
        }
    });
    let delay = match begun {
        Ok(delay) => delay,
        Err(answer) => return answer,
    };
    tokio::time::sleep(delay).await;
    provider.known(|known| {
        let (status, Json(answer)) = if let Some(status) = known.failures.pop() {
            refuse(status, "told to fail")
        } else {
            known.made += 1;
            let id = format!("we_local_{:04}", known.made);
            let endpoint = RegisteredEndpoint { secret: format!("whsec_local_{id}"), ..endpoint(&body) };
            let mut answer = describe(&id, &endpoint);
            answer["secret"] = endpoint.secret.clone().into();
            known.endpoints.insert(id, endpoint);
            (StatusCode::OK, Json(answer))
        };
        // The first answer is kept for a day, even if it is a failure.
        known.by_idempotency_key.insert(key, Some((status, answer.clone())));
        (status, Json(answer))
    })
}

async fn update(
    State(provider): State<ProviderStandIn>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, Json<Value>) {
    provider.answer(&headers, &id, |endpoints| {
        let secret = endpoints[&id].secret.clone();
        let endpoint = RegisteredEndpoint { secret, ..endpoint(&body) };
        let answer = describe(&id, &endpoint);
        endpoints.insert(id.clone(), endpoint);
        answer
    })
}

async fn read(
    State(provider): State<ProviderStandIn>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> (StatusCode, Json<Value>) {
    provider.answer(&headers, &id, |endpoints| describe(&id, &endpoints[&id]))
}

async fn remove(
    State(provider): State<ProviderStandIn>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> (StatusCode, Json<Value>) {
    provider.answer(&headers, &id, |endpoints| {
        endpoints.remove(&id);
        json!({"id": id, "object": "webhook_endpoint", "deleted": true})
    })
}

/// Sends the requested event.
async fn send(State(provider): State<ProviderStandIn>, body: Bytes) -> Result<Json<SentPaymentEvent>, InboxRefusal> {
    let event: NewPaymentEvent = serde_json::from_slice(&body).map_err(|error| InboxRefusal(400, error.to_string()))?;
    provider.send(&event).await.map(Json).map_err(|Trouble(message)| InboxRefusal(409, message))
}

/// The header with which the provider signs `body`, at `seconds` since 1970.
pub fn signature(secret: &str, seconds: i64, body: &[u8]) -> String {
    let signed = [format!("{seconds}.").as_bytes(), body].concat();
    let signature = sign(&Key::new(HMAC_SHA256, secret.as_bytes()), &signed);
    format!("t={seconds},v1={}", shared::values::hash::hex(signature.as_ref()))
}

fn authorized(headers: &HeaderMap) -> bool {
    headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("Bearer sk_"))
}

fn endpoint(form: &str) -> RegisteredEndpoint {
    let mut endpoint = RegisteredEndpoint::default();
    for (name, value) in form_urlencoded::parse(form.as_bytes()) {
        match name.as_ref() {
            "url" => endpoint.url = value.into_owned(),
            "enabled_events[]" => endpoint.events.push(value.into_owned()),
            _ => {}
        }
    }
    endpoint
}

fn describe(id: &str, endpoint: &RegisteredEndpoint) -> Value {
    json!({"id": id, "object": "webhook_endpoint", "enabled_events": endpoint.events, "url": endpoint.url, "status": "enabled"})
}

fn refuse(status: StatusCode, message: &str) -> (StatusCode, Json<Value>) {
    (status, Json(json!({"error": {"message": message}})))
}
