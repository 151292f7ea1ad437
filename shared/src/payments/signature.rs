//! The payment provider's signatures: the header `Stripe-Signature` is `t=…,v1=…`, and each `v1` is the HMAC-SHA256 of
//! `t`, a dot and the body.

use ring::hmac::{self, HMAC_SHA256, Key};

use crate::records::agency::StoredPaymentWebhook;
use crate::request::signed::SignedMessage;
use crate::values::secret::Secret;

/// The header, in lower case.
pub const HEADER: &str = "stripe-signature";

/// Seconds by which the time of a signature may differ from now: an older request may be a replay.
const TOLERANCE: u64 = 300;

/// The key that is used if there is no webhook. A signature made with it is never accepted.
const SUBSTITUTE: &str = "the secret of nobody";

/// Whether the provider has signed `message` for this webhook, whose secret is open. Without a webhook the result is
/// false, after the same work.
pub fn is_signed(webhook: Option<&StoredPaymentWebhook>, message: &SignedMessage<'_>) -> bool {
    let secret = webhook.and_then(|webhook| webhook.secret.open());
    let (has_secret, secret) = (secret.is_some(), secret.map_or(SUBSTITUTE, Secret::expose));
    let Header { time, signatures } = Header::read(message.signature.unwrap_or_default());
    let key = Key::new(HMAC_SHA256, secret.as_bytes());
    let mut signed = hmac::Context::with_key(&key);
    for part in [time.as_bytes(), b".", message.body] {
        signed.update(part);
    }
    // Each signature is compared in constant time through an HMAC of its own, so that the body is hashed only once.
    let wanted = hmac::sign(&key, signed.sign().as_ref());
    let matches = |signature: &Vec<u8>| hmac::verify(&key, signature, wanted.as_ref()).is_ok();
    let is_signed = signatures.iter().any(matches);
    let now = message.now.unix_seconds();
    let in_time = time.parse().is_ok_and(|time: i64| now.abs_diff(time) <= TOLERANCE);
    is_signed && in_time && has_secret
}

/// The parts of the header.
struct Header<'a> {
    /// The first `t` as it is written: seconds since 1970.
    time: &'a str,
    /// Every `v1`. While the owner replaces the secret, the provider signs with the old and the new one.
    signatures: Vec<Vec<u8>>,
}

impl<'a> Header<'a> {
    /// Reads `text`; other schemes, such as `v0`, are ignored.
    fn read(text: &'a str) -> Self {
        let parts = || text.split(',').filter_map(|part| part.trim().split_once('='));
        let of = |wanted: &'static str| parts().filter(move |(name, _)| *name == wanted).map(|(_, value)| value);
        Self { time: of("t").next().unwrap_or_default(), signatures: of("v1").filter_map(bytes).collect() }
    }
}

/// The bytes of hexadecimal digits.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    };
    hex.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::time::Timestamp;

    const BODY: &[u8] = br#"{"id":"evt_1"}"#;
    const SECRET: &str = "whsec_test_secret";
    /// The time in the signature, and the signature that `openssl dgst -sha256 -hmac whsec_test_secret` makes of it and the body.
    const TIME: i64 = 1_492_774_577;
    const GOOD: &str = "799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f";

    fn accepts(secret: Option<&str>, header: Option<&str>, body: &[u8], seconds: i64) -> bool {
        let webhook = secret.map(|secret| StoredPaymentWebhook {
            payment_webhook_id: "we_1".into(),
            secret: Secret::from(secret.to_owned()).into(),
            has_pointer: true,
        });
        let now = Timestamp::from_unix_millis(seconds * 1000);
        is_signed(webhook.as_ref(), &SignedMessage { signature: header, body, now })
    }

    #[test]
    fn one_good_signature_among_several_is_enough() {
        let other = "0".repeat(64);
        for header in [
            format!("t={TIME},v1={GOOD}"),
            format!("v1={GOOD},t={TIME}"),
            format!("t={TIME}, v1={other}, v1={GOOD}, v0={other}"),
            format!("t={TIME},v1={},unknown,v1=é,v1=zz,v1=", GOOD.to_uppercase()),
        ] {
            assert!(accepts(Some(SECRET), Some(&header), BODY, TIME), "{header}");
            assert!(!accepts(Some("whsec_other"), Some(&header), BODY, TIME), "{header}");
            assert!(!accepts(None, Some(&header), BODY, TIME), "{header}");
            assert!(!accepts(Some(SECRET), Some(&header), br#"{"id": "evt_1"}"#, TIME), "{header}");
        }
    }

    #[test]
    fn an_invalid_signature_is_refused() {
        let (cut, later) = (&GOOD[..62], TIME + 1);
        for header in [
            String::new(),
            "t".to_owned(),
            format!("v1={GOOD}"),
            format!("t={TIME}"),
            format!("t={TIME},v0={GOOD}"),
            format!("t={TIME},v1={cut}"),
            format!("t={TIME},v1={GOOD}00"),
            format!("t={later},v1={GOOD}"),
            format!("t=+{TIME},v1={GOOD}"),
            format!("t={later},t={TIME},v1={GOOD}"),
            format!("t=,v1={GOOD}"),
        ] {
            assert!(!accepts(Some(SECRET), Some(&header), BODY, TIME), "{header}");
        }
        assert!(!accepts(Some(SECRET), None, BODY, TIME));
    }

    #[test]
    fn a_signature_holds_for_five_minutes() {
        let header = format!("t={TIME},v1={GOOD}");
        for (seconds, accepted) in [(-301, false), (-300, true), (0, true), (300, true), (301, false)] {
            assert_eq!(accepts(Some(SECRET), Some(&header), BODY, TIME + seconds), accepted, "{seconds}");
        }
        let far = format!("t={},v1={GOOD}", i64::MIN);
        assert!(!accepts(Some(SECRET), Some(&far), BODY, TIME));
    }

    #[test]
    fn the_substitute_secret_verifies_no_signature() {
        let key = Key::new(HMAC_SHA256, SUBSTITUTE.as_bytes());
        let signature = hmac::sign(&key, &[format!("{TIME}.").as_bytes(), BODY].concat());
        let header = format!("t={TIME},v1={}", crate::values::hash::hex(signature.as_ref()));
        assert!(!accepts(None, Some(&header), BODY, TIME));
    }
}
