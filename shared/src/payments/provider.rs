//! Calls the payment provider to register, read and remove an agency's webhook.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::network::tls::client_config;
use crate::records::agency::{PaymentWebhookState, StoredPaymentWebhook};
use crate::request::error::{Error, Result};
use crate::values::cause::chain;
use crate::values::hash::{hex, sha256};
use crate::values::id::AgencyId;
use crate::values::secret::Secret;

/// The events that the provider must send.
pub const EVENTS: [&str; 9] = [
    "checkout.session.completed",
    "customer.subscription.created",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.resumed",
    "customer.subscription.trial_will_end",
    "customer.subscription.updated",
    "invoice.paid",
    "invoice.payment_failed",
];

/// The time limit of an attempt; even a slow provider answers within it.
const ATTEMPT: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(3);
/// The time limit of all attempts of a request together. It leaves time for the table's calls within the gateway's 29
/// seconds.
const ALTOGETHER: Duration = Duration::from_secs(24);
/// The wait before another attempt, after the provider refused one because of a concurrent request with the same
/// idempotency key, or too many requests.
const PAUSE: Duration = Duration::from_millis(500);

static CLIENT: LazyLock<Result<reqwest::Client, String>> = LazyLock::new(|| {
    reqwest::Client::builder()
        .tls_backend_preconfigured(client_config(None).map_err(|error| chain(&error))?)
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(|error| chain(&error))
});

/// The idempotency key for the provider, the same for every repeat of one set-up. It changes when the `replaced`
/// endpoint is gone, and after a failure, because the provider repeats a failure for the same key for a day.
pub fn idempotency_key(agency: AgencyId, replaced: Option<&str>, failed: u32, url: &str) -> String {
    let what = format!("{agency} {} {failed} {url}", replaced.unwrap_or_default());
    format!("setup-{}", hex(&sha256([what.as_bytes()])))
}

/// The provider, with an agency's key, for one request.
pub struct PaymentProvider<'a> {
    base: &'a str,
    key: &'a str,
    deadline: Instant,
}

/// Why a call to the provider failed.
#[derive(Debug)]
pub enum SetupFailure {
    /// It answered with a failure, and repeats it for the same idempotency key.
    Definitely(Error),
    /// Whether the call took effect is unknown.
    Perhaps(Error),
}

impl From<SetupFailure> for Error {
    fn from(refused: SetupFailure) -> Self {
        match refused {
            SetupFailure::Definitely(error) | SetupFailure::Perhaps(error) => error,
        }
    }
}

/// An endpoint, as the provider returns it.
#[derive(Deserialize)]
struct ProviderEndpoint {
    id: String,
    /// Present only in the answer that creates the endpoint.
    secret: Option<Secret>,
    url: Option<String>,
    #[serde(default)]
    enabled_events: Vec<String>,
    status: Option<String>,
}

impl<'a> PaymentProvider<'a> {
    /// The provider at the address `base`, with `key`.
    pub fn new(base: &'a str, key: &'a str) -> Self {
        Self { base, key, deadline: Instant::now() + ALTOGETHER }
    }

    /// Registers `url`. The same `idempotency_key` within a day gets the same endpoint, so a repeat adds no second one.
    ///
    /// # Errors
    /// [`SetupFailure`].
    pub async fn create_webhook(&self, url: &str, idempotency_key: &str) -> Result<StoredPaymentWebhook, SetupFailure> {
        let response =
            self.post("/v1/webhook_endpoints", url, Some(idempotency_key)).await.map_err(SetupFailure::Perhaps)?;
        let status = response.status();
        let endpoint = endpoint(response).await.map_err(|error| match status.as_u16() {
            // Another request is under way, or there were too many: the provider remembers nothing of this one.
            200..300 | 409 | 429 => SetupFailure::Perhaps(error),
            _ => SetupFailure::Definitely(error),
        })?;
        let without = || SetupFailure::Perhaps(Error::PaymentProvider("a new endpoint without a secret".into()));
        let secret = endpoint.secret.ok_or_else(without)?;
        Ok(StoredPaymentWebhook { payment_webhook_id: endpoint.id, secret: secret.into(), has_pointer: true })
    }

    /// Updates the endpoint `id`. Returns false if the provider no longer has it.
    ///
    /// # Errors
    /// [`Error::PaymentProvider`].
    pub async fn update_webhook(&self, id: &str, url: &str) -> Result<bool> {
        let response = self.post(&format!("/v1/webhook_endpoints/{id}"), url, None).await?;
        if response.status() == reqwest::StatusCode::NOT_FOUND {
            return Ok(false);
        }
        endpoint(response).await.map(|_| true)
    }

    /// Reads the endpoint `id`; the result is an unconfigured one if the provider no longer has it.
    ///
    /// # Errors
    /// [`Error::PaymentProvider`].
    pub async fn read_webhook(&self, id: &str) -> Result<PaymentWebhookState> {
        let request = client()?.get(format!("{}/v1/webhook_endpoints/{id}", self.base)).bearer_auth(self.key);
        let response = self.send(request, false).await?;
        if response.status() == reqwest::StatusCode::NOT_FOUND {
            return Ok(PaymentWebhookState::default());
        }
        let ProviderEndpoint { id, url, enabled_events, status, .. } = endpoint(response).await?;
        let none = PaymentWebhookState::default();
        Ok(PaymentWebhookState { configured: true, payment_webhook_id: Some(id), url, enabled_events, status, ..none })
    }

    /// Removes the endpoint `id`. An endpoint that the provider no longer has counts as removed.
    ///
    /// # Errors
    /// [`Error::PaymentProvider`].
    pub async fn remove_webhook(&self, id: &str) -> Result<()> {
        let request = client()?.delete(format!("{}/v1/webhook_endpoints/{id}", self.base)).bearer_auth(self.key);
        match self.send(request, false).await?.status() {
            reqwest::StatusCode::NOT_FOUND => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(Error::PaymentProvider(format!("answered {status}"))),
        }
    }

    async fn post(&self, path: &str, url: &str, idempotency_key: Option<&str>) -> Result<reqwest::Response> {
        let form: Vec<_> =
            std::iter::once(("url", url)).chain(EVENTS.map(|event| ("enabled_events[]", event))).collect();
        let mut request = client()?.post(format!("{}{path}", self.base)).bearer_auth(self.key).form(&form);
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        self.send(request, idempotency_key.is_some()).await
    }

    /// Sends a call, and retries it if there was no answer or a concurrent one is under way. All calls are idempotent:
    /// a create has its idempotency key, an update sets fixed values, others read or remove. The provider remembers a
    /// failure of a create only.
    async fn send(&self, request: reqwest::RequestBuilder, keyed: bool) -> Result<reqwest::Response> {
        let client = client()?;
        let failed = |error: reqwest::Error| Error::PaymentProvider(chain(&error.without_url()));
        let request = request.build().map_err(failed)?;
        let mut failures = 0;
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let mut attempt =
                request.try_clone().ok_or_else(|| Error::Internal("a request that cannot be repeated".into()))?;
            *attempt.timeout_mut() = Some(left.min(ATTEMPT));
            let result = client.execute(attempt).await;
            let again = match &result {
                Ok(response) => match response.status().as_u16() {
                    409 | 429 => true,
                    500.. if !keyed => std::mem::replace(&mut failures, 1) == 0,
                    _ => false,
                },
                Err(_) => std::mem::replace(&mut failures, 1) == 0,
            };
            if !again || self.deadline.saturating_duration_since(Instant::now()) <= PAUSE {
                return result.map_err(failed);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn client() -> Result<&'static reqwest::Client> {
    CLIENT.as_ref().map_err(|error| Error::Internal(error.clone()))
}

async fn endpoint(response: reqwest::Response) -> Result<ProviderEndpoint> {
    let status = response.status();
    if !status.is_success() {
        return Err(Error::PaymentProvider(format!("answered {status}")));
    }
    response.json().await.map_err(|error| Error::PaymentProvider(chain(&error.without_url())))
}
