//! What the clients of S3 and KMS share: endpoint, credentials, signature, attempts. Their SDKs would make every zip
//! larger.

pub mod signature;

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::config::{Credentials, ProvideCredentials as _, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use aws_types::service_config::ServiceConfigKey;

use crate::values::cause::chain;

/// How many times a request is sent at most, and the longest wait before it is sent again.
pub(crate) const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// A client of one AWS service. Clones share the connections.
#[derive(Debug, Clone)]
pub(crate) struct AwsClient {
    /// The region; empty if none is configured.
    pub(crate) region: Arc<str>,
    credentials: Option<SharedCredentialsProvider>,
    connector: SharedHttpConnector,
    /// The time limit of an attempt.
    attempt: Duration,
}

impl AwsClient {
    /// A client with region and credentials of `config`.
    pub(crate) fn new(config: &SdkConfig, connector: SharedHttpConnector, attempt: Duration) -> Self {
        let region = config.region().map(ToString::to_string).unwrap_or_default();
        Self { region: region.into(), credentials: config.credentials_provider(), connector, attempt }
    }

    /// The credentials.
    ///
    /// # Errors
    /// The reason why there are none.
    pub(crate) async fn credentials(&self) -> Result<Credentials, String> {
        let provider = self.credentials.as_ref().ok_or("no credentials")?;
        provider.provide_credentials().await.map_err(|error| chain(&error))
    }

    /// Sends `request` once.
    ///
    /// # Errors
    /// The reason why there is no answer. A later attempt may have one.
    pub(crate) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, String> {
        match tokio::time::timeout(self.attempt, self.connector.call(request)).await {
            Ok(answer) => answer.map_err(|error| chain(&error)),
            Err(_) => Err("did not answer in time".to_owned()),
        }
    }

    /// The body of an answer.
    ///
    /// # Errors
    /// The reason why it did not come to its end.
    pub(crate) async fn body(&self, response: &mut HttpResponse) -> Result<Vec<u8>, String> {
        let body = std::mem::replace(response.body_mut(), SdkBody::taken());
        let body = tokio::time::timeout(self.attempt, ByteStream::new(body).collect()).await;
        let body = body.map_err(|_| "did not come to its end in time".to_owned())?;
        Ok(body.map_err(|error| chain(&error))?.to_vec())
    }
}

/// Waits before the attempt of this number. The first one begins at once.
pub(crate) async fn pause_before(attempt: u32) {
    if attempt > 0 {
        tokio::time::sleep((PAUSE * attempt).mul_f64(fastrand::f64())).await;
    }
}

/// The configured endpoint of `service`, such as `S3`, or of all services. None if there is neither.
pub(crate) fn endpoint(config: &SdkConfig, service: &'static str) -> Option<String> {
    let key = ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL").profile("endpoint_url").build();
    let own = config.service_config().zip(key.ok()).and_then(|(services, key)| services.load_config(key));
    own.or_else(|| config.endpoint_url().map(str::to_owned))
}

/// The end of the host names of `region`.
pub(crate) fn suffix(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}
