//! A local KMS: the two calls that the service makes, and one fixed key. So a database that is kept in a file stays
//! readable after a restart.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use shared::sealing::{CONTEXT, Kms, Secrets};
use shared::values::id::OrgId;
use tokio::task::yield_now;

use crate::bucket::sdk_config;

/// Id of the one key.
pub const KEY: &str = "local";
/// The bytes of the key. They protect nothing: whoever has this file has them.
const KEY_BYTES: [u8; 32] = *b"the fixed key of cargo local ...";
/// The bytes that KMS adds to a data key of 32 bytes; those of this one are mostly padding.
const ADDED: usize = 152;

/// The local KMS. Clones share its state.
#[derive(Debug, Clone, Default)]
pub struct LocalKms(Arc<Mutex<KmsState>>);

#[derive(Debug, Default)]
struct KmsState {
    calls: Vec<(String, String)>,
    /// The kind of failure, and the organisation that it concerns if not all.
    failure: Option<(&'static str, Option<OrgId>)>,
}

impl LocalKms {
    /// The calls so far: each action with its organisation.
    pub fn calls(&self) -> Vec<(String, String)> {
        self.state().calls.clone()
    }

    /// Makes every call fail with this kind of failure; for one organisation only, if one is named.
    pub fn fail(&self, kind: &'static str, of: Option<OrgId>) {
        self.state().failure = Some((kind, of));
    }

    /// Ends the failure.
    pub fn recover(&self) {
        self.state().failure = None;
    }

    /// Its route for any AWS client.
    pub fn router(&self) -> Router {
        Router::new().route("/", post(answer)).with_state(self.clone())
    }

    /// A connector that sends requests to it without a socket.
    pub fn connector(&self) -> SharedHttpConnector {
        SharedHttpConnector::new(LocalKmsConnector(self.clone()))
    }

    /// What seals and opens secrets with its data keys.
    pub fn secrets(&self) -> Secrets {
        Secrets::new(Some(client("http://kms", self.connector())))
    }

    /// Status and body of its answer to a call of `action`.
    fn answer(&self, action: &str, body: &[u8]) -> (u16, Value) {
        let refused = |kind: &str| (400, json!({"__type": kind}));
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let org = body["EncryptionContext"][CONTEXT].as_str().unwrap_or_default();
        let failure = {
            let mut state = self.state();
            state.calls.push((action.to_owned(), org.to_owned()));
            state.failure.filter(|(_, of)| of.is_none_or(|of| of.to_string() == org))
        };
        if let Some((kind, _)) = failure {
            return refused(kind);
        }
        if body["KeyId"] != KEY || org.is_empty() {
            return refused("ValidationException");
        }
        let plain = match action {
            "GenerateDataKey" => new_data_key().map(|plain| (seal(&plain, org), plain)),
            "Decrypt" => {
                let sealed = STANDARD.decode(body["CiphertextBlob"].as_str().unwrap_or_default()).unwrap_or_default();
                open(&sealed, org).map(|plain| (Some(sealed), plain))
            }
            _ => return refused("UnknownOperationException"),
        };
        let Some((Some(sealed), plain)) = plain else { return refused("InvalidCiphertextException") };
        let [sealed, plain] = [sealed, plain].map(|bytes| STANDARD.encode(bytes));
        (200, json!({"KeyId": KEY, "CiphertextBlob": sealed, "Plaintext": plain}))
    }

    fn state(&self) -> MutexGuard<'_, KmsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The KMS at the endpoint `url`, whose requests go through `connector`.
pub fn client(url: &str, connector: SharedHttpConnector) -> Kms {
    Kms::new(&sdk_config(url), KEY, connector, Duration::from_secs(1))
}

async fn answer(State(kms): State<LocalKms>, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let (status, answer) = kms.answer(action(target), &body);
    let status = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    (status, [("content-type", "application/x-amz-json-1.1")], answer.to_string()).into_response()
}

fn action(target: &str) -> &str {
    target.strip_prefix("TrentService.").unwrap_or_default()
}

#[derive(Debug)]
struct LocalKmsConnector(LocalKms);

impl HttpConnector for LocalKmsConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let kms = self.0.clone();
        HttpConnectorFuture::new(async move {
            // As on a network, concurrent tasks continue meanwhile.
            yield_now().await;
            let action = action(request.headers().get("x-amz-target").unwrap_or_default());
            let body = request.body().bytes().ok_or_else(|| ConnectorError::user("a body that is a stream".into()))?;
            let (status, answer) = kms.answer(action, body);
            yield_now().await;
            let status = StatusCode::try_from(status).map_err(|error| ConnectorError::other(error.into(), None))?;
            Ok(HttpResponse::new(status, SdkBody::from(answer.to_string())))
        })
    }
}

fn new_data_key() -> Option<Vec<u8>> {
    let mut key = vec![0; 32];
    SystemRandom::new().fill(&mut key).ok()?;
    Some(key)
}

fn cipher() -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, &KEY_BYTES).ok().map(LessSafeKey::new)
}

/// `plain`, encrypted for `org`, and as long as an answer of KMS.
fn seal(plain: &[u8], org: &str) -> Option<Vec<u8>> {
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).ok()?;
    let mut text = [plain, &vec![0; ADDED - NONCE_LEN - AES_256_GCM.tag_len()]].concat();
    let context = Aad::from(org.as_bytes());
    cipher()?.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), context, &mut text).ok()?;
    Some([&nonce[..], &text].concat())
}

fn open(sealed: &[u8], org: &str) -> Option<Vec<u8>> {
    let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let (nonce, mut text) = (Nonce::assume_unique_for_key(*nonce), text.to_vec());
    let plain = cipher()?.open_in_place(nonce, Aad::from(org.as_bytes()), &mut text).ok()?;
    Some(plain.get(..32)?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kms: &LocalKms, action: &str, org: &str, key: &Value) -> (u16, Value) {
        let body = json!({"KeyId": KEY, "EncryptionContext": {CONTEXT: org}, "CiphertextBlob": key});
        kms.answer(action, body.to_string().as_bytes())
    }

    #[test]
    fn a_data_key_opens_for_its_organisation_after_a_restart() {
        let (status, made) = call(&LocalKms::default(), "GenerateDataKey", "acme", &Value::Null);
        assert_eq!((status, STANDARD.decode(made["CiphertextBlob"].as_str().unwrap()).unwrap().len()), (200, 184));
        let (status, opened) = call(&LocalKms::default(), "Decrypt", "acme", &made["CiphertextBlob"]);
        assert_eq!((status, &opened["Plaintext"]), (200, &made["Plaintext"]));
        let refused = (400, json!({"__type": "InvalidCiphertextException"}));
        assert_eq!(call(&LocalKms::default(), "Decrypt", "globex", &made["CiphertextBlob"]), refused);
        assert_eq!(call(&LocalKms::default(), "Decrypt", "", &made["CiphertextBlob"]).0, 400);
    }
}
