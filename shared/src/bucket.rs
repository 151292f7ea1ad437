//! The bucket: objects in S3, each of one organisation, and addresses that are signed for one request each.
//!
//! This module has no client of S3. Every request is one address with its signature in the query, whether this service
//! sends the request or gives the address to a caller: `signature` makes the address without a call.
//! `docs/adr/0019-files-are-in-a-bucket.md` gives the reasons.

mod attachment;
pub mod kept;
pub mod multipart;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use percent_encoding::utf8_percent_encode;
use uuid::Uuid;

pub use crate::aws::signature::SignedUrl;
use crate::aws::signature::{ENCODED, Scope};
use crate::aws::{ATTEMPTS, AwsClient, endpoint, pause_before, suffix};
pub use crate::bucket::attachment::attachment;
use crate::values::tenant::Tenant;
use crate::values::time::{Clock, Timestamp};

/// Seconds for which the address of a file is valid.
pub const VALID: i64 = 15 * 60;

/// The header that makes S3 refuse a request if the key has an object already.
const ONCE: (&str, &str) = ("if-none-match", "*");

/// The header that asks for the beginning of an object only.
const BEGINNING: (&str, &str) = ("range", "bytes=0-4095");

/// Why the bucket did not execute a request.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// S3 did not answer in time, or failed, after all retries.
    #[error("{0}")]
    Unavailable(String),
    /// A defect of the service or of the deployment: S3 refused the request, or there are no credentials.
    #[error("{0}")]
    Broken(String),
}

/// The key of an object: its organisation, then the id of the record to which it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectKey(String);

impl ObjectKey {
    /// The key of the object of the record `id`.
    pub fn of(tenant: &Tenant, id: impl Into<Uuid>) -> Self {
        Self(format!("{}/{}", tenant.org(), id.into().hyphenated()))
    }

    /// The key of a file that the service makes of records, under the id of its export. A rule of the bucket removes
    /// what has such a key.
    pub fn of_export(tenant: &Tenant, id: impl Into<Uuid>) -> Self {
        Self(format!("exports/{}", Self::of(tenant, id).0))
    }

    /// The key of what belongs to this object under a number.
    #[must_use]
    pub fn beside(&self, number: u32) -> Self {
        Self(format!("{}.{number}", self.0))
    }
}

crate::object! {
    /// How to upload the bytes of a file: one request, exactly like this.
    pub struct Upload {
        /// HTTP method.
        pub method: String,
        /// Address. Whoever has it may upload.
        pub url: SignedUrl,
        /// Headers, all of which the signature covers.
        pub headers: BTreeMap<String, String>,
        /// Until when the request may begin.
        pub expires_at: Timestamp,
    }
}

/// The beginning of an object.
#[derive(Debug)]
pub struct Beginning {
    /// The type with which it was uploaded.
    pub content_type: String,
    /// Its first bytes, at most 4 KiB.
    pub bytes: Vec<u8>,
}

/// The bucket. Clones share the connections.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// Its address, without a slash at the end.
    address: Arc<str>,
    client: AwsClient,
}

impl Bucket {
    /// The bucket `name`, with region, credentials and endpoint of `config`.
    pub fn new(config: &SdkConfig, name: &str, connector: SharedHttpConnector, attempt: Duration) -> Self {
        let client = AwsClient::new(config, connector, attempt);
        let address = if let Some(endpoint) = endpoint(config, "S3") {
            // As in other AWS tools: a custom endpoint may lack a host name for each bucket.
            format!("{}/{name}", endpoint.trim_end_matches('/'))
        } else {
            format!("https://{name}.s3.{}.{}", client.region, suffix(&client.region))
        };
        Self { address: address.into(), client }
    }

    /// The request that uploads an object of exactly `size` bytes and this type, once, within a quarter of an hour
    /// after `now`.
    ///
    /// # Errors
    /// [`BucketError::Broken`] where there are no credentials.
    pub async fn upload(
        &self,
        key: &ObjectKey,
        size: i64,
        content_type: &str,
        now: Timestamp,
    ) -> Result<Upload, BucketError> {
        let size = size.to_string();
        let headers = [("content-length", size.as_str()), ("content-type", content_type), ONCE];
        let url = self.signed("PUT", &key.0, &headers, (now, VALID)).await?;
        // The signature has whole seconds only.
        let signed_at = Timestamp::from_unix_millis(now.unix_seconds() * 1000);
        Ok(Upload {
            method: "PUT".to_owned(),
            url,
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            expires_at: signed_at.plus_seconds(VALID),
        })
    }

    /// The address from which an object can be downloaded, for some `seconds` after `now`. S3 answers it with `headers`:
    /// each replaces the one of the object.
    ///
    /// # Errors
    /// [`BucketError::Broken`] where there are no credentials.
    pub async fn download(
        &self,
        key: &ObjectKey,
        headers: &[(&str, &str)],
        (now, seconds): (Timestamp, i64),
    ) -> Result<SignedUrl, BucketError> {
        let header = |(name, value): &(&str, &str)| format!("response-{name}={}", utf8_percent_encode(value, ENCODED));
        let headers: Vec<_> = headers.iter().map(header).collect();
        self.signed("GET", &format!("{}?{}", key.0, headers.join("&")), &[], (now, seconds)).await
    }

    /// The beginning of an object; `None` if the key has none, or an empty one.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn beginning(&self, key: &ObjectKey) -> Result<Option<Beginning>, BucketError> {
        let mut response = self.send("GET", &key.0, &[BEGINNING], Vec::new()).await?;
        match response.status().as_u16() {
            206 => {}
            // 416: an empty object has no first byte.
            404 | 416 => return Ok(None),
            other => return Err(unexpected("GET", other)),
        }
        let content_type = response.headers().get("content-type").unwrap_or_default().to_owned();
        let bytes = self.body(&mut response).await?;
        Ok(Some(Beginning { content_type, bytes }))
    }

    /// The bytes of an object; `None` if the key has none.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn read(&self, key: &ObjectKey) -> Result<Option<Vec<u8>>, BucketError> {
        let mut response = self.send("GET", &key.0, &[], Vec::new()).await?;
        match response.status().as_u16() {
            200 => self.body(&mut response).await.map(Some),
            404 => Ok(None),
            other => Err(unexpected("GET", other)),
        }
    }

    /// Puts an object, unless there is one. An existing object stays: an earlier attempt of the same request has put
    /// it.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn put(&self, key: &ObjectKey, content_type: &str, bytes: Vec<u8>) -> Result<(), BucketError> {
        match self.send("PUT", &key.0, &[("content-type", content_type), ONCE], bytes).await?.status().as_u16() {
            200 | 412 => Ok(()),
            other => Err(unexpected("PUT", other)),
        }
    }

    /// Removes an object, if there is one.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn remove(&self, key: &ObjectKey) -> Result<(), BucketError> {
        self.remove_at(&key.0).await
    }

    async fn remove_at(&self, place: &str) -> Result<(), BucketError> {
        match self.send("DELETE", place, &[], Vec::new()).await?.status().as_u16() {
            200 | 204 | 404 => Ok(()),
            other => Err(unexpected("DELETE", other)),
        }
    }

    /// Puts an empty object in the place of an existing or a future one: an address for an upload works only once, so
    /// after this it no longer works. A rule of the bucket removes empty objects after a day.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn close(&self, key: &ObjectKey) -> Result<(), BucketError> {
        match self.send("PUT", &key.0, &[], Vec::new()).await?.status().as_u16() {
            200 => Ok(()),
            other => Err(unexpected("PUT", other)),
        }
    }

    /// The answer to a request about `place`, which is a key, a query, or both. It is sent again if S3 fails, which is
    /// safe for each request of this file.
    async fn send(
        &self,
        method: &str,
        place: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<HttpResponse, BucketError> {
        // The time of the machine, as the SDK signs; the time of the attempt may differ from the one of S3, which
        // compares them.
        let url = self.signed(method, place, headers, (Clock::System.now(), VALID)).await?;
        // The clones of a body share its bytes.
        let body = SdkBody::from(body);
        let mut failure = String::new();
        for attempt in 0..ATTEMPTS {
            pause_before(attempt).await;
            let request = request(method, &url, headers, &body)?;
            failure = match self.client.send(request).await {
                Ok(response) => match response.status().as_u16() {
                    // 409: a concurrent request was about the same key.
                    409 | 500.. => format!("answered {}", response.status().as_u16()),
                    _ => return Ok(response),
                },
                Err(failure) => failure,
            };
        }
        Err(BucketError::Unavailable(format!("bucket: {method}: {failure}")))
    }

    /// The body of the answer to a GET.
    async fn body(&self, response: &mut HttpResponse) -> Result<Vec<u8>, BucketError> {
        let body = self.client.body(response).await;
        body.map_err(|failure| BucketError::Unavailable(format!("bucket: GET: {failure}")))
    }

    async fn signed(
        &self,
        method: &str,
        place: &str,
        headers: &[(&str, &str)],
        (from, seconds): (Timestamp, i64),
    ) -> Result<SignedUrl, BucketError> {
        let broken = |error: String| BucketError::Broken(format!("bucket: {error}"));
        let credentials = self.client.credentials().await.map_err(broken)?;
        let scope = Scope { region: &self.client.region, from, seconds };
        let url = format!("{}/{place}", self.address);
        scope.sign(method, &url, headers, credentials).map_err(broken)
    }
}

fn request(
    method: &str,
    url: &SignedUrl,
    headers: &[(&str, &str)],
    body: &SdkBody,
) -> Result<HttpRequest, BucketError> {
    // The message of the error could quote the address.
    let broken = || BucketError::Broken("bucket: a request that cannot be made".into());
    let mut request = HttpRequest::new(body.try_clone().ok_or_else(broken)?);
    request.set_method(method).map_err(|_| broken())?;
    request.set_uri(url.expose()).map_err(|_| broken())?;
    for (name, value) in headers {
        request.headers_mut().try_insert((*name).to_owned(), (*value).to_owned()).map_err(|_| broken())?;
    }
    Ok(request)
}

fn unexpected(method: &str, status: u16) -> BucketError {
    BucketError::Broken(format!("bucket: {method} answered {status}"))
}

#[cfg(test)]
mod tests {
    use aws_config::Region;

    use super::*;
    use crate::runtime::http_client;

    fn bucket(config: aws_types::sdk_config::Builder) -> Bucket {
        let connector = http_client::connector(rustls::RootCertStore::empty());
        Bucket::new(&config.build(), "name", connector, Duration::from_secs(1))
    }

    #[test]
    fn a_bucket_has_its_own_host_unless_an_endpoint_is_set() {
        let at = |region: &'static str| SdkConfig::builder().region(Region::new(region));
        for (config, wanted) in [
            (at("eu-west-1"), "https://name.s3.eu-west-1.amazonaws.com"),
            (at("us-east-1"), "https://name.s3.us-east-1.amazonaws.com"),
            (at("cn-north-1"), "https://name.s3.cn-north-1.amazonaws.com.cn"),
            (at("us-east-1").endpoint_url("http://127.0.0.1:9/"), "http://127.0.0.1:9/name"),
        ] {
            assert_eq!(&*bucket(config).address, wanted);
        }
    }

    #[tokio::test]
    async fn signing_without_credentials_fails() {
        #[expect(clippy::disallowed_methods, reason = "a test is its own operator")]
        let tenant = Tenant::operator(crate::values::id::OrgId(Uuid::nil()));
        let key = ObjectKey::of(&tenant, Uuid::max());
        assert_eq!(key.0, "00000000-0000-0000-0000-000000000000/ffffffff-ffff-ffff-ffff-ffffffffffff");
        let refused = bucket(SdkConfig::builder())
            .download(&key, &[], (Timestamp::from_unix_millis(0), VALID))
            .await
            .unwrap_err();
        assert_eq!(refused.to_string(), "bucket: no credentials");
    }
}
