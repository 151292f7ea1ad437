//! The two calls of KMS: a new data key, and the decryption of one. The SDK of KMS would make every zip larger.

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::aws::signature::sign_headers;
use crate::aws::{ATTEMPTS, AwsClient, endpoint, pause_before, suffix};
use crate::sealing::SealingError;
use crate::values::bytes::Bytes;
use crate::values::id::OrgId;
use crate::values::time::Clock;

/// The member of the encryption context that names the organisation. The roles in the template name it too.
pub const CONTEXT: &str = "organisation";

/// KMS, with the key of the stack. Clones share the connections.
#[derive(Debug, Clone)]
pub struct Kms {
    address: Arc<str>,
    /// The key of the stack.
    key: Arc<str>,
    client: AwsClient,
}

/// A new data key.
pub(super) struct NewDataKey {
    /// Encrypted for one organisation.
    pub encrypted: Bytes,
    /// 32 bytes.
    pub plain: Vec<u8>,
}

/// The answer to either call.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KmsAnswer {
    plaintext: String,
    #[serde(default)]
    ciphertext_blob: String,
}

impl Kms {
    /// KMS with the key `key`, and with region, credentials and endpoint of `config`.
    pub fn new(config: &SdkConfig, key: &str, connector: SharedHttpConnector, attempt: Duration) -> Self {
        let client = AwsClient::new(config, connector, attempt);
        let public = || format!("https://kms.{}.{}", client.region, suffix(&client.region));
        let address = endpoint(config, "KMS").unwrap_or_else(public);
        Self { address: address.trim_end_matches('/').into(), key: key.into(), client }
    }

    /// A new data key of `org`.
    pub(super) async fn new_data_key(&self, org: OrgId) -> Result<NewDataKey, SealingError> {
        let answer = self.call("GenerateDataKey", org, json!({"KeySpec": "AES_256"})).await?;
        Ok(NewDataKey { encrypted: bytes(&answer.ciphertext_blob)?.into(), plain: bytes(&answer.plaintext)? })
    }

    /// The bytes of a data key of `org`.
    pub(super) async fn decrypted(&self, org: OrgId, encrypted: &Bytes) -> Result<Vec<u8>, SealingError> {
        let body = json!({"CiphertextBlob": STANDARD.encode(encrypted.expose())});
        bytes(&self.call("Decrypt", org, body).await?.plaintext)
    }

    async fn call(&self, action: &str, org: OrgId, mut body: Value) -> Result<KmsAnswer, SealingError> {
        body["KeyId"] = (*self.key).into();
        body["EncryptionContext"] = json!({CONTEXT: org});
        let (body, mut failure) = (body.to_string(), String::new());
        for attempt in 0..ATTEMPTS {
            pause_before(attempt).await;
            let request = self.request(action, body.clone()).await?;
            failure = match self.attempt(request).await {
                Ok((200, answer)) => {
                    return serde_json::from_slice(&answer).map_err(|_| refused(action, "answered no data key"));
                }
                Ok((status, answer)) => failed(action, status, &answer)?,
                Err(failure) => failure,
            };
        }
        Err(SealingError::Unavailable(format!("kms: {action}: {failure}").into()))
    }

    /// Status and body of the answer to `request`.
    async fn attempt(&self, request: HttpRequest) -> Result<(u16, Vec<u8>), String> {
        let mut response = self.client.send(request).await?;
        let body = self.client.body(&mut response).await?;
        Ok((response.status().as_u16(), body))
    }

    async fn request(&self, action: &str, body: String) -> Result<HttpRequest, SealingError> {
        let broken = || refused(action, "a request that cannot be made");
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method("POST").map_err(|_| broken())?;
        request.set_uri(format!("{}/", self.address)).map_err(|_| broken())?;
        let target = format!("TrentService.{action}");
        for (name, value) in [("content-type", "application/x-amz-json-1.1".to_owned()), ("x-amz-target", target)] {
            request.headers_mut().try_insert(name, value).map_err(|_| broken())?;
        }
        let credentials = self.client.credentials().await.map_err(|error| refused(action, &error))?;
        sign_headers(("kms", &self.client.region), Clock::System.now(), credentials, &mut request)
            .map_err(|error| refused(action, &error))?;
        Ok(request)
    }
}

/// Why a later attempt may succeed, by the answer to this one.
///
/// # Errors
/// [`SealingError`] where no attempt of this request can.
fn failed(action: &str, status: u16, answer: &[u8]) -> Result<String, SealingError> {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let kind = answer["__type"].as_str().and_then(|kind| kind.rsplit('#').next()).unwrap_or_default();
    match kind {
        // The bytes were changed, or belong to another organisation or to another key.
        "InvalidCiphertextException" | "IncorrectKeyException" => Err(SealingError::Unopenable("the data key")),
        // An operator can enable the key again.
        "DisabledException" | "KMSInvalidStateException" => {
            Err(SealingError::Unavailable(format!("kms: {action}: {kind}").into()))
        }
        "ThrottlingException" | "DependencyTimeoutException" | "KeyUnavailableException" | "KMSInternalException" => {
            Ok(format!("answered {status} {kind}"))
        }
        _ if status >= 500 => Ok(format!("answered {status}")),
        _ => Err(refused(action, &format!("answered {status} {kind}"))),
    }
}

fn bytes(base64: &str) -> Result<Vec<u8>, SealingError> {
    STANDARD.decode(base64).map_err(|_| SealingError::Refused("kms: an answer without its bytes".into()))
}

fn refused(action: &str, why: &str) -> SealingError {
    SealingError::Refused(format!("kms: {action}: {why}").into())
}

#[cfg(test)]
mod tests {
    use aws_config::Region;

    use super::*;
    use crate::runtime::http_client;

    #[test]
    fn kms_has_the_host_of_its_region_unless_an_endpoint_is_set() {
        let at = |region: &'static str| SdkConfig::builder().region(Region::new(region));
        for (config, wanted) in [
            (at("eu-west-1"), "https://kms.eu-west-1.amazonaws.com"),
            (at("cn-north-1"), "https://kms.cn-north-1.amazonaws.com.cn"),
            (at("us-east-1").endpoint_url("http://127.0.0.1:9/"), "http://127.0.0.1:9"),
        ] {
            let connector = http_client::connector(rustls::RootCertStore::empty());
            let kms = Kms::new(&config.build(), "key", connector, Duration::from_secs(1));
            assert_eq!(&*kms.address, wanted);
        }
    }

    #[test]
    fn the_kind_of_a_failure_decides_about_another_attempt() {
        let of = |status, kind: &str| failed("Decrypt", status, json!({"__type": kind}).to_string().as_bytes());
        assert!(of(400, "ThrottlingException").is_ok());
        assert!(of(500, "KMSInternalException").is_ok());
        assert!(of(503, "").is_ok());
        for (kind, wanted) in [
            ("DisabledException", "kms: Decrypt: DisabledException"),
            ("com.amazonaws.kms#InvalidCiphertextException", "the data key cannot be opened"),
            ("AccessDeniedException", "kms: Decrypt: answered 400 AccessDeniedException"),
        ] {
            assert_eq!(of(400, kind).unwrap_err().to_string(), wanted);
        }
    }
}
