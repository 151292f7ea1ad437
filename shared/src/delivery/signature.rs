//! Signs events: the secrets and headers of Standard Webhooks 1.0.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};

use crate::request::error::{Error, Result};
use crate::values::secret::Secret;

/// The secret made of `bytes`, in the form in which its owner sees it once.
pub fn new_secret(bytes: [u8; 32]) -> Secret {
    format!("whsec_{}", STANDARD.encode(bytes)).into()
}

/// The headers of the event `id` with `body`, sent `timestamp_seconds` after the start of 1970: one signature for each
/// of `secrets`.
///
/// # Errors
/// [`Error::Internal`] where there is no secret, or one that [`new_secret`] did not make.
pub fn headers(
    secrets: &[&Secret],
    id: &str,
    timestamp_seconds: i64,
    body: &str,
) -> Result<[(&'static str, String); 3]> {
    if secrets.is_empty() {
        return Err(Error::Internal("an event without a secret to sign it with".into()));
    }
    let sign = |secret: &&Secret| Webhook::new(secret.expose())?.sign(id, timestamp_seconds, body.as_bytes());
    // The cause is dropped: it would quote the secret.
    let signatures: Vec<_> = secrets
        .iter()
        .map(sign)
        .collect::<Result<_, _>>()
        .map_err(|_| Error::Internal("a webhook's secret is not base64".into()))?;
    Ok([
        (HEADER_WEBHOOK_ID, id.to_owned()),
        (HEADER_WEBHOOK_TIMESTAMP, timestamp_seconds.to_string()),
        (HEADER_WEBHOOK_SIGNATURE, signatures.join(" ")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::time::Clock;
    use reqwest::header::{HeaderMap, HeaderValue};

    const BODY: &str = r#"{"type": "conversation.closed", "name": "Zoë"}"#;

    #[test]
    fn the_headers_are_those_of_the_specification() {
        let secret = Secret::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let headers =
            headers(&[&secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#).unwrap();
        let wanted = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ];
        assert_eq!(headers.each_ref().map(|(name, value)| (*name, value.as_str())), wanted);
    }

    #[test]
    fn only_the_two_secrets_of_a_rotation_verify() {
        let [old, new, other] = [1, 2, 3].map(|byte| new_secret([byte; 32]));
        let signed = headers(&[&old, &new], "msg_1", Clock::System.now().unix_seconds(), BODY).unwrap();
        let signed: HeaderMap =
            signed.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let verify = |secret: &Secret, body: &str, headers: &HeaderMap| {
            Webhook::new(secret.expose()).unwrap().verify(body.as_bytes(), headers).is_ok()
        };
        assert!(verify(&old, BODY, &signed));
        assert!(verify(&new, BODY, &signed));
        assert!(!verify(&other, BODY, &signed));
        assert!(!verify(&old, &BODY.replace("closed", "opened"), &signed));
        for (name, value) in [(HEADER_WEBHOOK_ID, "msg_2"), (HEADER_WEBHOOK_TIMESTAMP, "1614265330")] {
            let mut forged = signed.clone();
            forged.insert(name, HeaderValue::from_static(value));
            assert!(!verify(&old, BODY, &forged), "{name}");
        }
    }

    #[test]
    fn a_secret_encodes_its_bytes_after_a_prefix() {
        let secret = new_secret([0xfb; 32]);
        let encoded = secret.expose().strip_prefix("whsec_").unwrap();
        assert_eq!(STANDARD.decode(encoded).unwrap(), [0xfb; 32]);
    }

    #[test]
    fn a_signing_failure_does_not_show_the_secret() {
        assert!(headers(&[], "msg_1", 0, BODY).is_err());
        let broken = Secret::from("whsec_not~base64".to_owned());
        let error = headers(&[&new_secret([1; 32]), &broken], "msg_1", 0, BODY).unwrap_err();
        assert_eq!(error.to_string(), "internal: a webhook's secret is not base64");
    }
}
