//! The payment provider: the two calls that register an agency's webhook there.

use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use crate::records::agency::StoredPaymentWebhook;
use crate::request::error::{Error, Result, chain};
use crate::values::id::AgencyId;
use crate::values::secret::Secret;

/// The events that the provider is asked to send.
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

/// The time limit of an attempt: long enough for a slow provider, and two of them fit into the gateway's 29 seconds.
const ATTEMPT: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(3);

// The public roots are compiled in; only a function that calls the provider links them.
static CLIENT: LazyLock<Result<reqwest::Client, String>> = LazyLock::new(|| {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls().map_err(|error| chain(&error))?)
        .timeout(ATTEMPT)
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(|error| chain(&error))
});

/// The idempotency key for the provider, the same for every repeat of one set-up. It changes only when the `replaced` endpoint is gone.
pub fn idempotency_key(agency: AgencyId, replaced: Option<&str>, url: &str) -> String {
    let what = format!("{agency} {} {url}", replaced.unwrap_or_default());
    format!("setup-{}", crate::hex(ring::digest::digest(&ring::digest::SHA256, what.as_bytes()).as_ref()))
}

/// The provider, with an agency's key.
pub struct PaymentProvider<'a> {
    base: &'a str,
    key: &'a str,
}

/// TLS with the public roots.
///
/// # Errors
/// Where the cryptography supports no version of TLS. The linked one does.
pub fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let versions = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}

/// An endpoint, as the provider answers it.
#[derive(Deserialize)]
struct ProviderEndpoint {
    id: String,
    /// Answered only when the endpoint is made.
    secret: Option<Secret>,
}

impl<'a> PaymentProvider<'a> {
    /// The provider at the address `base`, with `key`.
    pub const fn new(base: &'a str, key: &'a str) -> Self {
        Self { base, key }
    }

    /// Registers `url`. The same `idempotency_key` within a day gets the same endpoint, so a repeat adds no second one.
    ///
    /// # Errors
    /// [`Error::PaymentProvider`].
    pub async fn create_webhook(&self, url: &str, idempotency_key: &str) -> Result<StoredPaymentWebhook> {
        let response = self.post("/v1/webhook_endpoints", url, Some(idempotency_key)).await?;
        let endpoint = endpoint(response).await?;
        let secret = endpoint.secret.ok_or_else(|| Error::PaymentProvider("a new endpoint without a secret".into()))?;
        Ok(StoredPaymentWebhook { payment_webhook_id: endpoint.id, secret })
    }

    /// Updates the endpoint `id`. Returns false where the provider no longer knows it.
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

    /// Sends a call, with one retry. Both calls are idempotent: one has its idempotency key, the other sets fixed values.
    async fn post(&self, path: &str, url: &str, idempotency_key: Option<&str>) -> Result<reqwest::Response> {
        let client = CLIENT.as_ref().map_err(|error| Error::Internal(error.clone()))?;
        let form: Vec<_> =
            std::iter::once(("url", url)).chain(EVENTS.map(|event| ("enabled_events[]", event))).collect();
        let mut request = client.post(format!("{}{path}", self.base)).bearer_auth(self.key).form(&form);
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let again = request.try_clone();
        match (request.send().await, again) {
            (Ok(response), Some(again)) if response.status().is_server_error() => again.send().await,
            (Err(_), Some(again)) => again.send().await,
            (result, _) => result,
        }
        .map_err(|error| Error::PaymentProvider(chain(&error.without_url())))
    }
}

async fn endpoint(response: reqwest::Response) -> Result<ProviderEndpoint> {
    let status = response.status();
    if !status.is_success() {
        return Err(Error::PaymentProvider(format!("answered {status}")));
    }
    response.json().await.map_err(|error| Error::PaymentProvider(chain(&error.without_url())))
}
