//! `Idempotency-Key`: a repeated request gets the first answer again, and has no second effect.
//!
//! Before its handler runs, such a request *claims* its key with an item. Afterwards the item keeps the answer. A later
//! request with the same key gets that answer. If there is no answer yet, the later request fails because the first one
//! is still running. If the lease of the first request has expired, the later request takes the claim over and executes
//! the request again. The claim keeps the values from which the time and the ids are derived, so every attempt writes
//! the same items. A handler marks a write that must happen only once with [`Context::origin`].
//!
//! The header's value is a secret of the caller and is not stored: the item is found by its SHA-256, and the answer is
//! encrypted with a key that is derived from it. `docs/adr/0009-idempotency-key.md` gives the reasons.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use futures_util::FutureExt as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;

use crate::input::{Issue, Location, words};
use crate::request::claim;
use crate::request::claim::{Claim, KEPT};
use crate::request::context::Context;
use crate::request::error::{Error, Result};
use crate::request::http::HttpRequest;
use crate::request::response::{Response, Success};
use crate::table::keys::Fingerprint;
use crate::values::bytes::Bytes;
use crate::values::cause::chain;
use crate::values::hash::sha256;
use crate::values::id::Seed;

/// Seconds after which the lease expires: Lambda ends a function after 28, and the gateway gives up after 29.
const LEASE: i64 = 30;
/// The most bytes of an encrypted answer: an item may have 400 KB, including its key and the rest of the claim.
const SEALED_LIMIT: usize = 380 * 1024;
/// The most characters of a key.
const LENGTH: usize = 255;
/// The pattern of a key.
pub const PATTERN: &str = "^[!-~]{1,255}$";

/// The value of the header: 1 to 255 visible characters. `Debug` does not show it.
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses `text` as a key.
    ///
    /// # Errors
    /// The issue with an invalid value.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        if (1..=LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.to_owned()));
        }
        let at = Location::header("idempotency-key");
        Err(at.issue(words::PATTERN, format!("String should match pattern '{PATTERN}'")))
    }

    /// The hash by which the claim is found.
    fn hash(&self) -> Fingerprint {
        sha256([self.0.as_bytes()])
    }

    /// The bytes derived from this key for the caller's organisation and one `purpose`. `salt` is stored, and is
    /// useless without the key.
    fn derive(&self, cx: &Context<'_>, salt: &Bytes, purpose: &str) -> [u8; 32] {
        let org = cx.tenant.org().0;
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, salt.expose()));
        for part in [purpose.as_bytes(), org.as_bytes(), self.0.as_bytes()] {
            // Each part is hashed with its length, so that no two lists of parts give the same bytes.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        bytes32(context.sign().as_ref())
    }
}

impl std::fmt::Debug for IdempotencyKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("IdempotencyKey(…)")
    }
}

/// A handler with its valid input, ready to run.
pub type Work =
    Box<dyn for<'a> FnOnce(&'a Context<'a>) -> Pin<Box<dyn Future<Output = Result<Success>> + Send + 'a>> + Send>;

/// SHA-256 of the request: method, path, query and body as they were sent. Two requests with the same hash are the same
/// request.
pub fn fingerprint(request: &HttpRequest) -> Fingerprint {
    // Parameters have no fixed order; parameters with the same name keep theirs. The way in which the API key is sent
    // makes no difference.
    let mut query: Vec<_> = request.query.iter().filter(|(name, _)| name != "api_key").collect();
    query.sort_by_key(|(name, _)| name);
    let path = request.path.strip_suffix('/').unwrap_or(&request.path);
    let parts = [request.method.as_str(), path].into_iter();
    let parts = parts.chain(query.into_iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]));
    let parts = parts.map(str::as_bytes).chain([request.body.as_deref().unwrap_or_default()]);
    let framed: Vec<_> = parts.map(|part| ((part.len() as u64).to_be_bytes(), part)).collect();
    sha256(framed.iter().flat_map(|(length, part)| [length.as_slice(), part]))
}

/// Answers the request of `fingerprint` as it was answered before, or runs `work` and keeps its answer.
///
/// # Errors
/// [`Error::IdempotencyKeyReused`], [`Error::IdempotencyKeyInUse`], or an error of the table.
pub async fn once(
    cx: Context<'_>,
    key: &IdempotencyKey,
    fingerprint: Fingerprint,
    success: u16,
    work: Work,
) -> Result<Response> {
    let clock = &cx.service.clock;
    let claim = match claim(&cx, key, fingerprint).await? {
        Claimed::Done(answer) => return Ok(answer),
        Claimed::Mine(claim) => claim,
    };
    let seed = Seed::new(&key.derive(&cx, &claim.nonce, "ids"));
    let again = cx.repeatable(claim.started_at, seed);
    let answer = match caught(work(&again)).await {
        Ok(answer) => answer.with(success),
        Err(error) => error.into(),
    };
    // A failure of the service is not kept: the lease ends, and a repeat executes the request at once. The same is true
    // of an answer that is too large for an item. Only the refusal of thousands of unknown contacts by run-campaign is
    // so large, and it has no effect.
    let ours = answer.status >= 500;
    let sealed = if ours { None } else { seal(&answer, &key.derive(&again, &claim.holder, "answer")) };
    let lease_until = if sealed.is_some() { claim.lease_until } else { clock.now() };
    let holder = claim.holder.clone();
    let settled = claim::replace(&again.table, key.hash(), &Claim { lease_until, sealed, ..claim }, &holder).await;
    // The work is done and its caller waits, so this failure is only logged: after the lease has expired, a repeat
    // makes the same answer.
    if let Err(error) = settled {
        tracing::warn!(error = chain(&error), "the answer to an idempotency key was not kept");
    }
    Ok(answer)
}

/// The state of a key.
enum Claimed {
    /// The request has been answered.
    Done(Response),
    /// This process executes the request.
    Mine(Claim),
}

async fn claim(cx: &Context<'_>, key: &IdempotencyKey, fingerprint: Fingerprint) -> Result<Claimed> {
    // The time of the machine, because processes compare leases; the time of the attempt may be older.
    let now = cx.service.clock.now();
    let (hash, fingerprint) = (key.hash(), Bytes::from(fingerprint));
    let random = Bytes::from(cx.service.ids.secret()?);
    let first = Claim {
        fingerprint: fingerprint.clone(),
        nonce: random.clone(),
        holder: random.clone(),
        started_at: now,
        lease_until: now.plus_seconds(LEASE),
        sealed: None,
        ttl: now.plus_seconds(KEPT).unix_seconds(),
    };
    let found = match claim::take(&cx.table, hash, &first, now).await? {
        None => return Ok(Claimed::Mine(first)),
        // The answer to the call was lost, and its retry found the claim that the first call had made.
        Some(found) if found.holder == random => return Ok(Claimed::Mine(found)),
        Some(found) => found,
    };
    if found.fingerprint != fingerprint {
        return Err(Error::IdempotencyKeyReused);
    }
    if let Some(sealed) = &found.sealed {
        return open(sealed, &key.derive(cx, &found.holder, "answer")).map(Claimed::Done);
    }
    if now < found.lease_until {
        return Err(Error::IdempotencyKeyInUse);
    }
    let dead = found.holder.clone();
    let mine = Claim { holder: random, lease_until: now.plus_seconds(LEASE), ..found };
    // Several requests may find an expired lease. Only one of them takes the claim over.
    if claim::replace(&cx.table, hash, &mine, &dead).await? {
        Ok(Claimed::Mine(mine))
    } else {
        Err(Error::IdempotencyKeyInUse)
    }
}

/// The result of `future`. A panic becomes an internal error, so that the claim is settled even then.
pub async fn caught<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let outcome = AssertUnwindSafe(future).catch_unwind().await;
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::Internal(format!("panic: {}", text.unwrap_or("no message"))))
    })
}

/// Status and body, encrypted with `secret`; `None` where they are too large for an item.
fn seal(answer: &Response, secret: &[u8; 32]) -> Option<Bytes> {
    let mut bytes = [&answer.status.to_be_bytes(), answer.body.as_bytes()].concat();
    let (key, nonce) = cipher(secret).ok()?;
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut bytes).ok()?;
    (bytes.len() <= SEALED_LIMIT).then(|| bytes.into())
}

fn open(sealed: &Bytes, secret: &[u8; 32]) -> Result<Response> {
    let mut bytes = sealed.expose().to_vec();
    let (key, nonce) = cipher(secret)?;
    let opened = key.open_in_place(nonce, Aad::empty(), &mut bytes).map_err(broken)?;
    let (status, body) = opened.split_first_chunk().ok_or_else(|| broken("nothing in it"))?;
    let body = String::from_utf8(body.to_vec()).map_err(broken)?;
    Ok(Response::new(u16::from_be_bytes(*status), body))
}

/// Each holder has a key of its own and encrypts one answer with it, so the nonce may be constant.
fn cipher(secret: &[u8; 32]) -> Result<(LessSafeKey, Nonce)> {
    let key = UnboundKey::new(&AES_256_GCM, secret).map_err(broken)?;
    Ok((LessSafeKey::new(key), Nonce::assume_unique_for_key([0; 12])))
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("a sealed answer: {error}"))
}

fn bytes32(bytes: &[u8]) -> [u8; 32] {
    let mut array = [0; 32];
    array.copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_secret_decrypts_an_answer() {
        let answer = Response::new(201, r#"{"message":"é"}"#.into());
        let sealed = seal(&answer, &[1; 32]).unwrap();
        let opened = open(&sealed, &[1; 32]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((opened.status, opened.body), (answer.status, answer.body));
        assert!(open(&sealed, &[2; 32]).is_err());
        for at in 0..sealed.expose().len() {
            let mut bytes = sealed.expose().to_vec();
            bytes[at] ^= 1;
            assert!(open(&bytes.into(), &[1; 32]).is_err(), "{at}");
        }
        assert!(open(&Vec::new().into(), &[1; 32]).is_err());
    }

    #[test]
    fn an_answer_too_large_for_an_item_is_not_sealed() {
        let of = |bytes: usize| seal(&Response::new(200, "x".repeat(bytes)), &[1; 32]);
        // Two bytes for the status, and sixteen for the authentication tag.
        assert!(of(SEALED_LIMIT - 18).is_some());
        assert!(of(SEALED_LIMIT - 17).is_none());
    }

    #[test]
    fn a_panic_becomes_an_internal_error() {
        for (panic, wanted) in [(Some("oh"), "internal: panic: oh"), (None, "internal: panic: no message")] {
            let outcome = caught(async move {
                match panic {
                    Some(text) => panic!("{text}"),
                    None => std::panic::panic_any(1),
                }
                #[expect(unreachable_code, reason = "the result without a panic")]
                Ok(())
            });
            let error = outcome.now_or_never().unwrap().unwrap_err();
            assert_eq!((error.status(), error.to_string()), (500, wanted.to_owned()));
        }
    }

    #[test]
    fn debug_does_not_show_a_key() {
        assert_eq!(format!("{:?}", IdempotencyKey::parse("hidden").unwrap()), "IdempotencyKey(…)");
    }

    #[test]
    fn different_requests_have_different_fingerprints() {
        let request = |method: &str, path: &str, query: &[(&str, &str)], body: Option<&str>| HttpRequest {
            method: method.into(),
            path: path.into(),
            query: query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body: body.map(|body| body.as_bytes().to_vec()),
            ..HttpRequest::default()
        };
        let different = [
            request("POST", "/a", &[], None),
            request("PUT", "/a", &[], None),
            request("POST", "/A", &[], None),
            request("POST", "/a//", &[], None),
            request("POST", "/a", &[], Some("b")),
            request("POST", "/a", &[("b", "")], None),
            request("POST", "/a", &[("", "b")], None),
            request("POST", "/ab", &[], None),
            request("POST", "/a", &[("b", "c")], None),
            request("POST", "/a", &[("b", "c")], Some("d")),
            request("POST", "/a", &[("b", "c"), ("d", "")], None),
        ];
        let distinct: std::collections::HashSet<_> = different.iter().map(fingerprint).collect();
        assert_eq!(distinct.len(), different.len());
        let same = [
            request("POST", "/a/", &[], None),
            request("POST", "/a", &[], Some("")),
            request("POST", "/a", &[("api_key", "x")], None),
        ];
        assert!(same.iter().all(|same| fingerprint(same) == fingerprint(&different[0])));
    }
}
