//! AWS Signature Version 4, in two forms: in the query of an address, with which anyone may send this one request until
//! it expires; and in the headers of a request that is sent at once.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use aws_sdk_dynamodb::config::Credentials;
use aws_sigv4::http_request::{
    PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningInstructions, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::input::schema::{Schema, Value};
use crate::values::cause::chain;
use crate::values::time::Timestamp;

/// The characters that are not encoded in a query; the signature covers the same text.
pub(crate) const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An address with a signature. With it, anyone may send its request, so `Debug` hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignedUrl(String);

impl SignedUrl {
    /// The address itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SignedUrl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SignedUrl(…)")
    }
}

impl Schema for SignedUrl {
    fn schema() -> Value {
        serde_json::json!({"type": "string", "format": "uri"})
    }
}

/// The place and the time for which a signature is valid.
pub(crate) struct Scope<'a> {
    /// The region of the bucket.
    pub region: &'a str,
    /// The time from which it is valid, in whole seconds.
    pub from: Timestamp,
    /// The number of seconds for which it is valid.
    pub seconds: i64,
}

impl Scope<'_> {
    /// Signs a request with these headers and any body.
    ///
    /// # Errors
    /// The reason why it cannot be signed.
    pub fn sign(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        credentials: Credentials,
    ) -> Result<SignedUrl, String> {
        let mut settings = SigningSettings::default();
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(Duration::from_secs(self.seconds.unsigned_abs()));
        // S3 expects the key without a second encoding.
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let request = SignableRequest::new(method, url, headers.iter().copied(), SignableBody::UnsignedPayload);
        let request = request.map_err(|error| chain(&error))?;
        let signed = signed(("s3", self.region), self.from, settings, credentials, request)?;
        let mut signed_url = url.to_owned();
        for (name, value) in signed.params() {
            let separator = if signed_url.contains('?') { '&' } else { '?' };
            // Writing to a string cannot fail.
            let _ = write!(signed_url, "{separator}{name}={}", utf8_percent_encode(value, ENCODED));
        }
        Ok(SignedUrl(signed_url))
    }
}

/// Adds the headers that sign `request` with all of its headers and its body, for `service` in `region`.
///
/// # Errors
/// The reason why it cannot be signed.
pub(crate) fn sign_headers(
    (service, region): (&str, &str),
    now: Timestamp,
    credentials: Credentials,
    request: &mut HttpRequest,
) -> Result<(), String> {
    let body = request.body().bytes().ok_or("a body that is a stream")?;
    let signable =
        SignableRequest::new(request.method(), request.uri(), request.headers().iter(), SignableBody::Bytes(body));
    let signable = signable.map_err(|error| chain(&error))?;
    let signed = signed((service, region), now, SigningSettings::default(), credentials, signable)?;
    let headers: Vec<_> = signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    // The message of the error could quote the header.
    let broken = |_| "a signature that is no header".to_owned();
    headers
        .into_iter()
        .try_for_each(|(name, value)| request.headers_mut().try_insert(name, value).map(drop).map_err(broken))
}

/// What signs `request`.
fn signed(
    (service, region): (&str, &str),
    time: Timestamp,
    settings: SigningSettings,
    credentials: Credentials,
    request: SignableRequest<'_>,
) -> Result<SigningInstructions, String> {
    let identity = Identity::from(credentials);
    let params = v4::SigningParams::builder().identity(&identity).region(region).name(service);
    let params = params.time(UNIX_EPOCH + Duration::from_secs(time.unix_seconds().unsigned_abs()));
    let params = params.settings(settings).build().map_err(|error| chain(&error))?.into();
    Ok(sign(request, &params).map_err(|error| chain(&error))?.into_parts().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(method: &str, headers: &[(&str, &str)], token: Option<&str>) -> String {
        let (id, secret) = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let credentials = Credentials::new(id, secret, token.map(str::to_owned), None, "test");
        // 2013-05-24T00:00:00Z.
        let from = Timestamp::from_unix_millis(1_369_353_600_999);
        let scope = Scope { region: "us-east-1", from, seconds: 86_400 };
        scope.sign(method, "https://examplebucket.s3.amazonaws.com/test.txt", headers, credentials).unwrap().0
    }

    /// The example of the page "Authenticating Requests: Using Query Parameters" of the S3 API reference.
    #[test]
    fn the_published_example_has_the_published_signature() {
        let wanted = "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
                      &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
                      &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
                      &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        assert_eq!(signed("GET", &[], None), wanted);
    }

    #[test]
    fn the_signature_covers_method_headers_and_session() {
        let signature = |url: &str| url.split("X-Amz-Signature=").nth(1).unwrap()[..64].to_owned();
        let headers = [("content-length", "5"), ("content-type", "text/plain")];
        let put = signed("PUT", &headers, Some("a+/="));
        assert!(put.contains("&X-Amz-SignedHeaders=content-length%3Bcontent-type%3Bhost&"), "{put}");
        assert!(put.ends_with("&X-Amz-Security-Token=a%2B%2F%3D"), "{put}");
        let others = [
            signed("PUT", &headers, None),
            signed("GET", &headers, Some("a+/=")),
            signed("PUT", &headers[..1], Some("a+/=")),
            signed("PUT", &[("content-length", "6"), ("content-type", "text/plain")], Some("a+/=")),
        ];
        assert!(others.iter().all(|other| signature(other) != signature(&put)), "{others:?}");
    }

    #[test]
    fn a_query_is_signed_and_kept() {
        let credentials = || Credentials::new("id", "secret", None, None, "test");
        let scope = Scope { region: "us-east-1", from: Timestamp::from_unix_millis(0), seconds: 1 };
        let sign = |url: &str| scope.sign("GET", url, &[], credentials()).unwrap().0;
        let (one, other) =
            (sign("https://b.example/?list-type=2&start-after=a%2Fb"), sign("https://b.example/?list-type=2"));
        assert!(one.starts_with("https://b.example/?list-type=2&start-after=a%2Fb&X-Amz-Algorithm="), "{one}");
        assert_ne!(one.split("X-Amz-Signature=").nth(1), other.split("X-Amz-Signature=").nth(1));
    }

    #[test]
    fn debug_does_not_show_an_address() {
        assert_eq!(format!("{:?}", SignedUrl("https://x?X-Amz-Signature=1".into())), "SignedUrl(…)");
    }
}
