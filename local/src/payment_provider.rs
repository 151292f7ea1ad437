//! A stand-in for the payment provider: the calls that register, read and remove a webhook, with its rules for keys and repeats. As the provider does, it
//! answers the first result of an idempotency key to all that come with it, and 409 while that one is being made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The state of the stand-in, and how it is told to fail.
#[derive(Debug, Clone, Default)]
pub struct ProviderStandIn(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    endpoints: HashMap<String, RegisteredEndpoint>,
    /// The first answer to each idempotency key; none while it is being made.
    by_idempotency_key: HashMap<String, Option<(StatusCode, Value)>>,
    requests: usize,
    failures: Vec<StatusCode>,
    delay: Duration,
    made: usize,
}

/// A registered endpoint.
#[derive(Debug, Clone, Default)]
pub struct RegisteredEndpoint {
    /// Where events would be sent.
    pub url: String,
    /// Which events would be sent.
    pub events: Vec<String>,
}

impl ProviderStandIn {
    /// Serves HTTP on `listener`.
    pub fn serve(&self, listener: TcpListener) -> tokio::task::JoinHandle<()> {
        let router = Router::new()
            .route("/v1/webhook_endpoints", post(create))
            .route("/v1/webhook_endpoints/{id}", post(update).get(read).delete(remove))
            .with_state(self.clone());
        tokio::spawn(async move {
            // The listener is open already. What ends the server early also ends the process.
            let _ = axum::serve(listener, router).await;
        })
    }

    /// Every endpoint, by its id.
    pub fn endpoints(&self) -> HashMap<String, RegisteredEndpoint> {
        self.known(|known| known.endpoints.clone())
    }

    /// How many requests have come.
    pub fn requests(&self) -> usize {
        self.known(|known| known.requests)
    }

    /// Has every request that makes an endpoint take so long.
    pub fn delay(&self, delay: Duration) {
        self.known(|known| known.delay = delay);
    }

    /// Forgets the first answers to idempotency keys, as the provider does after a day.
    pub fn forget_keys(&self) {
        self.known(|known| known.by_idempotency_key.clear());
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

    /// The answer to a request about the endpoint `id`, unless it is refused: what `with` does to it and says of it.
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

    fn known<T>(&self, with: impl FnOnce(&mut Known) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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
            let (id, endpoint) = (format!("we_local_{:04}", known.made), endpoint(&body));
            let mut answer = describe(&id, &endpoint);
            answer["secret"] = format!("whsec_local_{id}").into();
            known.endpoints.insert(id, endpoint);
            (StatusCode::OK, Json(answer))
        };
        // The first answer is kept for a day, whatever it is.
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
        let endpoint = endpoint(&body);
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
